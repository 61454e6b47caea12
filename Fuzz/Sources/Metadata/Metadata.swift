import Inputs
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The metadata of any picture or video is removed, or the file is refused. The result has the same length, is the same
/// however it is read and cut, and has nothing left to remove.
///
/// Input: a byte for the policy and the length of the pieces, the file.
@_cdecl("LLVMFuzzerTestOneInput")
public func metadata(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = Input(start, count)
    let choice = input.byte()
    let file = input.rest()
    let policy = choice & 1 == 1 ? MetadataPolicy.none : .withoutLocation
    let piece = Int(choice >> 1) + 1
    let edits: FileEdits
    do {
        edits = try policy.edits(ofLength: Int64(file.count)) { offset, buffer in
            let rest = file.dropFirst(Int(offset)).prefix(min(buffer.count, 37 * piece))
            buffer.copyBytes(from: rest)
            return rest.count
        }
    } catch {
        // A damaged picture may be shorter than it says, but no error is outside of what could be a file.
        if error.offset < 0 { finding("\(error)") }
        return 0
    }
    checkOrder(of: edits, in: file)
    var result: [UInt8] = []
    for begin in stride(from: 0, to: file.count, by: piece) {
        var bytes = Array(file[begin..<min(begin + piece, file.count)])
        bytes.withUnsafeMutableBytes { edits.apply(to: $0, at: Int64(begin)) }
        result += bytes
    }
    do {
        if Array(try policy.applied(to: Data(file))) != result { finding("other bytes in pieces of \(piece)") }
        if Array(try policy.applied(to: Data(result))) != result { finding("there is more to remove afterwards") }
    } catch {
        finding("it is no longer understood: \(error)")
    }
    return 0
}

private func checkOrder(of edits: FileEdits, in file: [UInt8]) {
    var end: Int64 = 0
    for range in edits.ranges {
        if range.isEmpty || range.lowerBound < end || range.upperBound > Int64(file.count) {
            finding("bytes \(range) of \(file.count), behind an edit that ends at \(end)")
        }
        end = range.upperBound
    }
}
