import PostcardFoundation
import Synchronization

/// Passes the events of a session to the attached queue, and stores events while no queue is attached.
///
/// A process has one session for an identifier, and may make several queues with it, one after the other. The session
/// reports each event once, so the event must reach the latest queue, even if an earlier queue connects or closes late.
///
/// The relay calls the queue while it holds its lock, so that events arrive in order, and none arrives after
/// ``detach(_:)``. The queue must only store the event.
final class EventRelay: Sendable {
    /// Identifies a queue. A queue that is made later has a greater token.
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

        /// Stores an event for the next queue. Later progress of an attempt replaces earlier progress.
        mutating func keep(_ event: AttemptEvent) {
            if case .sent(let id, _) = event {
                missed.removeAll { if case .sent(let other, _) = $0 { other == id } else { false } }
            }
            missed.append(event)
        }
    }

    private let state = Mutex(State())

    /// Attaches a queue in place of an earlier one, and passes the stored events to it.
    ///
    /// - Returns: `false` if a queue made after this one was already attached. Then this queue is not attached.
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

    /// Detaches a queue. Does nothing if another queue is attached.
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

/// The session of this process for an identifier. Only one process at a time can use a session, and a new session with
/// the identifier cannot be made before the old session has ended.
enum SessionSlot<Session: AnyObject> {
    case none
    case open(Session)
    /// The session was given up, and ends after its last task. `waiting` has the callers that wait for its end.
    case ending(Session, waiting: [CheckedContinuation<Void, Never>])

    /// The way in which a session has ended.
    enum End {
        /// The session was already replaced, or its end was already known.
        case known
        /// The session ended by itself: this process did not give it up.
        case unexpected
        /// This process gave the session up. The waiting callers can now make another session.
        case givenUp(waiting: [CheckedContinuation<Void, Never>])
    }

    var isEnding: Bool { if case .ending = self { true } else { false } }

    /// Gives up the session. Returns the session to invalidate, or `nil` if it was already given up.
    mutating func giveUp() -> Session? {
        guard case .open(let session) = self else { return nil }
        self = .ending(session, waiting: [])
        return session
    }

    /// If this process gave up the session, makes a caller wait until the session has ended.
    ///
    /// - Returns: `false` if the caller need not wait, because the session was not given up or has already ended.
    mutating func wait(_ caller: CheckedContinuation<Void, Never>) -> Bool {
        guard case .ending(let session, let waiting) = self else { return false }
        self = .ending(session, waiting: waiting + [caller])
        return true
    }

    /// Records that a session has ended. The next use makes another session.
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

/// Asks several objects, which answer through callbacks, and returns the answers that are not `nil`.
///
/// The wait is limited, because the system may never call a callback, such as for a task that has just ended.
///
/// - Parameters:
///   - askers: The objects to ask, by key.
///   - patience: How long to wait for all answers. Defaults to 5 seconds.
///   - time: The clock for the wait. Defaults to the system's.
///   - ask: Asks one object, and passes the callback to it.
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
