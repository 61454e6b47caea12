import HTTPTypes
public import PostcardForm
public import PostcardFoundation
import PostcardWire

/// Why an upload failed.
///
/// ```swift
/// do {
///     try await client.upload(form, to: url)
/// } catch let error as UploadError where error.code == .refused {
///     print(error.message, error.response?.status.code ?? 0)
/// }
/// ```
public struct UploadError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure; stable across versions.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The kind as a word, such as `connection-lost`, for logs and for programs that read them.
        public let rawValue: String

        /// Makes a code from its raw value, which need not be a known one.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// No form can be sent to the URL.
        public static let invalidURL = Code(rawValue: "invalid-url")
        /// The form cannot be read; ``UploadError/formError`` says why.
        public static let form = Code(rawValue: "form")
        /// The form breaks one of the client's rules: nothing was sent. ``UploadError/underlyingError`` is the
        /// `FormProblem`.
        public static let brokenRule = Code(rawValue: "broken-rule")
        /// The form breaks a condition of the policy that was signed for it, or cannot be sent to an object store at all:
        /// nothing was sent. The message says which condition, and what to do.
        public static let brokenPolicy = Code(rawValue: "broken-policy")
        /// The presigned form has expired, by this device's clock: nothing was sent.
        public static let formExpired = Code(rawValue: "form-expired")
        /// No connection could be made: nothing was sent.
        public static let connectionFailed = Code(rawValue: "connection-failed")
        /// The connection broke before the whole response was received. What was sent may have arrived.
        public static let connectionLost = Code(rawValue: "connection-lost")
        /// No byte moved for ``UploadTimeouts/idle``, or the response took longer than ``UploadTimeouts/response``;
        /// ``UploadError/phase`` says what was waited for.
        public static let timedOut = Code(rawValue: "timed-out")
        /// Connecting took longer than ``UploadTimeouts/connect``: nothing was sent.
        public static let connectTimedOut = Code(rawValue: "connect-timed-out")
        /// The upload took longer than ``UploadTimeouts/total``.
        public static let deadlinePassed = Code(rawValue: "deadline-passed")
        /// No secure connection could be made: nothing was sent. Either the handshake broke, or the server's certificate
        /// is not trusted, as on a network whose users must sign in first. A queue tries again, unless the server
        /// requires a client certificate, App Transport Security forbids the connection, or the app rejected the server.
        public static let tls = Code(rawValue: "tls")
        /// The server responded with a status that is neither accepted nor a redirect that is followed;
        /// ``UploadError/response`` is the response.
        public static let refused = Code(rawValue: "refused")
        /// The server responded with success before the whole form was sent, so it cannot have it;
        /// ``UploadError/response`` is the response. See ``ResponseOptions/acceptsEarly``.
        public static let earlyResponse = Code(rawValue: "early-response")
        /// The response body is larger than ``ResponseOptions/maximumBytes``.
        public static let responseTooLarge = Code(rawValue: "response-too-large")
        /// The server accepted the form, but received something else than was sent, as
        /// ``ResponseOptions/verification`` found. ``UploadError/response`` is the response.
        public static let altered = Code(rawValue: "altered")
        /// An interceptor failed, for an upload of a queue, which is tried again: the message says with which error. A
        /// client throws the interceptor's error itself.
        public static let interceptorFailed = Code(rawValue: "interceptor-failed")
        /// The response is not the expected JSON; ``UploadError/response`` is the response.
        public static let decoding = Code(rawValue: "decoding")

        public var description: String { rawValue }
    }

    /// What the upload was waiting for when it timed out.
    public enum Phase: String, Sendable, Hashable {
        /// The connection.
        case connecting
        /// The connection to take more of the body.
        case sending
        /// The response, after the whole body was sent.
        case waiting
        /// The rest of the response.
        case receiving
    }

    /// The kind of failure.
    public let code: Code

    /// What happened, where, and what to do, in a sentence or two.
    public internal(set) var message: String

    /// The message without what the response says itself, for someone who has seen the response.
    package private(set) var messageBesidesResponse: String

    /// The server's response, if there is one.
    public let response: UploadResponse?

    /// What the upload was waiting for, if it timed out.
    public let phase: Phase?

    /// The error of the layer below, if there is one. For a refused form that could not be prepared for the server's
    /// limit, it is the error of the preparation.
    public internal(set) var underlyingError: (any Error)?

    /// The number of attempts made, including this one.
    public internal(set) var attempts = 1

    /// Whether the form may have arrived, and with it whether it is safe to send it again.
    public internal(set) var delivery: Delivery

    /// Whether the error comes from another origin than the caller's, after a redirect.
    var hasLeftOrigin = false

    /// Whether an interceptor has decided that the form is not sent again.
    var isFinal = false

    /// What another attempt may change, if the code alone does not say that.
    package private(set) var outlook: Outlook?

    /// What the server said about resumption before the request failed.
    var announcement: ResumptionAnnouncement?

    init(
        _ code: Code, _ message: String, response: UploadResponse? = nil, phase: Phase? = nil,
        underlyingError: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        messageBesidesResponse = message
        self.response = response
        self.phase = phase
        self.underlyingError = underlyingError
        delivery = code.usualDelivery
        announcement = response?.announcement
    }

    /// Makes an error again that was stored.
    package init(stored code: Code, _ message: String, response: UploadResponse?, delivery: Delivery) {
        self.init(code, message, response: response)
        self.delivery = delivery
    }

    /// Makes an error of which the code does not say what another attempt may change.
    package init(
        _ code: Code, _ message: String, _ outlook: Outlook, response: UploadResponse? = nil,
        delivery: Delivery = .neverArrived, underlyingError: (any Error)? = nil
    ) {
        self.init(code, message, response: response, underlyingError: underlyingError)
        self.delivery = delivery
        self.outlook = outlook
    }

    /// What is wrong with the form, for the code ``Code/form``.
    public var formError: FormError? { code == .form ? underlyingError as? FormError : nil }

    /// What the server says is wrong, if it says so as RFC 9457 specifies.
    public var problem: ProblemDetails? { response?.problem }

    /// What the object store says is wrong, if it is one that speaks the protocol of Amazon S3.
    public var objectStoreProblem: ObjectStoreProblem? { response?.objectStoreProblem }

    public var description: String { message }

    /// The same error with another sentence in its message.
    package func adding(_ sentence: String) -> UploadError {
        var error = self
        for path in [\UploadError.message, \.messageBesidesResponse] {
            error[keyPath: path] += self[keyPath: path].last == "." ? " \(sentence)" : ". \(sentence)"
        }
        return error
    }

    /// The same error with what its response says.
    func citing(_ reason: String) -> UploadError {
        var error = self
        error.message += ": \(reason)"
        return error
    }
}

