import HTTPTypes
import PostcardFoundation
import PostcardResumption

/// What a server said in an interim response 104 (Upload Resumption Supported): the URL of the upload resource, and its
/// limits (draft-ietf-httpbis-resumable-upload, "Status Code 104").
///
/// The announcement counts although no final response followed: the connection may have broken, or a proxy may have taken
/// the interim response for the final one.
struct ResumptionAnnouncement: Sendable {
    /// The URL that responded, to which the upload resource's URL may be relative.
    let url: URL
    let headerFields: HTTPFields

    /// - Returns: `nil` for any other interim response, and for one that only reports progress.
    init?(_ status: HTTPResponse.Status, _ headerFields: HTTPFields, by url: URL) {
        guard status == .uploadResumptionSupported, headerFields.contains(.location) else { return nil }
        self.url = url
        self.headerFields = headerFields
    }
}
