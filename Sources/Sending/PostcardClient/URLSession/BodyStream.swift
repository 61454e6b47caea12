#if canImport(FoundationNetworking)
import Foundation

/// A request's body as an input stream, which URLSession on Linux reads on the queue of its connection.
///
/// The stream fills URLSession's buffer directly from the form's files. Apple's URLSession calls private methods that a
/// subclass does not have, so ``BoundBodyStream`` is used on Apple platforms.
final class BodyInputStream: InputStream {
    private let reader: BlockingBodyReader?
    private var status = Stream.Status.notOpen

    /// Makes a stream that reads a request's body.
    ///
    /// - Parameter reader: The reader of the body; `nil` for a stream that fails at the first read.
    init(_ reader: BlockingBodyReader?) {
        self.reader = reader
        super.init(data: Data())
    }

    override var streamStatus: Stream.Status { status }

    // The transport takes the error from the reader. For URLSession, the status `error` is enough.
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
#else
import Foundation

/// A request's body as one end of a pair of bound streams, whose other end a thread fills.
enum BoundBodyStream {
    /// The size of the buffer between the thread and the connection, in bytes.
    private static let bufferSize = 256 << 10

    /// Makes a pair of bound streams, and starts to fill one end from the reader. Returns the other end for URLSession.
    ///
    /// - Parameter failed: Called if reading the body fails, with a closure that closes the stream. Call that closure
    ///   only after the connection was closed: otherwise the body would look complete.
    static func make(
        _ reader: BlockingBodyReader, failed: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) -> InputStream? {
        var input: InputStream?
        var output: OutputStream?
        Stream.getBoundStreams(withBufferSize: bufferSize, inputStream: &input, outputStream: &output)
        guard let input, let output else { return nil }
        // Only the thread uses this end of the pair, and after the thread only the closure that closes the stream.
        nonisolated(unsafe) let writing = output
        let thread = Thread {
            writing.open()
            if fill(writing, from: reader) {
                writing.close()
            } else {
                failed { writing.close() }
            }
        }
        thread.name = "Postcard body"
        thread.start()
        return input
    }

    /// Writes the body. Returns `false` if reading the body failed, and `true` if the whole body was written or the
    /// connection has closed the other end.
    private static func fill(_ output: OutputStream, from reader: BlockingBodyReader) -> Bool {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize / 2, alignment: 16)
        defer { buffer.deallocate() }
        while let count = reader.read(into: buffer) {
            if count == 0 { return true }
            var written = 0
            while written < count, let start = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self) {
                let more = output.write(start + written, maxLength: count - written)
                guard more > 0 else { return true }
                written += more
            }
        }
        return false
    }
}
#endif
