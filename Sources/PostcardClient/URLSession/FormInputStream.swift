#if canImport(FoundationNetworking)
import Foundation
import PostcardForm

/// A form's body as the stream that URLSession on Linux reads, on the queue of its connection.
///
/// It reads ahead of nothing and copies nothing: URLSession's own buffer is filled from the form's files.
/// Apple's URLSession wants private methods of a stream that is not its own; there ``BoundBodyStream`` stands in.
final class FormInputStream: InputStream {
    private let reader: BlockingFormReader?
    private var status = Stream.Status.notOpen

    /// - Parameter reader: The form's body; `nil` for a stream that fails as soon as it is read.
    init(_ reader: BlockingFormReader?) {
        self.reader = reader
        super.init(data: Data())
    }

    override var streamStatus: Stream.Status { status }

    // The error is told by the transport: URLSession learns no more than that there is one.
    override var streamError: (any Error)? { nil }

    override var hasBytesAvailable: Bool { status == .open }

    override func open() {
        status = .open
    }

    override func close() {
        status = .closed
    }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
        guard status == .open else { return status == .error ? -1 : 0 }
        guard let count = reader?.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: length)) else {
            status = .error
            return -1
        }
        if count == 0 { status = .atEnd }
        return count
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool {
        false
    }
}
#endif
