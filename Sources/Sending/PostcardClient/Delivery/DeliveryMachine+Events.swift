import PostcardForm
import PostcardFoundation

extension DeliveryMachine {
    /// An event of an upload: the result of an action.
    enum Event: Sendable {
        case started
        case prepared(UploadRequest)
        /// - Parameter known: The facts that other uploads have learned about the request's server.
        case adapted(UploadRequest, KnownServer)
        case checked
        /// - Parameter url: The URL that responded. After a redirect it is not the request's URL.
        case responded(UploadResponse, from: URL)
        case verified
        case failed(UploadError)
        case decided(UploadDecision)
        case waited
    }

    /// The next action of an upload.
    enum Action: Sendable {
        /// Make the request of the form.
        ///
        /// - Parameters:
        ///   - limits: The size limits for the prepared parts.
        ///   - refusal: The server's refusal of an earlier, larger form; `nil` if there was none.
        case prepare(within: FormSizeLimits, after: UploadError?)
        /// Let the interceptors adapt the request of an attempt.
        case adapt(UploadRequest, attempt: Int)
        /// Check that the files have not changed since earlier attempts.
        ///
        /// - Parameter readBytes: The number of the form's bytes that an earlier process has sent. They are read again
        ///   for their digests. `nil` if this process has read them.
        case check(UploadRequest, readBytes: Int64?)
        /// Send a request, and wait for the response.
        ///
        /// - Parameters:
        ///   - accepting: The statuses of success; all others are redirects or refusals.
        ///   - acceptsEarly: Whether a success before the whole request was sent counts.
        ///   - isSecret: Whether the path of the URL gives access to the upload, and must not be logged.
        case send(UploadRequest, accepting: Set<Int>, acceptsEarly: Bool, isSecret: Bool)
        /// Compare the response with the form that was sent.
        case verify(UploadResponse, UploadRequest)
        /// Ask the interceptors what to do after a failure.
        case decide(UploadError, UploadAttempt)
        /// Wait before the next attempt.
        case wait(Duration, after: UploadError, nextAttempt: Int)
        case finish(UploadResponse)
        case fail(UploadError)
        /// Report an event that is impossible in the machine's state. The upload is over.
        case fault(ImpossibleEvent)
    }

    /// The settings by which the machine decides.
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
        /// The possible delivery of the form by earlier processes.
        var delivery = PossibleDelivery.neverArrived
        /// The size limits that are known before anything is sent.
        var limits = FormSizeLimits()
        /// Whether a form that is too large for the server is prepared again for the limit that the server reports.
        var followsServerLimit = false

        func schedule(_ policy: RetryPolicy) -> RetrySchedule {
            RetrySchedule(policy, for: url, totalTimeout: totalTimeout)
        }
    }
}
