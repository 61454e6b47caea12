import HTTPTypes
public import PostcardClient
import PostcardFoundation

extension QueuedUpload {
    /// The failure of an attempt to send an upload.
    ///
    /// ```swift
    /// if case .failed(let failure) = upload.state {
    ///     show(failure.localizedDescription, failure.recoverySuggestion)
    ///     if failure.response?.status == 401 { signIn() }
    /// }
    /// ```
    public struct Failure: PostcardError, Hashable {
        /// The kind of failure: a code of the client, or one that this module adds.
        public let code: UploadError.Code

        /// What happened, in a sentence for logs.
        public let message: String

        /// What to do, in a sentence; `nil` if nothing helps.
        public let advice: String?

        /// The server's response, if the server refused the form.
        public let response: Response?

        /// Whether the form may have arrived, in this attempt or an earlier one.
        public let delivery: UploadError.Delivery

        /// Makes a failure, for previews and tests. Its delivery defaults to `refused` with a response, and to
        /// `neverArrived` without one.
        public init(
            _ code: UploadError.Code, _ message: String, advice: String? = nil, response: Response? = nil,
            delivery: UploadError.Delivery? = nil
        ) {
            self.code = code
            self.message = message
            self.advice = advice
            self.response = response
            self.delivery = delivery ?? (response == nil ? .neverArrived : .refused)
        }

        static let expired = Failure(
            .expired, "The upload did not arrive before its time was over.",
            advice: "Retry it if it is still of use: it then has no end.", delivery: .responseLost)

        /// The failure of an attempt that was stopped after the form was sent, because the run was cancelled or failed.
        static let stopped = Failure(
            .interrupted, "The attempt was stopped while it waited for the response.", delivery: .responseLost)

        /// The failure of an upload that is not sent again, because its user must decide whether the form has arrived.
        static func unclear(after failure: Failure) -> Failure {
            Failure(
                .unclear, "The server may have the form. \(failure.message)",
                advice: "Check whether it arrived. If not, retry the upload.", delivery: .responseLost)
        }

        static let pickLost = Failure(
            .pickLost, "What was picked was not copied before the app ended, and cannot be found again.",
            advice: "Pick it again. Later runs find photos if the picker has a photo library and the app may read it.")

        static func notImported(_ error: any Error) -> Failure {
            if let error = error as? UploadError { return Failure(error) }
            if let error = error as? FormError { return Failure(.form(error)) }
            return Failure(
                .notImported, "What was picked could not be copied: \(error)",
                advice: "The queue tries again while the upload is importing. If it has failed, pick the item again.")
        }

        static func damaged(_ message: String) -> Failure {
            Failure(.damaged, message, advice: "Enqueue the form again.", delivery: .responseLost)
        }

        init(_ error: UploadError) {
            self.init(
                error.code, error.message, advice: error.advice ?? Self.advice[error.code],
                response: error.response.map(Response.init), delivery: error.delivery)
        }

        private static let advice: [UploadError.Code: String] = [
            .intercepted:
                "If the network asks its users to sign in, open any page in a browser, or use another network.",
            .rejected: "See what the server said. The form is kept: retry the upload when the reason is gone.",
        ]
    }
}

extension UploadError.Code {
    /// The system ended an attempt without a response, because it lost the upload or cancelled it without a reason.
    public static let interrupted = UploadError.Code(rawValue: "interrupted")
    /// The user has quit the app in the app switcher, which cancels the uploads. They are sent again when the app runs.
    public static let forceQuit = UploadError.Code(rawValue: "force-quit")
    /// The user has turned off Background App Refresh for the app, so the system sends nothing in the background. Tell
    /// the user: the uploads continue when Background App Refresh is on again.
    public static let backgroundUpdatesDisabled = UploadError.Code(rawValue: "background-updates-disabled")
    /// The system cancelled the upload because of a lack of memory, space or energy.
    public static let insufficientResources = UploadError.Code(rawValue: "insufficient-resources")
    /// The system does not accept uploads for the background session, because another process uses the session or
    /// because the session is set up wrongly.
    public static let sessionUnavailable = UploadError.Code(rawValue: "session-unavailable")
    /// The upload could not be handed to the system, or its attempt was cancelled.
    public static let postponed = UploadError.Code(rawValue: "postponed")
    /// It is unknown whether the server accepted the form. Either the system followed a redirect without the form or to
    /// another server, or the response was lost and `RetryPolicy.repeatsUnclear` is `false`. Ask the user:
    /// ``UploadQueue/retry(_:)`` sends the form again, and ``UploadQueue/confirmArrival(of:)`` records that the server
    /// has it.
    public static let unclear = UploadError.Code(rawValue: "unclear")
    /// The upload did not arrive before it expired (see ``UploadConditions/expires``).
    public static let expired = UploadError.Code(rawValue: "expired")
    /// The response is an HTML page although the form asked for JSON. It may be the sign-in page of the network, so the
    /// upload waits for another network.
    public static let intercepted = UploadError.Code(rawValue: "intercepted")
    /// The app rejected the server's response (see ``BackgroundSession/accepts``).
    public static let rejected = UploadError.Code(rawValue: "rejected")
    /// The picked item was not copied before the app ended, and cannot be found again.
    public static let pickLost = UploadError.Code(rawValue: "pick-lost")
    /// The picked item could not be copied. Copying is tried again if that may help.
    public static let notImported = UploadError.Code(rawValue: "not-imported")
    /// The upload's row in the queue's database is damaged.
    public static let damaged = UploadError.Code(rawValue: "damaged")

