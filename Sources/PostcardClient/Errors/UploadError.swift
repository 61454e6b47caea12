public import PostcardForm

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Why an upload failed, in words for the person who reads them.
///
/// ```swift
/// do {
///     try await client.upload(form, to: url)
/// } catch let error as UploadError where error.code == .refused {
///     print(error.message, error.response?.status.code ?? 0)
/// }
/// ```
public struct UploadError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is; stable across versions.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The kind as a word, such as `connection-lost`, for logs and for programs that read them.
        public let rawValue: String

        /// Makes a kind of failure from its word, known or not.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The URL is not one that a form can be sent to.
        public static let invalidURL = Code(rawValue: "invalid-url")
        /// The form cannot be read; ``UploadError/formError`` says why.
        public static let form = Code(rawValue: "form")
        /// The form breaks one of the client's rules: nothing was sent. ``UploadError/underlying`` is the `FormProblem`.
        public static let brokenRule = Code(rawValue: "broken-rule")
        /// No connection came about: nothing was sent.
        public static let connectionFailed = Code(rawValue: "connection-failed")
        /// The connection broke before the whole response had come. What was sent may have arrived.
        public static let connectionLost = Code(rawValue: "connection-lost")
        /// No byte moved for as long as ``UploadClient/idleTimeout`` allows, or the answer took longer than
        /// ``UploadClient/answerTimeout`` allows; ``UploadError/phase`` says what was waited for.
        public static let timedOut = Code(rawValue: "timed-out")
        /// No connection came about in the time allowed: nothing was sent.
        public static let connectTimedOut = Code(rawValue: "connect-timed-out")
        /// The upload took longer than ``UploadClient/totalTimeout`` allows.
        public static let deadlinePassed = Code(rawValue: "deadline-passed")
        /// The server's identity or its encryption was not accepted: nothing was sent.
        public static let tls = Code(rawValue: "tls")
        /// The server answered with a status that is not one of those accepted, nor a redirect that is followed;
        /// ``UploadError/response`` holds the answer.
        public static let refused = Code(rawValue: "refused")
        /// The server answered with success before the whole form was sent, so that it cannot have it;
        /// ``UploadError/response`` holds the answer. See ``UploadClient/acceptsEarlyAnswers``.
        public static let answeredEarly = Code(rawValue: "answered-early")
        /// The response's body is larger than allowed.
        public static let responseTooLarge = Code(rawValue: "response-too-large")
        /// The server accepted the form and has something else than was sent: ``UploadClient/verification`` found it.
        /// ``UploadError/response`` holds the answer.
        public static let altered = Code(rawValue: "altered")
        /// The response is not the JSON that was expected; ``UploadError/response`` holds it.
        public static let decoding = Code(rawValue: "decoding")

        public var description: String { rawValue }
    }

    /// What the upload was waiting for when its time ran out.
    public enum Phase: String, Sendable, Hashable {
        /// The connection.
        case connecting
        /// The connection to take more of the body.
        case sending
        /// The response, the whole body having been sent.
        case waiting
        /// The rest of the response.
        case receiving
    }

    /// What kind of failure it is.
    public let code: Code

    /// What happened, where, and what to do, in a sentence or two.
    public internal(set) var message: String

    /// The server's answer, where there is one.
    public let response: UploadResponse?

    /// What the upload was waiting for, where its time ran out.
    public let phase: Phase?

    /// What the error was made from, where it comes from below.
    public let underlying: (any Error)?

    /// The number of attempts made, this one included.
    public internal(set) var attempts = 1

    /// What is known of the form's whereabouts: whether it never arrived, was refused, or may have been taken.
    public internal(set) var delivery: Delivery

    /// Whether it comes from another origin than the caller's, to which a redirect has led.
    var hasLeftOrigin = false

    init(
        _ code: Code, _ message: String, response: UploadResponse? = nil, phase: Phase? = nil,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.response = response
        self.phase = phase
        self.underlying = underlying
        delivery = code.usualDelivery
    }

    /// What is wrong with the form, for the code ``Code/form``.
    public var formError: FormError? { underlying as? FormError }

    /// What the server says is wrong, where it says so as RFC 9457 has it.
    public var problem: ProblemDetails? { response?.problem }

    public var description: String { message }

    /// The same error with one more sentence.
    func adding(_ sentence: String) -> UploadError {
        var error = self
        error.message += message.last == "." ? " \(sentence)" : ". \(sentence)"
        return error
    }
}

extension UploadError: LocalizedError {
    /// What happened, for the person who uses the app: in English or Korean on Apple platforms, without addresses and
    /// technical details; the same as ``message`` elsewhere. This is what `localizedDescription` returns.
    public var errorDescription: String? { localizedMessage.localized ?? message }

    /// What to do, for the person who uses the app: in English or Korean on Apple platforms; the same as ``advice``
    /// elsewhere.
    public var recoverySuggestion: String? { localizedAdvice.localized ?? advice }
}
