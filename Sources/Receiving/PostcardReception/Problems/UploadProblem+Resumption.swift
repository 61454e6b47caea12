package import HTTPTypes
import PostcardForm
import PostcardWire

extension UploadProblem {
    /// Additional JSON members of the refusal of a resumable request.
    struct Resumption: Sendable, Hashable {
        /// A registered problem type, which replaces the receiver's own type.
        var type: ResumptionProblemType?
        var expectedOffset: Int64?
        var providedOffset: Int64?
        /// Additional header fields.
        var fields = HTTPFields()
    }

    private init(_ type: ResumptionProblemType, status: HTTPResponse.Status, message: String, advice: String) {
        self.init(
            status: status, code: Code(rawValue: type.rawValue), message: message, advice: advice,
            resumption: Resumption(type: type))
    }

    /// Returns the same problem with additional header fields.
    package func adding(_ change: (inout HTTPFields) -> Void) -> UploadProblem {
        var problem = self
        change(&problem.resumption.fields)
        return problem
    }

    static func mismatchingOffset(expected: Int64, provided: Int64) -> UploadProblem {
        var problem = UploadProblem(
            .mismatchingOffset, status: .conflict,
            message: "The upload has \(expected) bytes, and the request's bytes begin at \(provided).",
            advice: "Resume at byte \(expected).")
        problem.resumption.expectedOffset = expected
        problem.resumption.providedOffset = provided
        problem.resumption.fields.uploadOffset = expected
        return problem
    }

    static let completedUpload = UploadProblem(
        .completed, status: .badRequest, message: "The upload is complete and accepts no more bytes.",
        advice: "Create another upload, or get the response to this one again by a GET of its URL.")

    static let inconsistentLength = UploadProblem(
        .inconsistentLength, status: .badRequest,
        message: "The requests say different lengths of the upload, or it has more or fewer bytes.",
        advice: "Send one length in Upload-Length, and that many bytes.")

    static func uploadTooLarge(maximum: Int64) -> UploadProblem {
        UploadProblem(
            .bodyTooLarge, message: "The upload has more than the \(maximum) bytes that are allowed.",
            advice: "Send fewer or smaller files, or several forms.",
            limit: Limit(name: "maximumBodyBytes", value: maximum))
    }

    static let missingUploadOffset = UploadProblem(
        status: 400, code: "missing-upload-offset",
        message: "The request has no Upload-Offset, several, or one that is not an integer.",
        advice: "Send Upload-Offset with the offset in the response to HEAD.")

    static let missingUploadComplete = UploadProblem(
        status: 400, code: "missing-upload-complete",
        message: "The request has no Upload-Complete, or one that is not a boolean.",
        advice: "Send Upload-Complete: ?1 with the last bytes, and ?0 with others.")

    static let notPartialUpload = UploadProblem(
        status: 415, code: "not-partial-upload",
        message: "The body of an append must have the type \(PartialUpload.mediaType).",
        advice: "Send Content-Type: \(PartialUpload.mediaType)."
    ).adding { $0[.acceptPatch] = PartialUpload.mediaType }

    static let unknownResumptionVersion: UploadProblem = {
        let version = ResumptionVersion.latestNumbered
        let problem = UploadProblem(
            status: 400, code: "unknown-resumption-version",
            message: "The receiver does not support the request's Upload-Draft-Interop-Version.",
            advice: "Send 3 to \(version.interopNumber ?? 0), or leave it out.")
        return problem.adding { fields in
            fields.setResumptionVersion(version)
            fields.setUploadCompleteness(false, in: version)
        }
    }()

    static let unfinishedUploadNotFound = UploadProblem(
        status: 404, code: "upload-not-found",
        message: "There is no such unfinished upload. It was discarded or has expired.", advice: "Start over.")

    /// The problem of an append that a later request has replaced. The connection is closed without a response.
    static let supersededAppend = UploadProblem(
        status: 409, code: "append-superseded", message: "Another request for the same upload arrived.",
        advice: "Send one request at a time to an upload.")
}
