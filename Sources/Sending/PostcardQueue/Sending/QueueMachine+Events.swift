import PostcardClient
import PostcardFoundation

/// The settings, events and actions of the machine.
extension QueueMachine {
    /// An event that leads to the machine's next action.
    enum Event: Sendable {
        case woken(News)
        case closed([AttemptEvent])
        case done
        /// The attempts of the carrier and of the database were read, for a comparison.
        ///
        /// - Parameters:
        ///   - carried: The carrier's attempts. The value is `true` if the attempt has ended and its end was not
        ///     reported yet.
        ///   - recorded: The attempts in the database.
        ///   - events: The attempt events that were reported in the meantime.
        case compared(
            carried: [AttemptID: Bool], recorded: [AttemptID: QueuedUpload.ID], events: [AttemptEvent])
        case recorded([AttemptID: QueuedUpload.ID])
        case claimed([UploadRow])
        /// No upload may be sent now.
        ///
        /// - Parameter nextDue: The time at which the next upload may be sent.
        case exhausted(nextDue: Date?)
        case refused(Refusal)
        /// The attempts of the carrier were read.
        ///
        /// - Parameter events: The attempt events that were reported in the meantime.
        case listed([AttemptID: Bool], events: [AttemptEvent])
        /// The action has failed.
        ///
        /// - Parameter mayPass: Whether the action may succeed later, such as after a full disk.
        case failed(mayPass: Bool)
    }

    /// The events since the last round.
    struct News: Sendable {
        var events: [AttemptEvent] = []
        /// Whether the system has passed completion handlers.
        var hasHandlers = false
        /// Whether the queue may have changed.
        var hasChanges = false

        /// Whether the only work is to record the progress of attempts.
        var hasOnlyProgress: Bool {
            let hasOtherEvents = events.contains { if case .sent = $0 { false } else { true } }
            return !hasOtherEvents && !hasChanges && !hasHandlers
        }
    }

    /// An attempt whose start was stopped or has failed, perhaps after the carrier began it.
    struct Refusal: Sendable {
        let outcome: AttemptOutcome
        /// Whether the carrier may have begun the attempt.
        let hasBegun: Bool
    }

    /// The progress of an upload.
    struct Progress: Sendable, Equatable {
        let upload: QueuedUpload.ID
        let bytesSent: Int64
        /// Whether the attempt has just begun to send.
        let isFirst: Bool
    }

    /// An action for the sender to carry out.
    enum Action: Sendable {
        case connect
        case compare
        case settle([EndedAttempt], [Progress])
        /// Cancel attempts.
        ///
        /// - Parameter uploads: The uploads of the attempts, as far as they are known.
        case cancel([AttemptID], of: [QueuedUpload.ID])
        case read
        /// Mark uploads as being sent. The marks are on disk before any of their attempts begins.
        case claim(Claim)
        case begin(UploadRow)
        case list
        /// Call the system's completion handlers. The system may then suspend the app.
        case callHandlers
        /// Wait for the next event.
        ///
        /// - Parameter until: When the next round is due without an event; `nil` for never.
        case rest(until: Date?)
        /// Report that the last action failed or that the system does not accept uploads, and wait for the next event.
        case giveUp(SessionProblem?)
        /// Report an event that is impossible in the machine's state. The round is over.
        case fault(ImpossibleEvent)
        /// End, because no upload is left to send.
        case end
    }

    /// The uploads to mark as being sent.
    struct Claim: Sendable, Equatable {
        /// The maximum number of uploads.
        let count: Int
        /// The maximum number of uploads to give to the carrier before they are due. The limit leaves room for uploads
        /// that are due. Only the system accepts uploads before they are due.
        let later: Int
        /// The uploads to leave unmarked even if they are due.
        let excluded: Set<QueuedUpload.ID>
    }

