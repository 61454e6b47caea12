import HTTPTypes
package import PostcardForm
public import PostcardFoundation
import PostcardWire

/// Factories for the errors of an upload. The public factories are for transports.
extension UploadError {
    /// No connection could be made.
    public static func connectionFailed(
        to url: URL, _ reason: String, underlyingError: (any Error)? = nil
    ) -> UploadError {
        UploadError(.connectionFailed, "No connection to \(url.address): \(reason)", underlyingError: underlyingError)
    }

    /// The connection broke before the whole response was received.
    public static func connectionLost(
        to url: URL, _ reason: String, underlyingError: (any Error)? = nil
    ) -> UploadError {
        UploadError(
            .connectionLost, "The connection to \(url.address) broke before the whole response was received: \(reason)",
            underlyingError: underlyingError)
    }

    /// The last response to a request was an interim response, perhaps because a proxy took it for the final one.
    static func endedByInterimResponse(_ response: UploadResponse, by url: URL) -> UploadError {
        .connectionLost(
            to: url, "the last response was \(response.statusText), which a proxy may have taken for the final one")
    }

    /// The server's certificate or its encryption was rejected.
    public static func tls(with url: URL, _ reason: String, underlyingError: (any Error)? = nil) -> UploadError {
        tls(.passesElsewhere, with: url, reason, underlyingError: underlyingError)
    }

    /// No secure connection could be made.
    package static func tls(
        _ outlook: Outlook, with url: URL, _ reason: String, underlyingError: (any Error)? = nil
    ) -> UploadError {
        UploadError(
            .tls, "No secure connection to \(url.address): \(reason)", outlook, underlyingError: underlyingError)
    }

    /// An interceptor threw an error.
    ///
    /// - Parameters:
    ///   - url: The URL of the upload.
    ///   - failure: The failure of the latest attempt. Defaults to `nil`, which means that nothing was sent yet.
    ///   - cause: The interceptor's error.
    package static func interceptorFailed(
        for url: URL, after failure: UploadError? = nil, underlyingError cause: any Error
    ) -> UploadError {
        let sentence = "An interceptor failed: \(cause)"
        let message = failure?.adding(sentence).message ?? "Nothing was sent to \(url.address). \(sentence)"
        var error = UploadError(.interceptorFailed, message, response: failure?.response, underlyingError: cause)
        error.delivery = failure?.delivery ?? .neverArrived
        return error
    }

    /// A timeout ended the request.
    ///
    /// - Parameters:
    ///   - url: The URL of the request.
    ///   - phase: The phase in which the request timed out.
    ///   - time: How long no bytes had moved; `nil` if that is not known.
    ///   - underlyingError: The error of the layer below.
    public static func timedOut(
        _ url: URL, _ phase: Phase, after time: Duration?, underlyingError: (any Error)? = nil
    ) -> UploadError {
        let seconds = time?.inSeconds ?? "the time allowed"
        let message =
            switch phase {
            case .connecting: "No connection to \(url.address) could be made within \(seconds)"
            case .sending: "Nothing more of the form could be sent to \(url.address) for \(seconds)"
            case .waiting: "\(url.address) received the whole form and did not respond for \(seconds)"
            case .receiving: "\(url.address) began to respond and sent nothing more for \(seconds)"
            }
        let code: Code = phase == .connecting ? .connectTimedOut : .timedOut
        return UploadError(code, message, phase: phase, underlyingError: underlyingError)
    }

    /// The response took longer than its timeout, even if its bytes were still arriving.
    static func responseTimedOut(_ url: URL, _ phase: Phase, after time: Duration) -> UploadError {
        let message =
            phase == .receiving
            ? "\(url.address) began to respond and did not finish within \(time.inSeconds)"
            : "\(url.address) did not respond within \(time.inSeconds) after the end of the form"
        return UploadError(.timedOut, message, phase: phase)
    }

    /// The upload as a whole took too long.
    ///
    /// - Parameters:
    ///   - url: The URL of the request.
    ///   - phase: The phase in which the time ran out.
    ///   - time: The time that the upload was allowed to take.
    static func deadlinePassed(_ url: URL, _ phase: Phase, after time: Duration) -> UploadError {
        let waiting =
            switch phase {
            case .connecting: "there was no connection yet"
            case .sending: "a part of the form was still to be sent"
            case .waiting: "the whole form was sent, and the server had not responded"
            case .receiving: "the response had begun to arrive"
            }
        var error = UploadError(
            .deadlinePassed, "The upload to \(url.address) was not finished after \(time.inSeconds): \(waiting)",
            phase: phase)
        if phase == .connecting { error.delivery = .neverArrived }
        return error
    }

