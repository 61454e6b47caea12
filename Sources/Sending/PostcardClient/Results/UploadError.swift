import HTTPTypes
public import PostcardForm
import PostcardFoundation
import PostcardWire

/// An error that an upload failed with.
///
/// ```swift
/// do {
///     try await client.upload(form, to: url)
/// } catch let error as UploadError where error.code == .refused {
///     print(error.message, error.response?.status.code ?? 0)
/// }
/// ```
public struct UploadError: PostcardError {
    /// The kind of failure; stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// The URL cannot receive a form.
        public static let invalidURL = Code(rawValue: "invalid-url")
        /// The form cannot be read; ``UploadError/formError`` says why.
        public static let form = Code(rawValue: "form")
        /// The form breaks a rule of the client (``UploadClient/rules``), and nothing was sent.
        /// ``UploadError/underlyingError`` is the `FormProblem`.
        public static let brokenRule = Code(rawValue: "broken-rule")
        /// The form breaks a condition of its signed policy or cannot be sent to an object store at all, and nothing
        /// was sent. The message names the condition, and says what to do.
        public static let brokenPolicy = Code(rawValue: "broken-policy")
        /// The presigned form has expired by this device's clock, so nothing was sent.
        public static let formExpired = Code(rawValue: "form-expired")
        /// No connection could be made, so nothing was sent.
        public static let connectionFailed = Code(rawValue: "connection-failed")
        /// The connection broke before the whole response was received. The form may have arrived.
        public static let connectionLost = Code(rawValue: "connection-lost")
        /// No byte moved for ``UploadTimeouts/idle``, or the response took longer than ``UploadTimeouts/response``.
        /// ``UploadError/phase`` is the phase in which the upload timed out.
        public static let timedOut = Code(rawValue: "timed-out")
        /// Connecting took longer than ``UploadTimeouts/connect``, so nothing was sent.
        public static let connectTimedOut = Code(rawValue: "connect-timed-out")
        /// The upload took longer than ``UploadTimeouts/total``.
        public static let deadlinePassed = Code(rawValue: "deadline-passed")
        /// No secure connection could be made, so nothing was sent. Either the handshake broke, or the server's
        /// certificate is not trusted, as on a network whose users must sign in first. A queue tries again, unless the
        /// server requires a client certificate, App Transport Security forbids the connection, or the app rejected the
        /// server.
        public static let tls = Code(rawValue: "tls")
        /// The server responded with a status that is neither accepted nor a followed redirect.
        /// ``UploadError/response`` is the response.
        public static let refused = Code(rawValue: "refused")
        /// The server responded with success before the whole form was sent, so it cannot have the whole form.
        /// ``UploadError/response`` is the response. See ``ResponseOptions/acceptsEarly``.
        public static let earlyResponse = Code(rawValue: "early-response")
        /// The response body is larger than ``ResponseOptions/maximumBytes``.
        public static let responseTooLarge = Code(rawValue: "response-too-large")
        /// The server accepted the form, but ``ResponseOptions/verification`` found that the server received other
        /// bytes than were sent. ``UploadError/response`` is the response.
        public static let altered = Code(rawValue: "altered")
        /// An interceptor failed in a queue's upload, and the message contains its error. The queue tries again. A
        /// client throws the interceptor's error itself instead.
        public static let interceptorFailed = Code(rawValue: "interceptor-failed")
        /// The response is not the expected JSON. ``UploadError/response`` is the response.
        public static let decoding = Code(rawValue: "decoding")
    }

    /// The phases of an upload that can time out.
    public enum Phase: String, Sendable, Hashable {
        /// The upload was waiting for a connection.
        case connecting
        /// The upload was waiting for the connection to accept more bytes of the body.
        case sending
        /// The whole body was sent, and the upload was waiting for the response.
        case waiting
        /// The upload was waiting for the rest of the response.
        case receiving
    }

    /// The kind of failure.
    public let code: Code

    /// What happened, and where, in a sentence or two.
    public internal(set) var message: String

    /// The message without the text of the response, for readers who see the response too.
    package private(set) var messageBesidesResponse: String

    /// The server's response; `nil` if there was none.
    public let response: UploadResponse?

    /// The phase in which the upload timed out; `nil` if it did not time out.
    public let phase: Phase?

    /// The error of the layer below, if there is one. If the form was refused as too large and making it smaller
    /// failed, this is the error of making it smaller.
    public internal(set) var underlyingError: (any Error)?

    /// The number of attempts made, including this one.
    public internal(set) var attempts = 1

    /// Whether the form may have arrived. It decides whether it is safe to send the form again.
    public internal(set) var delivery: Delivery

    /// Whether a redirect led to another origin than that of the caller's URL.
    var hasLeftOrigin = false

    /// Whether the form must not be sent again, because an interceptor's decision has led to this error.
    var isFinal = false

    /// The chance that another attempt succeeds; `nil` if the code alone determines it.
    package private(set) var outlook: Outlook?

    /// The server's announcement about resuming the upload, from before the request failed.
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

    /// Makes an error from its stored properties.
    package init(stored code: Code, _ message: String, response: UploadResponse?, delivery: Delivery) {
        self.init(code, message, response: response)
        self.delivery = delivery
    }

    /// Makes an error whose code alone does not say whether another attempt may succeed.
    package init(
        _ code: Code, _ message: String, _ outlook: Outlook, response: UploadResponse? = nil,
        delivery: Delivery = .neverArrived, underlyingError: (any Error)? = nil
    ) {
        self.init(code, message, response: response, underlyingError: underlyingError)
        self.delivery = delivery
        self.outlook = outlook
    }

    /// The problem with the form, for the code ``Code/form``; `nil` for other codes.
    public var formError: FormError? { code == .form ? underlyingError as? FormError : nil }

    /// The server's description of the problem, if the response has the format of RFC 9457.
    public var problem: ProblemDetails? { response?.problem }

    /// The object store's description of the problem, if the server uses the protocol of Amazon S3.
    public var objectStoreProblem: ObjectStoreProblem? { response?.objectStoreProblem }

    /// This error with another sentence in its message.
    package func adding(_ sentence: String) -> UploadError {
        var error = self
        for path in [\UploadError.message, \.messageBesidesResponse] {
            error[keyPath: path] += self[keyPath: path].last == "." ? " \(sentence)" : ". \(sentence)"
        }
        return error
    }

    /// This error with the response's reason in its message.
    func citing(_ reason: String) -> UploadError {
        var error = self
        error.message += ": \(reason)"
        return error
    }
}

