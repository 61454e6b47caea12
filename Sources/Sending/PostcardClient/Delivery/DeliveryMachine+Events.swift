import PostcardForm
import PostcardFoundation

extension DeliveryMachine {
    /// What happened.
    enum Event: Sendable {
        case started
        case prepared(UploadRequest)
        /// - Parameter known: What is known from other uploads of the server that the request goes to.
        case adapted(UploadRequest, KnownServer)
        case checked
        /// - Parameter url: The URL that responded, which is another one after a redirect.
        case responded(UploadResponse, from: URL)
        case verified
        case failed(UploadError)
        case decided(UploadDecision)
        case waited
    }

    /// What to do next.
    enum Action: Sendable {
        /// Make the request of the form.
        ///
        /// - Parameters:
        ///   - limits: What its prepared parts must fit.
        ///   - refusal: The refusal of a larger form, if there was one.
        case prepare(within: FormSizeLimits, after: UploadError?)
        /// Adapt the request of an attempt, as the interceptors want it.
        case adapt(UploadRequest, attempt: Int)
        /// Check that the files have not changed since earlier attempts.
        ///
        /// - Parameter readBytes: How many bytes of the form an earlier process has sent, which are read for their
        ///   digests; `nil` if this process has read them.
        case check(UploadRequest, readBytes: Int64?)
        /// Send a request, and wait for the response.
        ///
        /// - Parameters:
        ///   - accepting: The statuses of success; all others are redirects or refusals.
        ///   - acceptsEarly: Whether a success counts if it comes before the whole request was sent.
        ///   - isSecret: Whether the path of its URL gives access to the upload, and must not be logged.
        case send(UploadRequest, accepting: Set<Int>, acceptsEarly: Bool, isSecret: Bool)
        /// Compare the response with the form of the request.
        case verify(UploadResponse, UploadRequest)
        /// Ask the interceptors what to do after a failure.
        case decide(UploadError, UploadAttempt)
        /// Wait before the next attempt.
        case wait(Duration, after: UploadError, nextAttempt: Int)
        case finish(UploadResponse)
        case fail(UploadError)
    }

    /// The settings that decide.
    struct Rules: Sendable {
        let url: URL
        var retryPolicy: RetryPolicy
        var hasInterceptors = false
        var acceptedStatuses = Set(200..<300)
        var acceptsEarly = false
        /// Whether responses are compared with the form.
        var verifies = false
        /// How long the upload may take as a whole; `nil` means no limit.
        var totalTimeout: Duration?
        /// What servers may have of the form from earlier processes.
        var delivery = PossibleDelivery.neverArrived
        /// The limits that are known before anything is sent.
        var limits = FormSizeLimits()
        /// Whether a form that the server refuses as too large is prepared again for the limit that it reports.
        var followsServerLimit = false

        func schedule(_ policy: RetryPolicy) -> RetrySchedule {
            RetrySchedule(policy, for: url, totalTimeout: totalTimeout)
        }
    }
}
