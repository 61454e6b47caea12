import HTTPTypes
import PostcardFoundation
import PostcardWire

/// What a server said in interim responses 104 (Upload Resumption Supported) to one request: the URL of the upload
/// resource, and its limits (draft-ietf-httpbis-resumable-upload, "Status Code 104").
///
/// The announcement counts although no final response followed: the connection may have broken, or a proxy may have taken
/// the interim response for the final one.
struct ResumptionAnnouncement: Sendable {
    /// The URL that responded, to which the upload resource's URL may be relative.
    let url: URL
    /// The URL of the upload resource, as the server wrote it; `nil` if only limits or progress were reported.
    private(set) var location: String?
    private(set) var limits: UploadLimits?

    /// - Parameter request: The header fields of the request. If they name a version of the draft, a response that names
    ///   another one or none is ignored, as the draft requires (appendix "Draft Version Identification").
    /// - Returns: `nil` for any other interim response, and for one that is ignored.
    init?(
        _ status: HTTPResponse.Status, _ headerFields: HTTPFields, by url: URL, to request: HTTPFields
    ) {
        guard status == .uploadResumptionSupported, let version = ResumptionVersion(of: request),
            request.interopNumber.map({ $0 == headerFields.interopNumber }) ?? true
        else { return nil }
        self.url = url
        location = headerFields[.location]
        limits = headerFields.uploadLimits(in: version)
    }

    /// Adds what a later response to the same request said.
    mutating func add(_ later: ResumptionAnnouncement) {
        location = later.location ?? location
        guard let others = later.limits else { return }
        var limits = limits ?? UploadLimits()
        limits.adopt(others)
        self.limits = limits
    }
}
