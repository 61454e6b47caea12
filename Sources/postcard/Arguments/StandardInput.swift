import Dispatch
import Foundation
import PostcardForm
import SystemPackage

/// Standard input as the content of a part: any length, read only as fast as it is sent.
struct StandardInput: AsyncSequence, AsyncIteratorProtocol, Sendable {
    private static let chunkSize = 256 << 10

    static func stream() -> FormStream {
        FormStream(StandardInput())
    }

    func makeAsyncIterator() -> StandardInput { self }

    func next() async throws -> Data? {
        // Reading waits for the writer, which must not block a thread of the concurrency pool.
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Data?, any Error>) in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try Self.read() })
            }
        }
    }

    private static func read() throws -> Data? {
        var chunk = Data(count: chunkSize)
        do {
            let count = try chunk.withUnsafeMutableBytes { try FileDescriptor.standardInput.read(into: $0) }
            return count > 0 ? chunk.prefix(count) : nil
        } catch {
            throw CommandFailure.input("Standard input", "cannot be read: \(error)")
        }
    }
}