extension UploadError: LocalizedError {
    /// What happened, for the user of the app: in English or Korean on Apple platforms, without addresses and technical
    /// details; the same as ``message`` elsewhere. This is what `localizedDescription` returns.
    public var errorDescription: String? { localizedMessage.localized ?? message }

    /// What to do, for the user of the app: in English or Korean on Apple platforms; the same as ``advice`` elsewhere.
    public var recoverySuggestion: String? { localizedAdvice.localized ?? advice }
}

extension UploadError {
    /// Whether the form may have arrived.
    public enum Delivery: String, Sendable, Hashable {
        /// No server has the whole form: it is safe to send it again.
        case neverArrived = "never-arrived"
        /// A server has refused the form: it is safe to send it again, and useless unless the reason passes.
        case refused
        /// The whole form was sent, in this attempt or an earlier one, and what became of it is not known: there was no
        /// response, or one which says that the server or a proxy does not know either: 500, 502, 504, or Cloudflare's
        /// 520, 522, 524 or 527. Sending it again may store it twice, unless the server honors the `Idempotency-Key`.
        case responseLost = "response-lost"
        /// A server has accepted the form, and something failed after that. It must not be sent again.
        case accepted
    }
}

extension UploadError {
    /// What another attempt may change.
    package enum Outlook: Sendable, Hashable {
        /// The failure may pass at any time, like a connection that broke: such as a TLS handshake that broke.
        case passes
        /// The failure may be the network's, and pass on another one: such as a certificate that is not trusted, because
        /// the network responds in the server's place.
        case passesElsewhere
        /// The failure lasts: such as a server that requires a client certificate.
        case lasts
    }
}

extension UploadResponse {
    /// What a refusal says about the form that was sent.
    var delivery: UploadError.Delivery {
        // A body that was not sent to its end is not a form to any server.
        [500, 502, 504, 520, 522, 524, 527].contains(status.code) && !isEarly ? .responseLost : .refused
    }
}

extension UploadError.Code {
    /// What a failure says by itself. Where a lost connection may mean several things, this is the worst of them; code
    /// that knows whether the whole form was sent changes it.
    var usualDelivery: UploadError.Delivery {
        switch self {
        case .refused: .refused
        case .connectionLost, .timedOut, .deadlinePassed, .responseTooLarge: .responseLost
        case .altered, .decoding: .accepted
        default: .neverArrived
        }
    }
}

extension UploadError {
    /// The limits that a refusal reports and that the form exceeds. A limit that the form keeps is not the reason.
    ///
    /// The limits are the `limit` and the `limits` of a problem with status 413, as Postcard's server writes them, and the
    /// `max-size` of `Upload-Limit` (draft-ietf-httpbis-resumable-upload) with any status.
    func limits(exceededBy layout: FormLayout) -> FormSizeLimits? {
        guard let response else { return nil }
        var reported = FormSizeLimits(
            maximumBodyBytes: response.headerFields.uploadLimits(in: .newest)?.maximumBytes)
        if response.status == .contentTooLarge, let problem {
            var listed: [JSONValue] = []
            if case .array(let limits) = problem["limits"] { listed = limits }
            for limit in [problem["limit"]].compactMap(\.self) + listed {
                if let limit = FormSizeLimits(limit) { reported = reported.lowered(by: limit) }
            }
        }
        return reported.exceeded(by: layout)
    }

    /// Whether this is a refusal of a form as too large that reports no limit, as proxies send it.
    package var namesNoLimit: Bool {
        guard let response, response.status == .contentTooLarge else { return false }
        return problem?["limit"] == nil && problem?["limits"] == nil
            && response.headerFields.uploadLimits(in: .newest) == nil
    }
}

extension FormSizeLimits {
    /// One limit as Postcard's server writes it; `nil` if it is not about sizes that a client can change.
    fileprivate init?(_ limit: JSONValue) {
        guard let name = limit["name"]?.text,
            let value = limit["value"]?.number.flatMap({ Int64(exactly: $0.rounded(.down)) })
        else { return nil }
        switch name {
        case "maximumBodyBytes": self.init(maximumBodyBytes: value)
        case "maximumFileBytes": self.init(maximumFileBytes: value)
        case "maximumBytesOfAllFiles": self.init(maximumBytesOfAllFiles: value)
        // A rule on the files of one field.
        case let name where name.hasPrefix("files.") && name.dropFirst(6).hasSuffix(".maximumBytes"):
            self.init(maximumBytesByName: [String(name.dropFirst(6).dropLast(13)): value])
        default: return nil
        }
    }
}
