import HTTPTypes
import Hummingbird
import PostcardResumption

/// What a request says of the upload that it begins or goes on with.
struct AppendRequest {
    let version: ResumptionVersion
    /// Whether its bytes are the upload's last.
    let isComplete: Bool
    /// Where its bytes belong.
    let offset: Int64
    /// How many bytes it announces.
    let contentLength: Int64?
    /// How many bytes it says that the upload will have.
    private let uploadLength: Int64?

    /// Reads a request that posts a form.
    ///
    /// - Returns: `nil` where the form is to be received without the offer to resume it.
    init?(creatingBy request: Request) throws(UploadProblem) {
        let fields = request.headers
        guard let version = ResumptionVersion(of: fields) else {
            let saysIncomplete = [ResumptionVersion.interop3, .newest].contains { version in
                fields.uploadCompleteness(in: version) == false
            }
            // What is said to be a beginning only is no form.
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

    /// Reads a request that goes on with an upload.
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

    /// The length of the upload, where it is known by now.
    ///
    /// - Parameters:
    ///   - known: What an earlier request said.
    ///   - maximum: The most that an upload may have.
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
