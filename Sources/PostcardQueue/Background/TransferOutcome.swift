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
    /// The system gave the transfer up, for instance because the user force-quit the app. The upload is sent again.
    case interrupted
    /// The transfer failed. Whether another attempt may help is the retry policy's decision.
    case failed(UploadError)
    /// The system followed a redirect after which the answer says nothing about the form. It may or may not have arrived, and
    /// only a person can tell.
    case strayed(String)

    /// - Parameters:
    ///   - end: How the transfer ended.
    ///   - body: The beginning of the response's body.
    ///   - upload: The upload that was sent.
    init(_ end: TransferEnd, body: Data, of upload: QueuedUpload) {
        switch end {
        case .cancelled:
            self = .interrupted
        case .failed(let error):
            self = .failed(error)
        case .response(let status, let headerFields, let url, let method, let bytesSent):
            if let url, url.origin != upload.url.origin {
                self = .strayed(
                    "The answer came from \(url.origin), and the form was sent to \(upload.url.origin). Send it there, if "
                        + "that is where it belongs.")
            } else if let method, method != upload.method {
                self = .strayed(
                    "The server redirected the upload to \(url?.absoluteString ?? "another address"), and the form was "
                        + "not sent there (\(upload.method) became \(method)). Check whether it arrived before you retry."
                )
            } else {
                var response = UploadResponse(
                    status: HTTPResponse.Status(code: min(max(status, 0), 999)), headerFields: headerFields, body: body)
                response.bytesSent = bytesSent ?? upload.totalBytes
                self.init(response, to: upload)
            }
        }
    }
}

extension TransferOutcome {
    /// What an answer to the form means.
    private init(_ response: UploadResponse, to upload: QueuedUpload) {
        guard response.status.kind == .successful else {
            self = .failed(.refused(response, by: upload.url))
            return
        }
        // No server answers before it has read anything: a system that counts nothing has forgotten what it sent.
        if response.bytesSent > 0, response.bytesSent < upload.totalBytes {
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
    /// When an upload is sent again after a failed attempt; `nil` if it is not.
    ///
    /// - Parameters:
    ///   - error: Why the attempt failed.
    ///   - failures: The number of attempts that failed, this one included.
    ///   - mayBeRepetition: Whether an earlier request may have sent the form. A server that is still at work on it answers
    ///     409 (draft-ietf-httpapi-idempotency-key-header), which is worth a few more attempts.
    func nextAttempt(after error: UploadError, failures: Int, mayBeRepetition: Bool, now: Date) -> Date? {
        let isStillUnderWay = mayBeRepetition && failures < 10 && error.response?.status == .conflict
        guard failures < maximumAttempts, mayPass(error) || isStillUnderWay else { return nil }
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
