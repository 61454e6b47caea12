import HTTPTypes
import Hummingbird
import PostcardResumption

/// What a request says about the unfinished upload that it creates or appends to.
struct AppendRequest {
    let version: ResumptionVersion
    /// Whether its bytes are the upload's last.
    let isComplete: Bool
    /// Where its bytes begin in the upload.
    let offset: Int64
    /// How many bytes it has.
    let contentLength: Int64?
    /// How many bytes the upload will have.
    private let uploadLength: Int64?

    /// Whether a request that posts a form wants to be able to resume it, or is only its beginning.
    static func isAsked(by request: Request) -> Bool {
        request.headers.contains(.uploadComplete) || request.headers.contains(.uploadIncomplete)
    }

    /// Reads a request that posts a form.
    ///
    /// - Returns: `nil` if the form cannot be resumed.
    init?(creatingBy request: Request) throws(UploadProblem) {
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
    init(appendingBy request: Request) throws(UploadProblem) {
        let fields = request.headers
        guard let version = ResumptionVersion(of: fields) else { throw .unknownResumptionVersion }
        if version.hasPartialUploadType {
            let type = fields[.contentType]?.prefix { $0 != ";" }.lowercased()
            guard type == PartialUpload.mediaType else { throw .notPartialUpload }
        }
        if let encoding = fields[.contentEncoding], encoding.lowercased() != "identity" { throw .encodedContent }
        guard let offset = fields.uploadOffset else { throw .missingUploadOffset }
        let isComplete = fields.uploadCompleteness(in: version)
        guard let isComplete = isComplete ?? (version.requiresCompleteness ? nil : true) else {
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