extension UploadError {
    /// What happened, for users of the app. On Apple platforms the text is in English or Korean, without addresses and
    /// technical details. Elsewhere it is ``message``. `localizedDescription` returns this text.
    public var errorDescription: String? { localizedMessage.localized ?? message }

    /// What to do, for users of the app. On Apple platforms the text is in English or Korean. Elsewhere it is
    /// ``advice``.
    public var recoverySuggestion: String? { localizedAdvice.localized ?? advice }
}

extension UploadError {
    /// Whether the form may have arrived at a server.
    public enum Delivery: String, Sendable, Hashable {
        /// No server has the whole form: it is safe to send the form again.
        case neverArrived = "never-arrived"
        /// A server has refused the form. Sending the form again is safe, but fails until the reason for the refusal is
        /// gone.
        case refused
        /// The whole form was sent, in this attempt or an earlier one, and it is not known whether the server accepted
        /// it. Either there was no response, or the response says that the server or a proxy does not know: 500, 502,
        /// 504, or Cloudflare's 520, 522, 524 or 527. Sending the form again may store it twice, unless the server
        /// honors the `Idempotency-Key`.
        case responseLost = "response-lost"
        /// A server has accepted the form, and a later step failed. The form must not be sent again.
        case accepted

        /// Whether a server may have accepted the form.
        package var mayHaveArrived: Bool { self == .responseLost || self == .accepted }
    }
}

extension UploadError {
    /// Whether another attempt may succeed.
    package enum Outlook: Sendable, Hashable {
        /// Another attempt may succeed at any time, such as after a broken TLS handshake.
        case passes
        /// Another attempt may succeed on another network, such as after a network responded in the server's place with
        /// a certificate that is not trusted.
        case passesElsewhere
        /// Another attempt fails in the same way, such as with a server that requires a client certificate.
        case lasts
    }
}

extension UploadResponse {
    /// The delivery of the form according to this response, which is a refusal.
    var delivery: UploadError.Delivery {
        // A server cannot accept a body that was not sent to its end.
        [500, 502, 504, 520, 522, 524, 527].contains(status.code) && !isEarly ? .responseLost : .refused
    }
}

extension UploadError.Code {
    /// The delivery of the form according to the error code alone. It assumes the worst: that the whole form may have
    /// been sent. Callers that know more correct this value.
    package var usualDelivery: UploadError.Delivery {
        switch self {
        case .refused: .refused
        case .connectionLost, .timedOut, .deadlinePassed, .responseTooLarge: .responseLost
        case .altered, .decoding: .accepted
        default: .neverArrived
        }
    }
}

extension UploadError {
    /// The limits in a refusal that the form exceeds. Only such limits can be the reason for the refusal.
    ///
    /// The limits are read from the `limit` and the `limits` of a problem with status 413, as Postcard's server writes
    /// them, and from the `max-size` of `Upload-Limit` (draft-ietf-httpbis-resumable-upload) with any status.
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

    /// Whether the form was refused as too large without a limit. Such responses usually come from proxies.
    package var namesNoLimit: Bool {
        guard let response, response.status == .contentTooLarge else { return false }
        return problem?["limit"] == nil && problem?["limits"] == nil
            && response.headerFields.uploadLimits(in: .newest) == nil
    }
}

extension FormSizeLimits {
    /// Reads a size limit in the format of Postcard's server. Returns `nil` for any other limit, because the client
    /// cannot adapt a form to it.
    fileprivate init?(_ limit: JSONValue) {
        guard let name = limit["name"]?.text,
            let value = limit["value"]?.number.flatMap({ Int64(exactly: $0.rounded(.down)) })
        else { return nil }
        switch name {
        case "maximumBodyBytes": self.init(maximumBodyBytes: value)
        case "maximumFileBytes": self.init(maximumFileBytes: value)
        case "maximumBytesOfAllFiles": self.init(maximumBytesOfAllFiles: value)
        // Such a limit is a rule for the files of one field.
        case let name where name.hasPrefix("files.") && name.dropFirst(6).hasSuffix(".maximumBytes"):
            self.init(maximumBytesByName: [String(name.dropFirst(6).dropLast(13)): value])
        default: return nil
        }
    }
}
