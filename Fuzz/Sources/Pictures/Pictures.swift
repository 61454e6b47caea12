import Dispatch
import Inputs
import PostcardForm
import PostcardPictures

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Any file is refused with an error that says why, or becomes a picture within its limit, which fits again as it is.
///
/// Input: a byte for the limit, the file.
@_cdecl("LLVMFuzzerTestOneInput")
public func pictures(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = Input(start, count)
    let choice = input.byte()
    // Few pixels, so that a run is short.
    let limit = PictureLimit(
        maximumBytes: 256 << (choice & 15), maximumEdge: 16 << (choice >> 4 & 3),
        acceptedTypes: choice & 0x40 == 0 ? [.jpeg] : [.jpeg, .png, .webP, .gif], maximumPixels: 1 << 18)
    let file = Data(input.rest())
    guard let fitted = fit(file, to: limit) else { return 0 }
    let bytes = data(of: fitted)
    if fitted.isOriginal {
        if bytes != file { finding("the original has other bytes") }
    } else if fitted.contentType != .jpeg || !(50...82).contains(fitted.quality ?? 0) || fitted.encodings > 6 {
        finding("it is not what was asked for: \(fitted)")
    }
    if fitted.bytes != bytes.count || fitted.bytes > limit.maximumBytes {
        finding("\(bytes.count) bytes, said to be \(fitted.bytes), for a limit of \(limit.maximumBytes)")
    }
    if let size = fitted.size, size.longerEdge > limit.maximumEdge {
        finding("\(size) for an edge of \(limit.maximumEdge)")
    }
    guard let again = fit(bytes, to: limit) else { finding("it does not fit again") }
    if !again.isOriginal || again.size != fitted.size { finding("it is changed again: \(fitted), \(again)") }
    return 0
}

private let fitter = PictureFitter()

/// Waits for the fitter; `nil` if it refuses the file.
private func fit(_ file: Data, to limit: PictureLimit) -> FittedPicture? {
    let isDone = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var result: FittedPicture?
    Task.detached {
        do {
            result = try await fitter.fit(file, to: limit)
        } catch let error as PictureFitError {
            if "\(error)".isEmpty { finding("an error without a word") }
        } catch {
            finding("another error: \(error)")
        }
        isDone.signal()
    }
    isDone.wait()
    return result
}

private func data(of picture: FittedPicture) -> Data {
    guard case .bytes(let bytes) = picture.content else { finding("a picture in memory became a file") }
    return Data(bytes)
}
