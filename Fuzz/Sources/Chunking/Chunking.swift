import Inputs
import PostcardForm

/// A body gives the same events however it is cut into chunks.
///
/// Input: a byte for the boundary and the limits, a byte for the lengths of the chunks, the body.
@_cdecl("LLVMFuzzerTestOneInput")
public func chunking(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = Input(start, count)
    let choice = input.byte()
    let cut = input.byte()
    let body = input.rest()
    let boundary = ["XX", "a", "--", String(repeating: "a", count: 70)][Int(choice & 3)]
    let limits = limits(choice >> 2)
    let whole = Reading.all(of: [body[...]], boundary: boundary, limits: limits)
    for lengths in [[1], [Int(cut & 15) + 1, Int(cut >> 4) + 1], [Int(cut) + 1, 0, 1]] {
        let readings = Reading.all(of: Chunks(of: body, lengths: lengths), boundary: boundary, limits: limits)
        if readings != whole { finding("in chunks of \(lengths):\n\(readings)\nwhole:\n\(whole)") }
    }
    checkOffsets(of: whole, in: body)
    return 0
}

/// Limits so low that short bodies exceed them.
private func limits(_ choice: UInt8) -> FormLimits {
    var limits = FormLimits()
    let most = Int(choice) * 2
    switch choice % 8 {
    case 1: limits.maximumBodyBytes = Int64(most)
    case 2: limits.maximumParts = most
    case 3: limits.maximumFileBytes = Int64(most)
    case 4: limits.maximumFieldBytes = Int64(most)
    case 5: limits.maximumHeaderBytes = most
    case 6: limits.maximumPreambleBytes = Int64(most)
    case 7: limits.maximumEpilogueBytes = Int64(most)
    default: break
    }
    return limits
}

/// A reported offset must be in the body.
private func checkOffsets(of readings: [Reading], in body: [UInt8]) {
    for reading in readings {
        let offsets: [Int64] =
            switch reading {
            case .part(_, _, _, let offset, let warnings): [offset] + warnings.map(\.offset)
            case .problem(let problem): [problem.offset]
            default: []
            }
        for offset in offsets where !(0...body.count).contains(Int(offset)) {
            finding("byte \(offset) of a body of \(body.count): \(reading)")
        }
    }
}

/// A body in chunks of given lengths, again and again; a length of 0 is an empty chunk.
private struct Chunks: Sequence, IteratorProtocol {
    private var rest: ArraySlice<UInt8>
    private let lengths: [Int]
    private var turn = 0

    init(of body: [UInt8], lengths: [Int]) {
        rest = body[...]
        self.lengths = lengths
    }

    mutating func next() -> ArraySlice<UInt8>? {
        if rest.isEmpty { return nil }
        defer {
            rest = rest.dropFirst(lengths[turn % lengths.count])
            turn += 1
        }
        return rest.prefix(lengths[turn % lengths.count])
    }
}