    /// The upload as a whole took too long, or another attempt would exceed its time.
    static func deadlinePassed(_ url: URL, after time: Duration, lastError: UploadError?) -> UploadError {
        let reason = lastError.map { ". The last attempt failed: \($0.message)" } ?? ""
        var error = UploadError(
            .deadlinePassed, "The upload to \(url.address) cannot finish within \(time.inSeconds)\(reason)",
            response: lastError?.response, underlyingError: lastError)
        error.delivery = lastError?.delivery ?? .neverArrived
        error.attempts = lastError?.attempts ?? 1
        return error
    }

    /// The body of a response is larger than ``UploadRequest/maximumResponseBytes``.
    public static func responseTooLarge(from url: URL, limit: Int) -> UploadError {
        UploadError(
            .responseTooLarge,
            "The response of \(url.address) is larger than \(limit) bytes. The form may have arrived.")
    }

    static func invalidURL(_ url: URL, _ reason: String) -> UploadError {
        UploadError(.invalidURL, "The form cannot be sent to \(url.withoutQuery.debugDescription): \(reason)")
    }

    package static func form(_ error: FormError) -> UploadError {
        UploadError(.form, error.message, underlyingError: error)
    }

    package static func brokenRule(_ problem: FormProblem) -> UploadError {
        UploadError(.brokenRule, problem.message, underlyingError: problem)
    }

    /// An object store would refuse the form.
    ///
    /// - Parameters:
    ///   - reason: The condition of the policy that the form breaks, in a sentence.
    ///   - advice: What to do, in a sentence.
    static func brokenPolicy(_ url: URL, _ reason: String, advice: String) -> UploadError {
        UploadError(.brokenPolicy, "\(url.address) would refuse the form, so nothing was sent. \(reason) \(advice)")
    }

    /// The presigned form has expired.
    ///
    /// - Parameter begin: When the upload would begin, if that is not now. Defaults to `nil`.
    package static func formExpired(_ url: URL, at time: Date, before begin: Date? = nil) -> UploadError {
        let end = time.formatted(.iso8601)
        let reason =
            begin.map { "expires at \(end), and the upload would begin at \($0.formatted(.iso8601))" }
            ?? "expired at \(end)"
        return UploadError(
            .formExpired,
            "Nothing was sent to \(url.address): by the clock of this device, the presigned form \(reason).")
    }

    /// The server refused a request without the form. For a request with the form, use ``refusedForm(_:by:)``.
    package static func refused(_ response: UploadResponse, by url: URL) -> UploadError {
        var error = UploadError(
            .refused, "\(url.address) responded with \(response.statusText)", response: response)
        let proxy = KnownProxy(respondingWith: response)
        if let reason = proxy == nil ? response.reason : response.titleBesidesStatus { error = error.citing(reason) }
        return proxy.map { error.adding($0.explanation(of: response.status)) } ?? error
    }

    /// The server refused the form, or its status leaves open whether the form was accepted, such as 502.
    package static func refusedForm(_ response: UploadResponse, by url: URL) -> UploadError {
        var error = refused(response, by: url)
        error.delivery = response.delivery
        return error
    }

    /// The body of a queued upload cannot be read, so nothing was sent.
    package static func unreadableBody(_ reason: String, underlyingError: any Error) -> UploadError {
        UploadError(.form, reason, underlyingError: underlyingError)
    }

    /// The server responded with success before the whole form was sent.
    ///
    /// - Parameter total: The number of bytes of the form, if it is known.
    package static func earlyResponse(_ response: UploadResponse, by url: URL, of total: Int64?) -> UploadError {
        let sent = "\(response.bytesSent)" + (total.map { " of \($0)" } ?? "") + " bytes were sent"
        return UploadError(
            .earlyResponse,
            "\(url.address) responded with \(response.statusText) before it had the whole form: \(sent).",
            response: response)
    }

    /// The server reports an offset that is not possible.
    ///
    /// - Parameter contradiction: The reason why the offset is not possible, as the end of a sentence.
    static func impossibleOffset(
        _ offset: Int64, _ response: UploadResponse, by url: URL, _ contradiction: String
    ) -> UploadError {
        UploadError(
            .refused,
            "\(url.address) says that it has \(offset) bytes of the form, \(contradiction). Send the form again to start "
                + "over.", response: response)
    }

