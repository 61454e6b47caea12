import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Bytes of a part that are made while they are sent, such as a recording, a download or a child's output.
///
/// ```swift
/// let log = FormStream(length: nil) { process.standardOutputChunks() }
/// form.append(log, named: "log", filename: "build.log")
/// ```
///
/// Where the length is known the request can carry a Content-Length; a stream that then gives more or fewer
/// bytes ends the upload with ``FormError/Code/streamLength``, never with a body that looks whole.
public struct FormStream: Sendable {
    /// The number of bytes, where it is known before they are made. A negative length, as
    /// `URLResponse.expectedContentLength` has it where nothing is known, becomes `nil`.
    public let length: Int64?

    /// Whether the bytes can be made again: for a retry, after a redirect, or from an offset.
    public let isReplayable: Bool

    private let source: Source

    /// A stream that can be opened again and again.
    ///
    /// - Parameters:
    ///   - length: The number of bytes, where it is known.
    ///   - open: Begins the same bytes anew each time it is called.
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
    ///   - length: The number of bytes, where it is known.
    public init<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, length: Int64? = nil
    ) where Chunks.Element == Data {
        self.length = length.flatMap { $0 < 0 ? nil : $0 }
        isReplayable = false
        source = Source(isReplayable: false) { StreamChunks(chunks) }
    }

    /// Begins the stream; `nil` where it can be read only once and has been.
    func open() -> StreamChunks? {
        source.open()
    }

    /// The shared memory of whether a stream that can be read once has been.
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

/// The iterator of a stream under way, whatever the type of its sequence.
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
