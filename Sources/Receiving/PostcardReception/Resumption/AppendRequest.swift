import HTTPTypes
import PostcardForm
import PostcardWire

/// The header fields of a request that creates an unfinished upload or appends to one.
struct AppendRequest {
    let version: ResumptionVersion
    /// Whether the bytes of the request are the upload's last.
    let isComplete: Bool
    /// The offset in the upload at which the bytes of the request begin.
    let offset: Int64
    /// The length of the request's body, in bytes; `nil` if the request does not say.
    let contentLength: Int64?
    /// The length of the whole upload, in bytes; `nil` if the request does not say.
    private let uploadLength: Int64?

    /// Whether a request that posts a form asks for a resumable upload, or has only the beginning of the form.
    static func isAsked(by request: IncomingRequest) -> Bool {
        request.headers.contains(.uploadComplete) || request.headers.contains(.uploadIncomplete)
    }

    /// What the client of a form that asks to be resumed must send for that; `nil` if its fields are those of a version.
    static func advice(for request: IncomingRequest) -> String? {
        let fields = request.headers
        guard let version = ResumptionVersion(of: fields) else {
            let latest = ResumptionVersion.latestNumbered.interopNumber ?? 0
            return "To resume the form, send 3 to \(latest) in Upload-Draft-Interop-Version, or leave it out."
        }
        guard fields.uploadCompleteness(in: version) == nil else { return nil }
        let name = version.has(.completeField) ? "Upload-Complete" : "Upload-Incomplete"
        return "To resume the form, send ?0 or ?1 in \(name)."
    }

    /// Reads a request that posts a form.
    ///
    /// - Returns: `nil` if the form cannot be resumed.
    init?(creatingBy request: IncomingRequest) throws(UploadProblem) {
        let fields = request.headers
        guard let version = ResumptionVersion(of: fields) else {
            let saysIncomplete = [ResumptionVersion.interop3, .newest].contains { version in
                fields.uploadCompleteness(in: version) == false
            }
            // The beginning of a form is not a form.
            guard !saysIncomplete else { throw .unknownResumptionVersion }
            return nil
        }
        guard let isComplete = fields.uploadCompleteness(in: version) else { return nil }
        self.version = version
        self.isComplete = isComplete
        offset = 0
        contentLength = fields[.contentLength].flatMap { Int64($0) }
        uploadLength = fields.uploadLength
    }

    /// Reads a request that appends to an upload.
    ///
    /// - Parameter version: The version of the request.
    init(appendingBy request: IncomingRequest, in version: ResumptionVersion) throws(UploadProblem) {
        let fields = request.headers
        if version.has(.partialUploadType) {
            let type = fields[.contentType]?.utf8.prefix { $0 != .semicolon }
            guard type?.isEqualIgnoringCase(PartialUpload.mediaType) == true else { throw .notPartialUpload }
        }
        if let encoding = fields[.contentEncoding], !encoding.utf8.isEqualIgnoringCase("identity") {
            throw .encodedContent
        }
        guard let offset = fields.uploadOffset else { throw .missingUploadOffset }
        let isComplete = fields.uploadCompleteness(in: version)
        guard let isComplete = isComplete ?? (version.has(.appendCompleteness) ? nil : true) else {
            throw .missingUploadComplete
        }
        self.version = version
        self.isComplete = isComplete
        self.offset = offset
        contentLength = fields[.contentLength].map { Int64($0) ?? .max }
        uploadLength = fields.uploadLength
    }

    /// The length of the upload, if this or an earlier request says it.
    ///
    /// - Parameters:
    ///   - known: The length that an earlier request said.
    ///   - maximum: How many bytes an upload may have.
    func length(known: Int64?, maximum: Int64) throws(UploadProblem) -> Int64? {
        var lengths = Set([known, uploadLength].compactMap(\.self))
        let end = contentLength.map { content in
            let (end, isOver) = offset.addingReportingOverflow(content)
            return isOver ? .max : end
        }
        if isComplete, let end { lengths.insert(end) }
        guard lengths.count <= 1 else { throw .inconsistentLength }
        let length = lengths.first
        if let length, let end, end > length { throw .inconsistentLength }
        guard max(length ?? 0, end ?? 0) <= maximum else { throw .uploadTooLarge(maximum: maximum) }
        return length
    }
}