    /// The settings by which the machine decides.
    struct Rules: Sendable {
        /// The identifier of the background session; `nil` for a sender in this process.
        var session: String?
        let retryPolicy: RetryPolicy
        /// Whether the app makes header fields whenever an upload is handed to the system.
        var makesFields = false
        /// Whether the app makes new presigned forms in place of expired ones.
        var makesForms = false
        /// The statuses that mean success, for uploads whose endpoints do not list their own.
        var acceptedStatuses = Set(200..<300)
        /// How long an upload may take as a whole; `nil` means no limit. The system has its own limit for each attempt.
        var totalTimeout: Duration?
        /// The maximum number of attempts that the carrier has at a time.
        var maximumConcurrentUploads: Int
        /// Whether the sender ends when no upload is left that can be sent.
        var endsWhenEmpty = false
        /// How often to check for changes by other processes; `nil` if there are no other processes.
        var pollInterval: Duration?
    }
}

/// The types of the machine's state.
extension QueueMachine {
    /// The state of the connection to the carrier of attempts.
    struct Session {
        enum Connection {
            case disconnected
            /// The carrier is connected. Some attempts in the database may be missing in the carrier: attempts of
            /// earlier processes, and attempts that did not begin because an action failed.
            case connected
            /// The carrier has all attempts in the database.
            case compared
        }

        /// Whether the carrier has delivered all events since the connection, or since the last handlers were called.
        enum EventReport {
            case pending
            /// The carrier has delivered all events.
            ///
            /// - Parameter awaited: Attempts whose ends must be recorded before the completion handlers are called.
            case complete(awaited: Set<AttemptID>)
        }

        var connection = Connection.disconnected
        var report = EventReport.pending
        /// Whether the session has ended since it was connected.
        var hasEnded = false
        /// Whether the system waits for its completion handlers.
        var hasHandlers = false
        /// The number of sessions in a row that have ended by themselves.
        var endings = 0

        /// Disconnects from a session that has ended. Such a session reports no more events, so none are awaited.
        mutating func leave() {
            connection = .disconnected
            report = .complete(awaited: [])
            hasEnded = false
        }

        /// Records an event of the session, and returns the problem if the sender must give up.
        mutating func record(_ event: AttemptEvent) -> SessionProblem? {
            switch event {
            case .ended(_, .response): endings = 0
            case .invalidated(let problem):
                hasEnded = true
                endings += 1
                if !problem.mayPass || endings > QueueMachine.maximumInvalidations { return problem }
            default: break
            }
            return nil
        }

        /// Whether to call the completion handlers now.
        ///
        /// - Parameter ledger: The attempts that are open.
        mutating func mayCallHandlers(with ledger: AttemptLedger) -> Bool {
            guard case .complete(var awaited) = report else { return false }
            awaited.formIntersection(ledger.attempts)
            report = .complete(awaited: awaited)
            return hasHandlers && awaited.isEmpty
        }

        /// Records that the completion handlers were called.
        mutating func handlersWereCalled() {
            if hasHandlers { report = .pending }
            hasHandlers = false
        }
    }

    /// The state of a round: the action whose result the machine waits for.
    enum State {
        case resting
        case connecting
        case comparing
        case settling(count: Int, then: Step)
        case dropping(Comparison)
        case reading
        case cancelling
        case claiming
        case beginning(UploadRow, then: [UploadRow])
        case listing
        case calling(then: Action)
    }

    /// The step after the ends of all attempts are recorded.
    enum Step {
        case work
        case compare(Comparison)
        case begin([UploadRow])
        case giveUp(SessionProblem)
        case close
    }

    struct Comparison {
        let carried: [AttemptID: Bool]
        let recorded: [AttemptID: QueuedUpload.ID]
    }

    /// The state of the current round.
    struct Round {
        var hasOnlyProgress = false
        /// Whether to ask the carrier for attempts that have ended without a report. The event `deliveredAll` is not
        /// enough: it may have arrived before the handlers, or belong to an earlier wake-up.
        var mustList = false
        var nextDue: Date?
        /// The reason why the system does not accept uploads.
        var problem: SessionProblem?
    }
}
