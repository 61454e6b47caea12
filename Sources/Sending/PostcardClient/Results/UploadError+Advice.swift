import HTTPTypes
import PostcardForm
import PostcardFoundation

extension UploadError {
    /// What to try, in a sentence or two: what a refusal's status means for a form, or how to fix the connection. `nil`
    /// if ``message`` says everything.
    public var advice: String? {
        switch code {
        case .refused:
            response.flatMap { Self.advice(on: $0) }.map { delivery == .responseLost ? "\($0) \(asking)" : $0 }
        case .connectionLost, .timedOut, .deadlinePassed:
            delivery == .responseLost
                ? asking
                : "No server has the whole form. Send it again when the network is better\(unlessRetried(", or set a retry policy"))."
        case .earlyResponse:
            "The server cannot have the whole form. Check that this address receives forms. If it is meant to respond "
                + "early, set responses.acceptsEarly."
        case .connectionFailed, .connectTimedOut:
            "Nothing was sent. Check the address and the network\(unlessRetried("; a retry policy covers short interruptions"))."
        case .tls: adviceOnTLS
        case .interceptorFailed:
            delivery == .responseLost
                ? asking : "See why the interceptor fails. It may return .giveUp to have no other attempt made."
        case .form, .brokenRule: (underlyingError as? any PostcardError)?.advice
        case .formExpired:
            "Get a new form from the server that signed it, by the closure that refreshes it, or correct the clock. "
                + "Without a closure, send the file with another form; for a background session, with one that lasts for "
                + "days."
        default: nil
        }
    }

    /// The given words about retries; after several attempts, the number of failed attempts instead.
    private func unlessRetried(_ words: String) -> String {
        attempts > 1 ? ": \(attempts) attempts have failed" : words
    }

    private var asking: String {
        "The form may have arrived. Ask the server before sending it again"
            + unlessRetried(", or set a retry policy if the server honors the Idempotency-Key of retries") + "."
    }

    private var adviceOnTLS: String {
        switch outlook {
        case .passes:
            "Nothing was sent. Check that the server expects https\(unlessRetried("; a retry policy covers broken handshakes"))."
        case .passesElsewhere, nil:
            "Nothing was sent. If the network asks its users to sign in, open any page in a browser; otherwise try another "
                + "network, and check this device's clock and the server's certificate. A queue waits and tries again."
        case .lasts:
            "Nothing was sent, and another attempt does not help. Check which certificates the server requires, and which "
                + "the app accepts."
        }
    }

    private static func advice(on response: UploadResponse) -> String? {
        if let advice = response.objectStoreProblem?.advice { return advice }
        return switch response.status.code {
        case 400:
            "The server could not read the form. Usual causes are a Content-Type set by hand, a proxy that changes the "
                + "body, and fields that the server names differently: compare the exact request with what it expects."
        case 401:
            "The server does not know who is sending. Set an Authorization header field, or let an interceptor get a "
                + "fresh token."
        case 403:
            "The sender is not allowed to do this. Sending the form again with the same credentials does not help."
        case 404: "There is nothing at this address. Check the path, and whether it ends in a slash."
        case 405: "The address does not accept this method.\(allowed(response)) Check the method and the path."
        case 408:
            "The form arrived too slowly for the server. Try again on a better network, send less at once, or raise the "
                + "server's timeout."
        case 409: "The form conflicts with what the server has, perhaps because the same upload is still in progress."
        case 411:
            "The server needs to know the length first. Give the form's streams a length, and on Linux use "
                + "AsyncHTTPTransport: URLSessionTransport sends no Content-Length there for forms of more than 1 MiB."
        case 413:
            "The form is larger than the server, or a proxy in front of it, accepts. Make the pictures smaller with "
                + "PostcardPictures, send fewer at once, or raise the limit\(limitSetting(response))."
        case 415:
            "The server does not accept this type: no forms at all, or not these files. Check the type of each file and "
                + "what the server accepts."
        case 422: "The server read the form and refused a value: a field is missing or invalid."
        case 429:
            "Too much was sent in a short time. Wait\(waiting(response)) before the next upload, and send fewer at a time."
        case 501: "The server cannot do this. Check the method."
        case 502, 504:
            "A proxy got no response from the server behind it. Try again later; a large form may need more time."
        case 503:
            "The server is busy or under maintenance. Try again later\(response.retryAfter().map { ", in \($0.inSeconds)" } ?? "")."
        case 507: "The server has no room for the form."
        case 511: "The network asks its users to sign in. Open any page in a browser, sign in, and try again."
        case 500...:
            "The server failed, and not necessarily because of the form. Try again later, and report it to its operator."
        default: nil
        }
    }

    private static func allowed(_ response: UploadResponse) -> String {
        guard let methods = response.headerFields[.allow], !methods.isEmpty else { return "" }
        return " It accepts \(methods)."
    }

    /// The setting that limits the size of a request, for the proxy that responded or for the most common proxy.
    private static func limitSetting(_ response: UploadResponse) -> String {
        let proxy = KnownProxy(respondingWith: response) ?? .nginx
        return proxy.sizeLimit.map { " (\(proxy.name): \($0))" } ?? ""
    }

    private static func waiting(_ response: UploadResponse) -> String {
        response.retryAfter().map { " for \($0.inSeconds)" } ?? ""
    }
}