    /// The codes whose sentences are in this module's catalog.
    fileprivate static let ofQueue: Set<UploadError.Code> = [
        interrupted, forceQuit, backgroundUpdatesDisabled, insufficientResources, sessionUnavailable, postponed,
        unclear, expired, intercepted, rejected, pickLost, notImported, damaged,
    ]
}

extension QueuedUpload.Failure {
    /// What happened, for users of the app: in English or Korean on Apple platforms, and ``message`` elsewhere.
    /// `localizedDescription` returns this text.
    public var errorDescription: String? {
        localizedMessage.map { $0.localized ?? message } ?? uploadError.errorDescription
    }

    /// What to do, for users of the app: in English or Korean on Apple platforms, and ``advice`` elsewhere.
    public var recoverySuggestion: String? {
        localizedAdvice.map { $0.localized ?? advice } ?? uploadError.recoverySuggestion
    }

    /// The sentence of this module's catalog; `nil` if the client's catalog has the sentence.
    var localizedMessage: LocalizedText? {
        UploadError.Code.ofQueue.contains(code) ? LocalizedText(key: "UploadFailure.\(code)") : nil
    }

    var localizedAdvice: LocalizedText? {
        UploadError.Code.ofQueue.contains(code) ? LocalizedText(key: "UploadFailure.\(code).advice") : nil
    }

    /// The client's error with the same code, whose sentences are in the client's catalog.
    private var uploadError: UploadError {
        UploadError(stored: code, message, response: response.map(UploadResponse.init), delivery: delivery)
    }
}

/// The reason why an app rejects a server's response. The closures ``BackgroundSession/accepts`` and
/// ``QueueOptions/accepts`` throw it.
///
/// ```swift
/// session.accepts = { upload, response in
///     let pet = try response.decode(StoredPet.self)
///     if pet.isBusy { throw ResponseRejection("the server is busy", mayPass: true) }
///     guard pet.isStored else { throw ResponseRejection(pet.reason) }
/// }
/// ```
public struct ResponseRejection: PostcardError, Hashable {
    /// What is wrong with the response, for logs.
    public let message: String

    /// Whether another attempt may succeed. If so, the upload is retried as after a failed connection.
    public let mayPass: Bool

    /// Makes a rejection.
    ///
    /// - Parameters:
    ///   - message: The problem with the response.
    ///   - mayPass: Whether another attempt may succeed. Defaults to `false`: the upload has failed.
    public init(_ message: String, mayPass: Bool = false) {
        self.message = message
        self.mayPass = mayPass
    }
}

/// The reason why the system does not accept uploads for a background session.
package enum SessionProblem: Error, Sendable, Hashable {
    /// An extension's session has no app group.
    case requiresSharedContainer
    /// Another process uses the session.
    case inUse
    /// The session ended by itself, several times in a row. The text is the reason.
    case invalid(String)
}

extension SessionProblem {
    var message: String {
        switch self {
        case .requiresSharedContainer: "The system does not carry the background session, because it has no app group."
        case .inUse: "Another process uses the background session."
        case .invalid(let reason): "The system ends the background session again and again: \(reason)."
        }
    }

    var advice: String {
        switch self {
        case .requiresSharedContainer: "Set the session's appGroup to a group of the app and its extension."
        case .inUse:
            "Give each run of an extension a session of its own, with BackgroundSession(extension:appGroup:). The uploads "
                + "stay in the queue, and are sent when they are handed over again or the app runs."
        case .invalid: "Run the queue again. If that does not help, restart the device."
        }
    }

    /// Finds the reason why the system has ended a session.
    ///
    /// - Parameters:
    ///   - code: The code in `NSURLErrorDomain`, if there is one.
    ///   - reason: The system's description of the error.
    package init(systemCode code: Int?, _ reason: String) {
        switch code {
        case Self.inUseCode: self = .inUse
        case Self.requiresSharedContainerCode: self = .requiresSharedContainer
        default: self = .invalid(reason)
        }
    }

    /// `NSURLErrorBackgroundSessionInUseByAnotherProcess`
    static let inUseCode = -996
    /// `NSURLErrorBackgroundSessionRequiresSharedContainer`
    static let requiresSharedContainerCode = -995

    /// Whether a new session may work.
    var mayPass: Bool { if case .invalid = self { true } else { false } }

    /// The failure of an upload that could not be sent because of this problem.
    var failure: QueuedUpload.Failure {
        QueuedUpload.Failure(.sessionUnavailable, message, advice: advice, delivery: .responseLost)
    }
}
