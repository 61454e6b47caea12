import Synchronization

/// Passes the events of a session to the queue that is attached, and keeps them while none is.
///
/// A process has one session for an identifier, and may make several queues with it, one after the other. The session
/// reports each event once, so it must reach the latest queue, even if an earlier one is connected or closed late.
///
/// Calls the queue while it holds the lock, so that events arrive in order, and none after ``detach(_:)``. The queue must
/// only store the event.
final class EventRelay: Sendable {
    /// Identifies a queue. Those of later queues are greater.
    struct Token: Sendable, Comparable {
        private static let last = Mutex(0)

        private let number: Int

        init() {
            number = Self.last.withLock { last in
                last += 1
                return last
            }
        }

        static func < (one: Token, other: Token) -> Bool { one.number < other.number }
    }

    private struct State {
        var listener: (token: Token, report: @Sendable (AttemptEvent) -> Void)?
        var latest: Token?
        var missed: [AttemptEvent] = []

        /// Keeps an event for the next queue. Of an attempt's progress, only the latest matters.
        mutating func keep(_ event: AttemptEvent) {
            if case .sent(let id, _) = event {
                missed.removeAll { if case .sent(let other, _) = $0 { other == id } else { false } }
            }
            missed.append(event)
        }
    }

    private let state = Mutex(State())

    /// Attaches a queue in place of an earlier one, and passes it the events that no queue has received.
    ///
    /// - Returns: Whether the queue is attached: `false` if a later queue was attached before.
    @discardableResult
    func attach(_ token: Token, _ report: @escaping @Sendable (AttemptEvent) -> Void) -> Bool {
        state.withLock { state in
            if let latest = state.latest, token < latest { return false }
            state.latest = token
            state.listener = (token, report)
            for event in state.missed { report(event) }
            state.missed = []
            return true
        }
    }

    /// Detaches a queue. Does nothing if another one is attached.
    func detach(_ token: Token) {
        state.withLock { state in
            if state.listener?.token == token { state.listener = nil }
        }
    }

    func report(_ event: AttemptEvent) {
        state.withLock { state in
            if let listener = state.listener { listener.report(event) } else { state.keep(event) }
        }
    }
}
