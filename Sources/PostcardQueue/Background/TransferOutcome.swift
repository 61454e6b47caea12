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
    ///   - delivery: What servers may have of the form from earlier transfers.
    init(_ end: TransferEnd, body: Data, of upload: QueuedUpload, after delivery: Delivery) {
        switch end {
        case .cancelled:
            self = .interrupted
        case .failed(let error):
            self = .failed(error)
        case .response(let status, let headerFields, let url, let method, let bytesSent):
            if let url, !url.hasOrigin(of: upload.url) {
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
                // No server responds before it has read anything: if the system reports 0 bytes, it has lost the count.
                response.isEarly = response.bytesSent > 0 && response.bytesSent < upload.totalBytes
                self.init(response, to: upload, after: delivery)
            }
        }
    }
}

extension TransferOutcome {
    /// What a response to the form means.
    private init(_ response: UploadResponse, to upload: QueuedUpload, after delivery: Delivery) {
        guard response.status.kind == .successful else {
            self = .failed(.refusedForm(response, by: upload.url))
            return
        }
        if response.isEarly, !delivery.mayHaveArrived {
            self = .failed(.earlyResponse(response, by: upload.url, of: upload.totalBytes))
            return
        }
        self = .accepted(
            QueuedUpload.Response(
                status: response.status.code, contentType: response.headerFields[.contentType],
                body: response.body.prefix(QueuedUpload.Response.maximumBodyBytes)))
    }
}
