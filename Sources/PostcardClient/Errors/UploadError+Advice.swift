import HTTPTypes
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension UploadError {
    /// What to try, in a sentence or two for the person who has to: what the status means for a form upload, or what
    /// can be done about a connection. `nil` where ``message`` says it all.
    public var advice: String? {
        switch code {
        case .refused:
            response.flatMap { Self.advice(on: $0) }.map { delivery == .answerLost ? "\($0) \(Self.asking)" : $0 }
        case .connectionLost, .timedOut, .deadlinePassed:
            delivery == .answerLost
                ? Self.asking
                : "No server has the whole form. Send it again when the network is better, or set a retry policy."
        case .answeredEarly:
            "The server cannot have the whole form. Check that this address receives forms. If it is meant to answer early, "
                + "set acceptsEarlyAnswers."
        case .connectionFailed, .connectTimedOut:
            "Nothing was sent. Check the address and the network; a retry policy covers short interruptions."
        case .form: formError?.advice
        default: nil
        }
    }

    private static let asking =
        "The form may have arrived. Ask the server before it is sent again, or let retries carry an Idempotency-Key "
        + "that the server heeds."

    private static func advice(on response: UploadResponse) -> String? {
        switch response.status.code {
        case 400:
            "The server could not read the form. Usual causes are a Content-Type set by hand, something on the way that "
                + "changes the body, and fields that the server calls otherwise: compare the exact request with what "
                + "it expects."
        case 401:
            "The server does not know who sends. Set an Authorization header field, or let an interceptor get a fresh "
                + "token."
        case 403:
            "The server knows who sends and does not let them. It takes other rights; sending again does not help."
        case 404: "No forms are taken there. Check the path, and whether it ends in a slash."
        case 405: "Forms are not taken there by this method.\(allowed(response)) Check the method and the path."
        case 408:
            "The form came too slowly for the server. Try again on a better network, send less at once, or have the "
                + "server wait longer."
        case 409: "It is at odds with what the server has, perhaps because the same upload is still under way."
        case 411:
            "The server wants to know the length beforehand. Give the form's streams a length, and on Linux use "
                + "AsyncHTTPTransport: URLSessionTransport names no length there for forms of more than 1 MiB."
        case 413:
            "The form is larger than the server, or a proxy before it, takes. Make the pictures smaller, send fewer at "
                + "once, or have the limit raised (nginx: client_max_body_size)."
        case 415:
            "The server does not take this type: no forms at all, or none of these files. Check each file's type and "
                + "what the server accepts."
        case 422: "The server read the form and does not take a value: a field is missing, or one is not as it must be."
        case 429:
            "Too much was sent in a short time. Wait\(waiting(response)) before the next, and send fewer at a time."
        case 501: "The server cannot do this. Check the method."
        case 502, 504:
            "A proxy got no answer from the server behind it. Try again later; a large form may need more time."
        case 503:
            "The server is busy or being worked on. Try again later\(response.retryAfter().map { ", in \($0.inSeconds)" } ?? "")."
        case 507: "The server has no room for the form."
        case 500...: "The server failed; the form need not be at fault. Try again later, and tell those who run it."
        default: nil
        }
    }

    private static func allowed(_ response: UploadResponse) -> String {
        guard let methods = response.headerFields[.allow], !methods.isEmpty else { return "" }
        return " The server names \(methods)."
    }

    private static func waiting(_ response: UploadResponse) -> String {
        response.retryAfter().map { " for \($0.inSeconds)" } ?? ""
    }
}
