#if Queue
import Synchronization

/// Tells whoever waits that something in the queue may have changed.
final class QueueChanges: Sendable {
    private let listeners = Mutex<(next: Int, all: [Int: AsyncStream<Void>.Continuation])>((0, [:]))

    func note() {
        for listener in listeners.withLock({ Array($0.all.values) }) { listener.yield() }
    }

    /// One element at once and one after every change; those that come while nobody looks are one.
    func stream() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let key = listeners.withLock { listeners in
            listeners.next += 1
            listeners.all[listeners.next] = continuation
            return listeners.next
        }
        continuation.onTermination = { [weak self] _ in
            self?.listeners.withLock { $0.all[key] = nil }
        }
        continuation.yield()
        return stream
    }
}
#endif
