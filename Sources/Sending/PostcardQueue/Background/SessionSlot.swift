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
