import HTTPTypes
import NIOCore
import PostcardServer
import Synchronization

/// Tells everybody who listens what happens, as it happens.
final class LiveEvents: Sendable {
    private struct State {
        var listeners: [Int: AsyncStream<ByteBuffer>.Continuation] = [:]
        var lastID = 0
    }

    /// A browser opens one for each of its tabs.
    private let maximumListeners: Int
    /// One who is further behind is disconnected, and reads the lists anew when it is back.
    private let maximumWaitingEvents: Int
    /// Events wait in memory. One that is longer is told by a disconnection, too.
    private static let maximumEventBytes = 256 << 10
    private let state = Mutex(State())

    init(maximumListeners: Int = 64, maximumWaitingEvents: Int = 256) {
        self.maximumListeners = maximumListeners
        self.maximumWaitingEvents = maximumWaitingEvents
    }

    func publish(_ event: LiveEvent) {
        let listeners = state.withLock { $0.listeners }
        guard !listeners.isEmpty else { return }
        // Not even made where it would be too long.
        let message = event.isLonger(than: Self.maximumEventBytes) ? nil : event.message
        for listener in listeners.values {
            guard let message, message.readableBytes <= Self.maximumEventBytes, case .enqueued = listener.yield(message)
            else {
                listener.finish()
                continue
            }
        }
    }

    /// - Returns: What happens from now on, and where heartbeats can be put in between.
    /// - Throws: ``UploadProblem`` where enough are listening.
    func listen() throws(UploadProblem) -> (
        events: AsyncStream<ByteBuffer>, continuation: AsyncStream<ByteBuffer>.Continuation
    ) {
        let (events, continuation) = AsyncStream.makeStream(
            of: ByteBuffer.self, bufferingPolicy: .bufferingOldest(maximumWaitingEvents))
        let id: Int? = state.withLock { state in
            guard state.listeners.count < maximumListeners else { return nil }
            state.lastID += 1
            state.listeners[state.lastID] = continuation
            return state.lastID
        }
        guard let id else { throw .tooManyListeners(maximum: maximumListeners) }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.listeners.removeValue(forKey: id) }
        }
        return (events, continuation)
    }
}

extension UploadProblem {
    fileprivate static func tooManyListeners(maximum: Int) -> UploadProblem {
        var problem = UploadProblem(
            status: 503, code: "too-many-listeners", detail: "\(maximum) are listening already.",
            fix: "Close a page that shows this receiver, or ask for the list now and then.")
        problem.retryAfterSeconds = 30
        problem.limit = Limit(name: "maximumListeners", value: Int64(maximum))
        return problem
    }
}
