import HTTPTypes
import PostcardClient

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What the end of a transfer means for its upload.
enum TransferOutcome {
    /// The server accepted the form.
    case accepted(QueuedUpload.Response)
    /// The system cancelled the transfer, for example because the user force-quit the app. The upload is sent again.
    case interrupted
    /// The transfer failed. The retry policy decides whether the upload is sent again.
    case failed(UploadError)
    /// The system followed a redirect, and the response says nothing about the form. Only a person can find out whether
    /// it arrived.
    case misdirected(String)

    /// - Parameters:
    ///   - end: How the transfer ended.
    ///   - body: The beginning of the response's body.
    ///   - upload: The upload that was sent.
    ///   - mayBeRepetition: Whether the server may have the form from an earlier transfer. If so, it may accept the
    ///     form before it has read it again.
    init(_ end: TransferEnd, body: Data, of upload: QueuedUpload, mayBeRepetition: Bool) {
        switch end {
        case .cancelled:
            self = .interrupted
        case .failed(let error):
            self = .failed(error)
        case .response(let status, let headerFields, let url, let method, let bytesSent):
            if let url, url.origin != upload.url.origin {
                self = .misdirected(
                    "The server at \(upload.url.origin) redirected the upload to \(url.origin). Enqueue the form with that "
                        + "address if it is the right one.")
            } else if let method, method != upload.method {
                self = .misdirected(
                    "The server redirected the upload to \(url?.absoluteString ?? "another address"), and the form was "
                        + "not sent there: \(upload.method) became \(method). Check whether it arrived before you retry."
                )
            } else {
                var response = UploadResponse(
                    status: HTTPResponse.Status(code: min(max(status, 0), 999)), headerFields: headerFields, body: body)
                response.bytesSent = bytesSent ?? upload.totalBytes
                self.init(response, to: upload, mayBeRepetition: mayBeRepetition)
            }
        }
    }
}

extension TransferOutcome {
    /// What a response to the form means.
    private init(_ response: UploadResponse, to upload: QueuedUpload, mayBeRepetition: Bool) {
        guard response.status.kind == .successful else {
            self = .failed(.refused(response, by: upload.url))
            return
        }
        // No server responds before it has read anything: if the system reports 0 bytes, it has lost the count.
        if response.bytesSent > 0, response.bytesSent < upload.totalBytes, !mayBeRepetition {
            self = .failed(.earlyResponse(response, by: upload.url, of: upload.totalBytes))
            return
        }
        self = .accepted(
            QueuedUpload.Response(
                status: response.status.code, contentType: response.headerFields[.contentType],
                body: response.body.prefix(QueuedUpload.Response.maximumBodyBytes)))
    }
}

extension RetryPolicy {
    /// When an upload is sent again after a failed attempt, or `nil` if it is not.
    ///
    /// - Parameters:
    ///   - error: Why the attempt failed.
    ///   - failures: The number of failed attempts, including this one.
    ///   - mayBeRepetition: Whether the server may have the form from an earlier request. If it is still processing
    ///     that one, it responds with 409 (draft-ietf-httpapi-idempotency-key-header), which justifies a few more
    ///     attempts.
    func nextAttempt(after error: UploadError, failures: Int, mayBeRepetition: Bool, now: Date) -> Date? {
        let isInProgress = mayBeRepetition && failures < 10 && error.response?.status == .conflict
        guard failures < maximumAttempts, mayPass(error) || isInProgress else { return nil }
        var generator = SystemRandomNumberGenerator()
        let delay = delay(after: failures, retryAfter: error.response?.retryAfter(), using: &generator)
        return now.addingTimeInterval(delay / .seconds(1))
    }
}

extension URL {
    /// The scheme, host and port (RFC 6454 §4), such as `https://example.com:443`.
    fileprivate var origin: String {
        let scheme = scheme?.lowercased() ?? ""
        return "\(scheme)://\(host()?.lowercased() ?? ""):\(port ?? (scheme == "https" ? 443 : 80))"
    }
}
