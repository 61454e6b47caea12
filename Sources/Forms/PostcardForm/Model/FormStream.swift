public import PostcardFoundation
import Synchronization

/// Bytes of a part that are produced while they are sent, such as a recording, a download or a child's output.
///
/// ```swift
/// let log = FormStream(length: nil) { process.standardOutputChunks() }
/// form.append(log, named: "log", filename: "build.log")
/// ```
///
/// If the length is known, the request has a Content-Length. A stream that then has more or fewer bytes fails the
/// upload with ``FormError/Code/streamLength``; its body never looks complete.
public struct FormStream: Sendable {
    /// The number of bytes, if it is known in advance. A negative length, such as an unknown
    /// `URLResponse.expectedContentLength`, becomes `nil`.
    public let length: Int64?

    /// Whether the bytes can be produced again: for a retry, after a redirect, or from an offset.
    public let isReplayable: Bool

    private let source: Source

    /// A stream that can be opened again and again.
    ///
    /// - Parameters:
    ///   - length: The number of bytes, if it is known.
    ///   - open: Returns the same bytes from the start, each time it is called.
    public init<Chunks: AsyncSequence & SendableMetatype>(
        length: Int64? = nil, opening open: @escaping @Sendable () -> Chunks
    ) where Chunks.Element == Data {
        self.length = length.flatMap { $0 < 0 ? nil : $0 }
        isReplayable = true
        source = Source(isReplayable: true) { StreamChunks(open()) }
    }

    /// A stream that can be read once. An upload of it is not retried.
    ///
    /// - Parameters:
    ///   - chunks: The bytes, in chunks of any size.
    ///   - length: The number of bytes, if it is known.
    public init<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, length: Int64? = nil
    ) where Chunks.Element == Data {
        self.length = length.flatMap { $0 < 0 ? nil : $0 }
        isReplayable = false
        source = Source(isReplayable: false) { StreamChunks(chunks) }
    }

    /// Opens the stream; `nil` if it can be read only once and was.
    func open() -> StreamChunks? {
        source.open()
    }

    /// Remembers whether a stream that can be read once was read.
    private final class Source: Sendable {
        private let isReplayable: Bool
        private let wasOpened = Atomic(false)
        private let make: @Sendable () -> StreamChunks

        init(isReplayable: Bool, make: @escaping @Sendable () -> StreamChunks) {
            self.isReplayable = isReplayable
            self.make = make
        }

        func open() -> StreamChunks? {
            let isFirst = !wasOpened.exchange(true, ordering: .relaxed)
            return isFirst || isReplayable ? make() : nil
        }
    }
}

/// The iterator of a stream that is being read, for a sequence of any type.
final class StreamChunks {
    private let advance: () async throws -> Data?

    init<Chunks: AsyncSequence>(_ chunks: Chunks) where Chunks.Element == Data {
        var iterator = chunks.makeAsyncIterator()
        advance = { try await iterator.next(isolation: #isolation) }
    }

    /// The next bytes, never none; `nil` at the end.
    func next() async throws -> Data? {
        while let chunk = try await advance() {
            if !chunk.isEmpty { return chunk }
        }
        return nil
    }
}
