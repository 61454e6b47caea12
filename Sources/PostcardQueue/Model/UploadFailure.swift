import HTTPTypes
public import PostcardClient
public import PostcardFoundation

extension QueuedUpload {
    /// Why an attempt to send an upload failed.
    ///
    /// ```swift
    /// if case .failed(let failure) = upload.state {
    ///     show(failure.localizedDescription, failure.recoverySuggestion)
    ///     if failure.response?.status == 401 { signIn() }
    /// }
    /// ```
    public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The kind of failure: one of a client's, or one of the codes that this module adds.
        public let code: UploadError.Code

        /// What happened, for logs.
        public let message: String

        /// What to do, or `nil` if nothing helps.
        public let advice: String?

        /// The server's response, if the server refused the form.
        public let response: Response?

        /// Whether this attempt or an earlier one may have delivered the form. If so, sending it again may store it
        /// twice, unless the server honors the `Idempotency-Key`.
        public let mayHaveArrived: Bool

        public var description: String { message }

        init(
            _ code: UploadError.Code, _ message: String, advice: String? = nil, response: Response? = nil,
            mayHaveArrived: Bool = false
        ) {
            self.code = code
            self.message = message
            self.advice = advice
            self.response = response
            self.mayHaveArrived = mayHaveArrived
        }

        static let expired = Failure(
            .expired, "The upload did not arrive before its time was over.",
            advice: "Retry it if it is still of use: it then has no end.", mayHaveArrived: true)

        static func damaged(_ message: String) -> Failure {
            Failure(.damaged, message, advice: "Enqueue the form again.", mayHaveArrived: true)
        }

        init(_ error: UploadError) {
            self.init(
                error.code, error.message, advice: error.advice, response: error.response.map(Response.init),
                mayHaveArrived: error.mayHaveArrived)
        }
    }
}

extension UploadError.Code {
    /// The system ended an attempt without a response: it lost the upload, or cancelled it without a reason.
    public static let interrupted = UploadError.Code(rawValue: "interrupted")
    /// The user has quit the app in the app switcher, which cancels its uploads. They are sent again when the app runs.
    public static let forceQuit = UploadError.Code(rawValue: "force-quit")
    /// The system sends nothing for the app in the background, because the user has turned off Background App Refresh
    /// for it. Show this to the user: the uploads continue when it is on again.
    public static let backgroundUpdatesDisabled = UploadError.Code(rawValue: "background-updates-disabled")
    /// The system cancelled the upload because it lacks memory, space or energy.
    public static let insufficientResources = UploadError.Code(rawValue: "insufficient-resources")
    /// The system does not carry the background session's uploads: another process uses it, or it is set up wrongly.
    public static let sessionUnavailable = UploadError.Code(rawValue: "session-unavailable")
    /// The upload could not be handed to the system, or its attempt was cancelled.
    public static let postponed = UploadError.Code(rawValue: "postponed")
    /// Nothing says what became of the form, because the system followed a redirect without it or to another server.
    public static let unclear = UploadError.Code(rawValue: "unclear")
    /// The upload did not arrive before its time was over, see ``UploadConditions/expires``.
    public static let expired = UploadError.Code(rawValue: "expired")
    /// The upload's row in the queue's database is damaged.
    public static let damaged = UploadError.Code(rawValue: "damaged")

    /// Those whose sentences are in this module's catalog.
    fileprivate static let ofQueue: Set<UploadError.Code> = [
        interrupted, forceQuit, backgroundUpdatesDisabled, insufficientResources, sessionUnavailable, postponed,
        unclear, expired, damaged,
    ]
}

extension QueuedUpload.Failure: LocalizedError {
    /// What happened, for the person who uses the app: in English or Korean on Apple platforms, and ``message``
    /// elsewhere. This is what `localizedDescription` returns.
    public var errorDescription: String? {
        localizedMessage.map { $0.localized ?? message } ?? uploadError.errorDescription
    }

    /// What to do, for the person who uses the app: in English or Korean on Apple platforms, and ``advice`` elsewhere.
    public var recoverySuggestion: String? {
        localizedAdvice.map { $0.localized ?? advice } ?? uploadError.recoverySuggestion
    }

    /// The sentence of this module's catalog, or `nil` if the client has it.
    var localizedMessage: LocalizedText? {
        UploadError.Code.ofQueue.contains(code) ? LocalizedText(key: "UploadFailure.\(code)") : nil
    }

    var localizedAdvice: LocalizedText? {
        UploadError.Code.ofQueue.contains(code) ? LocalizedText(key: "UploadFailure.\(code).advice") : nil
    }

    /// The client's error with the same code, which knows its sentences.
    private var uploadError: UploadError {
        UploadError(
            stored: code, message,
            response: response.map { response in
                UploadResponse(
                    status: HTTPResponse.Status(code: min(max(response.status, 0), 999)),
                    headerFields: response.headerFields, body: response.body)
            }, delivery: mayHaveArrived ? .responseLost : response == nil ? .neverArrived : .refused)
    }
}
