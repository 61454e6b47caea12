#if !canImport(FoundationNetworking)
import Foundation
import PostcardForm

/// A form's body as one end of a pair of bound streams, which a thread of its own fills from the other end.
enum BoundBodyStream {
    /// As much as the thread may be ahead of the connection.
    private static let bufferSize = 256 << 10

    /// Begins to fill a stream.
    ///
    /// - Parameters:
    ///   - reader: The form's body.
    ///   - failed: Called where the body cannot be read to its end, with what closes the stream. It is to be
    ///     called once the connection is closed: before that, what was sent would look whole.
    /// - Returns: What URLSession reads.
    static func make(
        _ reader: BlockingFormReader, failed: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) -> InputStream? {
        var input: InputStream?
        var output: OutputStream?
        Stream.getBoundStreams(withBufferSize: bufferSize, inputStream: &input, outputStream: &output)
        guard let input, let output else { return nil }
        // The thread alone uses this end from here on, and after it only whoever closes it.
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

    /// Writes the body until it ends, and says whether it ended well. Where the connection closed the other end
    /// there is nobody left to tell.
    private static func fill(_ output: OutputStream, from reader: BlockingFormReader) -> Bool {
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
