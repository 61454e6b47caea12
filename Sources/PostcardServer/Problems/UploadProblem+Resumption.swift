package import HTTPTypes
import PostcardForm
import PostcardResumption

extension UploadProblem {
    /// What an answer to an upload that can be resumed has beside an ordinary refusal.
    struct Resumption: Sendable, Hashable {
        /// The registered type, in place of the receiver's own.
        var type: ResumptionProblemType?
        var expectedOffset: Int64?
        var providedOffset: Int64?
        /// Further header fields.
        var fields = HTTPFields()
    }

    private init(
        _ type: ResumptionProblemType, status: HTTPResponse.Status, detail: String, fix: String
    ) {
        self.init(status: status, code: type.rawValue, detail: detail, fix: fix)
        resumption.type = type
    }

    /// The same problem with further header fields.
    package func adding(_ change: (inout HTTPFields) -> Void) -> UploadProblem {
        var problem = self
        change(&problem.resumption.fields)
        return problem
    }

    static func mismatchingOffset(expected: Int64, provided: Int64) -> UploadProblem {
        var problem = UploadProblem(
            .mismatchingOffset, status: .conflict,
            detail: "The upload has \(expected) bytes, and what was to be appended begins at \(provided).",
            fix: "Go on from byte \(expected).")
        problem.resumption.expectedOffset = expected
        problem.resumption.providedOffset = provided
        problem.resumption.fields.uploadOffset = expected
        return problem
    }

    static func completedUpload(in version: ResumptionVersion) -> UploadProblem {
        // The newest text takes bytes behind the end for a wrong length (§4.4.2).
        UploadProblem(
            version == .newest ? .inconsistentLength : .completed, status: .badRequest,
            detail: "The upload has all its bytes, and takes no more.",
            fix: "Begin another upload, or send an empty PATCH that completes this one to get its answer again.")
    }

    static let inconsistentLength = UploadProblem(
        .inconsistentLength, status: .badRequest,
        detail: "The lengths that were told of the upload differ, or its bytes are more or fewer than that.",
        fix: "Send one length in Upload-Length, and as many bytes.")

    static func uploadTooLarge(maximum: Int64) -> UploadProblem {
        let code = FormProblem.Code.bodyTooLarge
        var problem = UploadProblem(
            status: HTTPResponse.Status(code: code.status), code: code.rawValue,
            detail: "The upload has more than the \(maximum) bytes that are allowed.",
            fix: "Send fewer or smaller files, or several forms.")
        problem.limit = Limit(name: "maximumBodyBytes", value: maximum)
        return problem
    }

    static let missingUploadOffset = UploadProblem(
        status: 400, code: "missing-upload-offset",
        detail: "The request does not say where its bytes belong: it has no Upload-Offset, or several, or no integer.",
        fix: "Send Upload-Offset with the offset that HEAD answers.")

    static let missingUploadComplete = UploadProblem(
        status: 400, code: "missing-upload-complete",
        detail: "The request does not say whether it is the last: it has no Upload-Complete, or no boolean.",
        fix: "Send Upload-Complete: ?1 with the last bytes, and ?0 before.")

    static let notPartialUpload: UploadProblem = {
        let problem = UploadProblem(
            status: 415, code: "not-partial-upload",
            detail: "What is appended to an upload is \(PartialUpload.mediaType).",
            fix: "Send Content-Type: \(PartialUpload.mediaType).")
        return problem.adding { $0[.acceptPatch] = PartialUpload.mediaType }
    }()

    static let unknownResumptionVersion = UploadProblem(
        status: 400, code: "unknown-resumption-version",
        detail: "The request's Upload-Draft-Interop-Version is none that the receiver knows.",
        fix: "Send 3 to 8, or leave it out.")

    static let unfinishedUploadNotFound = UploadProblem(
        status: 404, code: "upload-not-found",
        detail: "There is no upload to go on with: it was cancelled, or its time is over.", fix: "Begin anew.")

    static func tooManyUnfinished(_ options: ResumptionOptions, share: Int) -> UploadProblem {
        var problem = UploadProblem(
            status: 503, code: "too-many-unfinished-uploads",
            detail: "The receiver keeps \(options.maximumUnfinished) unfinished uploads, \(share) of one address, of "
                + "\(options.maximumUnfinishedBytes) bytes together, and has as many.",
            fix: "Send the form in one request, or come again later.")
        problem.retryAfterSeconds = 60
        return problem
    }

    /// It reaches nobody: the connection is closed.
    static let supersededAppend = UploadProblem(
        status: 409, code: "append-superseded", detail: "Another request for the same upload came.",
        fix: "Send one request at a time to an upload.")
}
