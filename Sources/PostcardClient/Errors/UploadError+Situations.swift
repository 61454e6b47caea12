import HTTPTypes
package import PostcardForm

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One factory for each situation. Transports make the public ones; the others are the client's.
extension UploadError {
    /// No connection came about.
    public static func connectionFailed(
        to url: URL, _ reason: String, underlying: (any Error)? = nil
    ) -> UploadError {
        UploadError(.connectionFailed, "No connection to \(url.address): \(reason)", underlying: underlying)
    }

    /// The connection broke before the whole response had come.
    public static func connectionLost(
        to url: URL, _ reason: String, underlying: (any Error)? = nil
    ) -> UploadError {
        UploadError(
            .connectionLost, "The connection to \(url.address) broke before the whole answer had come: \(reason)",
            underlying: underlying)
    }

    /// The server's certificate or its encryption was not accepted.
    public static func tls(with url: URL, _ reason: String, underlying: (any Error)? = nil) -> UploadError {
        UploadError(.tls, "No secure connection to \(url.address): \(reason)", underlying: underlying)
    }

    /// Time ran out while waiting for something.
    ///
    /// - Parameters:
    ///   - url: Where the request goes.
    ///   - phase: What was waited for.
    ///   - time: How long nothing had moved, where that is known.
    ///   - underlying: What the error is made from.
    public static func timedOut(
        _ url: URL, _ phase: Phase, after time: Duration?, underlying: (any Error)? = nil
    ) -> UploadError {
        let seconds = time?.inSeconds ?? "the time allowed"
        let message =
            switch phase {
            case .connecting: "No connection to \(url.address) came about within \(seconds)"
            case .sending: "Nothing more of the form went to \(url.address) for \(seconds)"
            case .waiting: "\(url.address) took the whole form and did not answer for \(seconds)"
            case .receiving: "\(url.address) began to answer and sent nothing more for \(seconds)"
            }
        let code: Code = phase == .connecting ? .connectTimedOut : .timedOut
        return UploadError(code, message, phase: phase, underlying: underlying)
    }

    /// The time for the answer is over, though bytes of it may still move.
    static func answerTimedOut(_ url: URL, _ phase: Phase, after time: Duration) -> UploadError {
        let message =
            phase == .receiving
            ? "\(url.address) began to answer and did not finish within \(time.inSeconds)"
            : "\(url.address) did not answer within \(time.inSeconds) after the end of the form"
        return UploadError(.timedOut, message, phase: phase)
    }

    /// The time for the upload as a whole is over.
    ///
    /// - Parameters:
    ///   - url: Where the request goes.
    ///   - phase: What was waited for.
    ///   - time: How long the upload was allowed to take.
    static func deadlinePassed(_ url: URL, _ phase: Phase, after time: Duration) -> UploadError {
        let waiting =
            switch phase {
            case .connecting: "there was no connection yet"
            case .sending: "a part of the form was still to be sent"
            case .waiting: "the whole form was sent, and the server had not answered"
            case .receiving: "the answer had begun to come"
            }
        return UploadError(
            .deadlinePassed, "The upload to \(url.address) was not over after \(time.inSeconds): \(waiting)",
            phase: phase)
    }

    /// The time for the upload as a whole is over, or will be before another attempt.
    static func deadlinePassed(_ url: URL, after time: Duration, lastError: UploadError?) -> UploadError {
        let reason = lastError.map { ". The last attempt failed: \($0.message)" } ?? ""
        var error = UploadError(
            .deadlinePassed, "The upload to \(url.address) cannot be over after \(time.inSeconds)\(reason)",
            response: lastError?.response, underlying: lastError)
        error.delivery = lastError?.delivery ?? .neverArrived
        error.attempts = lastError?.attempts ?? 1
        return error
    }

    /// The body of a response is larger than ``UploadRequest/maximumResponseBytes``.
    public static func responseTooLarge(from url: URL, limit: Int) -> UploadError {
        UploadError(
            .responseTooLarge, "The answer of \(url.address) is larger than \(limit) bytes. The form may have arrived.")
    }

    static func invalidURL(_ url: URL, _ reason: String) -> UploadError {
        UploadError(.invalidURL, "The form cannot be sent to \(url.absoluteString.debugDescription): \(reason)")
    }

    static func form(_ error: FormError) -> UploadError {
        UploadError(.form, error.message, underlying: error)
    }

    package static func brokenRule(_ problem: FormProblem) -> UploadError {
        UploadError(.brokenRule, "\(problem.message) \(problem.fix)", underlying: problem)
    }

    package static func refused(_ response: UploadResponse, by url: URL) -> UploadError {
        var message = "\(url.address) answered \(response.statusText)"
        if let reason = response.reason {
            message += ": \(reason)"
        }
        return UploadError(.refused, message, response: response)
    }

    /// The server said that it has the form before the whole form was sent.
    ///
    /// - Parameter total: How many bytes the form has, if that is known.
    package static func answeredEarly(_ response: UploadResponse, by url: URL, of total: Int64?) -> UploadError {
        let sent = "\(response.bytesSent)" + (total.map { " of \($0)" } ?? "") + " bytes were sent"
        return UploadError(
            .answeredEarly,
            "\(url.address) answered \(response.statusText) before it had the whole form: \(sent). Check that this address "
                + "receives forms, and send it again. If the server is meant to answer early, accept early answers.",
            response: response)
    }

    /// The server says that it has more of the form than it can have.
    static func impossibleOffset(
        _ offset: Int64, _ response: UploadResponse, by url: URL, sent: Int64
    ) -> UploadError {
        UploadError(
            .refused,
            "\(url.address) says that it has \(offset) bytes of the form, and at most \(sent) were sent there. The upload "
                + "starts over when it is sent again.", response: response)
    }

    /// The server points to another place, where nobody is to go.
    static func refused(
        _ response: UploadResponse, by url: URL, pointingTo location: String, _ reason: String
    ) -> UploadError {
        let message = "\(url.address) answered \(response.statusText) and points to \(location). \(reason)"
        return UploadError(.refused, message, response: response)
    }

    static func decoding(_ response: UploadResponse, as type: String, _ error: any Error) -> UploadError {
        let contentType = response.headerFields[.contentType] ?? "no Content-Type"
        let came = "\(response.statusText), \(contentType), \(response.body.count) bytes"
        return UploadError(
            .decoding,
            "The answer (\(came)) cannot be read as \(type): \(reason(of: error)). It begins: \(response.beginning)",
            response: response, underlying: error)
    }

    private static func reason(of error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(error)" }
        let context: DecodingError.Context
        switch error {
        case .keyNotFound(let key, let found):
            return "there is no \(path(found.codingPath + [key]))"
        case .typeMismatch(let type, let found):
            return "\(path(found.codingPath)) is no \(type)"
        case .valueNotFound(let type, let found):
            return "\(path(found.codingPath)) is null and no \(type)"
        case .dataCorrupted(let found):
            context = found
        @unknown default:
            return "\(error)"
        }
        return context.codingPath.isEmpty ? "it is no JSON" : "\(path(context.codingPath)): \(context.debugDescription)"
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        guard !keys.isEmpty else { return "the whole" }
        return keys.map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }.joined(separator: ".")
    }
}

extension Duration {
    /// Such as "30 seconds" or "0.2 seconds".
    var inSeconds: String {
        let (seconds, attoseconds) = components
        let tenths = attoseconds / 100_000_000_000_000_000
        if tenths > 0 { return "\(seconds).\(tenths) seconds" }
        return seconds == 1 ? "1 second" : "\(seconds) seconds"
    }
}
