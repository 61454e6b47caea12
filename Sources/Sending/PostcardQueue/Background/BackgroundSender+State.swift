import PostcardFoundation
import Synchronization

extension BackgroundSender {
    /// What a sender does with its session.
    enum Duty {
        /// Hands uploads over and settles them, until it is closed.
        case sending
        /// Settles and stops what another process has handed over. Gives up the session when nothing of that is open.
        case settling
    }

    /// What is to be done next.
    struct Inbox {
        var events: [AttemptEvent] = []
        /// How far attempts are that have begun to send.
        var progress: [AttemptID: Int64] = [:]
        /// The system's completion handlers, to be called when all events are settled.
        var handlers: [@Sendable () -> Void] = []
        /// The callers of ``BackgroundSender/handOver()``.
        var waiters: [CheckedContinuation<Void, any Error>] = []
        /// Whether the queue may have changed.
        var hasChanges = false
        /// Activities that last until what was enqueued is handed over.
        var grants: [ExpiringActivity.Grant] = []

        func endGrants() { for grant in grants { grant.end() } }

        /// All events, with the progress before the ends.
        var allEvents: [AttemptEvent] { progress.map { .sent($0, bytes: $1) } + events }
        var hasOnlyProgress: Bool { events.isEmpty && handlers.isEmpty && waiters.isEmpty && !hasChanges }
    }

    struct State {
        var inbox = Inbox()
        /// The handlers of the inboxes that were taken.
        var handlers: [@Sendable () -> Void] = []
        /// Whether the handlers are called at the end of the round.
        var callsHandlers = false
        /// How many runs send in this process. What is not handed over yet is theirs.
        var localRuns = 0
        var failure: (any Error)?
        /// Whether another queue of this process has the session.
        var isReplaced = false
        var isClosed = false
        var task: Task<Void, Never>?
        /// Whether a round is played, or is to be played at once.
        var (isPlaying, isSignalled) = (false, false)
        /// The callers of ``BackgroundSender/rested()``.
        var resting: [CheckedContinuation<Void, Never>] = []
        /// The attempts that have begun to send.
        var sending: Set<AttemptID> = []
        /// When the progress of attempts may be noted again.
        var nextProgress: ContinuousClock.Instant?
        var isProgressDue = false
    }
}

/// Calls a handler the first time.
final class SingleCall: Sendable {
    private let handler: Mutex<(@Sendable () -> Void)?>

    init(_ handler: @escaping @Sendable () -> Void) {
        self.handler = Mutex(handler)
    }

    func call() { handler.withLock { $0.take() }?() }
}
