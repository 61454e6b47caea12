import PostcardFoundation

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
