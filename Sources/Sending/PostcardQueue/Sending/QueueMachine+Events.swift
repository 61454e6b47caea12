import PostcardClient
import PostcardFoundation

/// The settings, events and actions of the machine.
extension QueueMachine {
    /// What has happened.
    enum Event: Sendable {
        case woken(News)
        case closed([AttemptEvent])
        case done
        /// - Parameters:
        ///   - carried: The carrier's attempts: those that have not ended with `false`, and those whose end was not
        ///     reported yet with `true`.
        ///   - recorded: The attempts of the database.
        ///   - events: The events that were reported in the meantime.
        case compared(
            carried: [AttemptID: Bool], recorded: [AttemptID: QueuedUpload.ID], events: [AttemptEvent])
        case recorded([AttemptID: QueuedUpload.ID])
        case claimed([UploadRow])
        /// - Parameter nextDue: When the next upload is due that may then be claimed.
        case exhausted(nextDue: Date?)
        case refused(Refusal)
        /// - Parameter events: The events that were reported in the meantime.
        case listed([AttemptID: Bool], events: [AttemptEvent])
        /// - Parameter mayPass: Whether the same action may succeed later, for example because the disk was full.
        case failed(mayPass: Bool)
    }

    /// What has happened between two rounds.
    struct News: Sendable {
        var events: [AttemptEvent] = []
        /// Whether the system has passed completion handlers.
        var hasHandlers = false
        /// Whether the queue may have changed.
        var hasChanges = false

        /// Whether nothing is left to do but to note how far attempts are.
        var hasOnlyProgress: Bool {
            let hasOtherEvents = events.contains { if case .sent = $0 { false } else { true } }
            return !hasOtherEvents && !hasChanges && !hasHandlers
        }
    }

    /// An attempt that could not begin.
    struct Refusal: Sendable {
        let outcome: AttemptOutcome
        /// Whether the carrier may have begun it all the same.
        let hasBegun: Bool
    }

    /// How far an upload is.
    struct Progress: Sendable, Equatable {
        let upload: QueuedUpload.ID
        let bytesSent: Int64
        /// Whether the attempt has just begun to send.
        let isFirst: Bool
    }

    /// What to do next.
    enum Action: Sendable {
        case connect
        case compare
        case settle([EndedAttempt], [Progress])
        /// - Parameter uploads: The uploads of the attempts, as far as they are known.
        case cancel([AttemptID], of: [QueuedUpload.ID])
        case read
        /// Mark uploads as being sent. On disk before any attempt begins: the next attempt must know of this one.
        case claim(Claim)
        case begin(UploadRow)
        case list
        /// Call the system's completion handlers. The system suspends the app when they have been called.
        case callHandlers
        /// Wait for news.
        ///
        /// - Parameter until: When the next round is due without any, or `nil` for never.
        case rest(until: Date?)
        /// Report that the last action failed, or that the system carries nothing, and wait for news.
        case giveUp(SessionProblem?)
        /// Report an event that cannot happen.
        case fault(ImpossibleEvent)
        /// Nothing is left to do.
        case end
    }

    /// Which uploads to mark as being sent.
    struct Claim: Sendable, Equatable {
        /// The maximum number of uploads.
        let count: Int
        /// The maximum number of uploads that the carrier has before their time: the others must not have to wait for
        /// them. Only the system takes such uploads.
        let later: Int
        /// Uploads that must wait even if they are due.
        let excluded: Set<QueuedUpload.ID>
    }

    /// The settings that decide.
    struct Rules: Sendable {
        /// The identifier of the background session, or `nil` for a sender in this process.
        var session: String?
        let retryPolicy: RetryPolicy
        /// Whether the app makes header fields whenever an upload is handed over.
        var makesFields = false
        /// Whether the app makes presigned forms in place of those that have expired.
        var makesForms = false
        /// The statuses of success of uploads whose endpoints do not say which.
        var acceptedStatuses = Set(200..<300)
        /// How long an upload may take as a whole; `nil` means no limit. The system applies its limit to each attempt.
        var totalTimeout: Duration?
        /// The maximum number of attempts that the carrier has at a time.
        var maximumConcurrentUploads: Int
        /// Whether the sender ends when no upload is left that can be sent.
        var endsWhenEmpty = false
        /// How long the sender waits for changes by other processes; `nil` means that there are none.
        var pollInterval: Duration?
    }
}

/// What the machine knows, and what it waits for.
extension QueueMachine {
    enum Connection {
        case disconnected
        /// The carrier is connected, but may not have all uploads that are claimed: those of earlier processes, and
        /// those after a failure that could not be saved.
        case connected
        /// The carrier has the attempts that the database says it has.
        case compared
    }

    /// What the machine waits for.
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

    /// What follows when all ends are recorded.
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

    struct OpenAttempt {
        let upload: QueuedUpload.ID
        /// The beginning of the response's body.
        var body = Data()
        /// What the next attempt can resume with.
        var resumeData: Data?
        var isSending = false
    }

    /// What only the current round needs to know.
    struct Round {
        var hasOnlyProgress = false
        /// Whether the carrier must be asked what is still to be reported. "All delivered" may have come before the
        /// handlers, or belong to an earlier wake-up.
        var mustList = false
        var nextDue: Date?
        /// Why the system carries nothing.
        var problem: SessionProblem?
    }
}
