import PostcardFoundation
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

/// The session of an identifier that this process has. The system allows one process at a time to have it, and no
/// second session before one that was given up has ended.
enum SessionSlot<Session: AnyObject> {
    case none
    case open(Session)
    /// Was given up, and ends after its last task. Has the callers that wait for that.
    case ending(Session, waiting: [CheckedContinuation<Void, Never>])

    /// Why a session has ended.
    enum End {
        /// The session was replaced or has ended before.
        case known
        /// The session ended without being given up.
        case unexpected
        /// The session was given up. The callers that waited for its end can make another session.
        case givenUp(waiting: [CheckedContinuation<Void, Never>])
    }

    var isEnding: Bool { if case .ending = self { true } else { false } }

    /// Gives up the session.
    ///
    /// - Returns: The session to invalidate, or `nil` if there is none or it was given up before.
    mutating func giveUp() -> Session? {
        guard case .open(let session) = self else { return nil }
        self = .ending(session, waiting: [])
        return session
    }

    /// Keeps a caller until the session that was given up has ended.
    ///
    /// - Returns: Whether there is such a session.
    mutating func wait(_ caller: CheckedContinuation<Void, Never>) -> Bool {
        guard case .ending(let session, let waiting) = self else { return false }
        self = .ending(session, waiting: waiting + [caller])
        return true
    }

    /// Notes that a session has ended. The next use makes another one.
    mutating func end(_ ended: Session) -> End {
        switch self {
        case .open(let session) where session === ended:
            self = .none
            return .unexpected
        case .ending(let session, let waiting) where session === ended:
            self = .none
            return .givenUp(waiting: waiting)
        case .none, .open, .ending: return .known
        }
    }
}

/// Asks for one answer by each of several callbacks, and returns those that are not `nil`.
///
/// The system may never call one of them, for example about a task that has just ended. The caller must not wait for it
/// forever.
///
/// - Parameters:
///   - askers: Whom to ask.
///   - patience: How long to wait for all answers. Defaults to 5 seconds.
///   - time: The clock for that. Defaults to the system's.
///   - ask: Asks, and passes the callback.
func answers<Key: Hashable & Sendable, Asker, Answer: Sendable>(
    from askers: [Key: Asker], within patience: Duration = .seconds(5), _ time: QueueTime = QueueTime(),
    _ ask: (Asker, @escaping @Sendable (Answer?) -> Void) -> Void
) async -> [Key: Answer] {
    let (stream, continuation) = AsyncStream.makeStream(of: (Key, Answer?).self)
    for (key, asker) in askers { ask(asker) { continuation.yield((key, $0)) } }
    let end = time.instant() + patience
    let alarm = Task {
        try? await time.sleep(end)
        continuation.finish()
    }
    defer { alarm.cancel() }
    var answers: [Key: Answer] = [:]
    var missing = Set(askers.keys)
    guard !missing.isEmpty else { return [:] }
    for await (key, answer) in stream {
        answers[key] = answer
        missing.remove(key)
        if missing.isEmpty { break }
    }
    return answers
}
