import PostcardFoundation
import Synchronization

extension BackgroundSender {
    /// The duty of a sender: sending uploads, or only ending the uploads of another process.
    enum Duty {
        /// Hands uploads to the system and records how they end, until the sender is closed.
        case sending
        /// Stops the uploads that another process has handed to the system, and records how they end. Gives up the
        /// session when none of them is left.
        case settling
    }

    /// The work for the next round of the sender's task.
    struct Inbox {
        var events: [AttemptEvent] = []
        /// The number of bytes that attempts have sent, by attempt.
        var progress: [AttemptID: Int64] = [:]
        /// The system's completion handlers, which are called when all events are handled.
        var handlers: [@Sendable () -> Void] = []
        /// The callers of ``BackgroundSender/handOver()``.
        var waiters: [CheckedContinuation<Void, any Error>] = []
        /// Whether the queue may have changed.
        var hasChanges = false
        /// Activities that keep the system from suspending the app until new uploads are handed to the system.
        var grants: [ExpiringActivity.Grant] = []

        func endGrants() { for grant in grants { grant.end() } }

        /// All events, with the progress before the other events.
        var allEvents: [AttemptEvent] { progress.map { .sent($0, bytes: $1) } + events }
        var hasOnlyProgress: Bool { events.isEmpty && handlers.isEmpty && waiters.isEmpty && !hasChanges }
    }

    struct State {
        var inbox = Inbox()
        /// The completion handlers from earlier rounds.
        var handlers: [@Sendable () -> Void] = []
        /// Whether to call the handlers at the end of the round.
        var callsHandlers = false
        /// The number of runs in this process that send uploads. They send the uploads that the system does not have.
        var localRuns = 0
        var failure: (any Error)?
        /// Whether another queue of this process uses the session.
        var isReplaced = false
        var isClosed = false
        var task: Task<Void, Never>?
        /// Whether a round is running, and whether another round must run at once.
        var (isPlaying, isSignalled) = (false, false)
        /// The callers of ``BackgroundSender/rested()``.
        var resting: [CheckedContinuation<Void, Never>] = []
        /// The attempts that have begun to send.
        var sending: Set<AttemptID> = []
        /// The earliest time to record progress again.
        var nextProgress: ContinuousClock.Instant?
        var isProgressDue = false
    }
}

/// Calls a handler at most once.
final class SingleCall: Sendable {
    private let handler: Mutex<(@Sendable () -> Void)?>

    init(_ handler: @escaping @Sendable () -> Void) {
        self.handler = Mutex(handler)
    }

    func call() { handler.withLock { $0.take() }?() }
}