    /// The server's final response and an interim response name different upload resources.
    static func changedLocation(_ response: UploadResponse, by url: URL) -> UploadError {
        UploadError(
            .refused,
            "\(url.address) named two different addresses for the rest of one form, in a 104 and in its final "
                + "response. Check whether a proxy changes the Location field of only one of them.", response: response)
    }

    /// The server's limits are too small for the form.
    static func unacceptableLimits(_ response: UploadResponse, by url: URL, of length: Int64) -> UploadError {
        let limits = response.headerFields[.uploadLimit] ?? ""
        return UploadError(
            .refused, "\(url.address) does not accept a form of \(length) bytes within its limits: \(limits)",
            response: response)
    }

    /// The server offers resumable uploads, but refuses all supported versions of the resumable upload draft.
    static func refusedVersions(_ response: UploadResponse, by url: URL, _ numbers: [Int64]) -> UploadError {
        let list = numbers.map { "\($0)" }.joined(separator: ", ")
        return refused(response, by: url).adding(
            "The server offers resumable uploads, but refuses interop versions \(list) of the draft.")
    }

    /// A request and its response name different versions of the resumable upload draft.
    static func changedVersion(_ response: UploadResponse, by url: URL) -> UploadError {
        let version = response.headerFields[.uploadDraftInteropVersion] ?? ""
        return UploadError(
            .refused,
            "\(url.address) responded in another version of the resumable upload draft: \(version.withoutQuery). Send the "
                + "form again to start over.", response: response)
    }

    /// The server does not report an upload's offset, probably because an earlier request is still running on the
    /// server.
    static func locked(_ response: UploadResponse, by url: URL) -> UploadError {
        UploadError(
            .refused,
            "\(url.address) responded with \(response.statusText). It may still be busy with an earlier request of this "
                + "upload", .passes, response: response)
    }

    /// The upload resource is gone. The server may have stored the form, so the form is not sent again.
    static func goneUnclear(_ refusal: UploadError) -> UploadError {
        let message = refusal.adding("The server no longer has the upload, and may have stored the form.").message
        return UploadError(
            refusal.code, message, .passes, response: refusal.response, delivery: .responseLost,
            underlyingError: refusal.underlyingError)
    }

    /// The server redirects to another URL, and the client does not follow the redirect.
    static func refused(
        _ response: UploadResponse, by url: URL, redirectingTo location: String, _ reason: String
    ) -> UploadError {
        let place = location.withoutQuery
        let message = "\(url.address) responded with \(response.statusText) and redirects to \(place). \(reason)"
        return UploadError(.refused, message, response: response)
    }

    static func decoding(_ response: UploadResponse, as type: String, _ error: any Error) -> UploadError {
        let contentType = response.headerFields[.contentType] ?? "no Content-Type"
        let received = "\(response.statusText), \(contentType), \(response.body.count) bytes"
        return UploadError(
            .decoding,
            "The response (\(received)) cannot be read as \(type): \(reason(of: error)). It begins: \(response.beginning)",
            response: response, underlyingError: error)
    }

    static func reason(of error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(error)" }
        let context: DecodingError.Context
        switch error {
        case .keyNotFound(let key, let found): return "there is no \(path(found.codingPath + [key]))"
        case .typeMismatch(let type, let found): return "\(path(found.codingPath)) is not of type \(type)"
        case .valueNotFound(let type, let found): return "\(path(found.codingPath)) is null and not of type \(type)"
        case .dataCorrupted(let found): context = found
        @unknown default: return "\(error)"
        }
        return context.codingPath.isEmpty
            ? "it is not JSON" : "\(path(context.codingPath)): \(context.debugDescription)"
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        guard !keys.isEmpty else { return "the whole" }
        return keys.map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }.joined(separator: ".")
    }
}

extension Duration {
    /// The duration in words, such as "30 seconds" or "0.2 seconds".
    var inSeconds: String {
        let (seconds, attoseconds) = components
        let tenths = attoseconds / 100_000_000_000_000_000
        if tenths > 0 { return "\(seconds).\(tenths) seconds" }
        return seconds == 1 ? "1 second" : "\(seconds) seconds"
    }
}
