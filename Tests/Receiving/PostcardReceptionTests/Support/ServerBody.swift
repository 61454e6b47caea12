import PostcardForm
import Synchronization

/// A body as a server passes it on: its chunks, and then what happens. It counts the chunks that were read.
struct ServerBody<Chunk: FormChunk>: AsyncSequence, Sendable {
    enum Ending: Sendable {
        case end
        case failure
        /// No more bytes, and no end: until the task is cancelled, after which the sequence ends.
        case silence
    }

    struct Broken: Error {}

    let chunks: [Chunk]
    var ending = Ending.end
    /// How long each chunk takes.
    var delay = Duration.zero
    let reads = Reads()

    final class Reads: Sendable {
        private let count = Atomic(0)
        private let iterators = Atomic(0)

        /// How often an iterator was made.
        var begun: Int { iterators.load(ordering: .relaxed) }

        fileprivate func begin() { iterators.add(1, ordering: .relaxed) }

        var all: Int { count.load(ordering: .relaxed) }

        fileprivate func add() { count.add(1, ordering: .relaxed) }

        /// Waits until the sequence has been asked that often.
        func reach(_ count: Int) async throws {
            while all < count { try await Task.sleep(for: .milliseconds(1)) }
        }
    }

    init(_ bytes: some Collection<UInt8>, by size: Int, ending: Ending = .end, delay: Duration = .zero) {
        let bytes = Array(bytes)
        chunks = stride(from: 0, to: bytes.count, by: size).map { start in
            Chunk(formChunk: bytes[start..<Swift.min(start + size, bytes.count)])
        }
        self.ending = ending
        self.delay = delay
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let body: ServerBody
        fileprivate var index = 0

        mutating func next() async throws -> Chunk? {
            body.reads.add()
            if body.delay > .zero { try await Task.sleep(for: body.delay) }
            if index < body.chunks.count {
                defer { index += 1 }
                return body.chunks[index]
            }
            switch body.ending {
            case .end: break
            case .failure: throw Broken()
            case .silence: try? await Task.sleep(for: .seconds(3600))
            }
            return nil
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        reads.begin()
        return AsyncIterator(body: self)
    }
}
