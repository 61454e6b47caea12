import HTTPTypes
import PostcardClient
import PostcardFoundation
import PostcardWire

/// Which responses are not success although their statuses are.
extension UploadRow {
    /// Returns the error of an upload to which something else than the server has responded, or `nil`: a page where the
    /// form asked for JSON is the network's sign-in page, or a proxy's.
    func interception(by response: QueuedUpload.Response) -> UploadError? {
        let type = response.contentType?.lowercased() ?? ""
        guard headerFields[.accept]?.lowercased().contains("json") == true,
            type.hasPrefix("text/html") || type.hasPrefix("application/xhtml+xml")
        else { return nil }
        return UploadError(
            .intercepted,
            "A page came in place of the JSON that \(upload.url.origin) was asked for. It may be the sign-in page of the "
                + "network, or a proxy's.", .passesElsewhere, response: UploadResponse(response),
            delivery: .responseLost)
    }
}

extension UploadError {
    /// The app does not accept a response.
    static func rejected(
        _ response: QueuedUpload.Response, to upload: QueuedUpload, because error: any Error
    ) -> UploadError {
        let mayPass = (error as? ResponseRejection)?.mayPass ?? false
        return UploadError(
            .rejected, "The app did not accept the response of \(upload.url.origin) (\(response.status)): \(error)",
            mayPass ? .passes : .lasts, response: UploadResponse(response), delivery: .responseLost,
            underlyingError: error)
    }
}

extension UploadResponse {
    init(_ response: QueuedUpload.Response) {
        self.init(
            status: HTTPResponse.Status(code: min(max(response.status, 0), 999)), headerFields: response.headerFields,
            body: response.body)
    }
}
