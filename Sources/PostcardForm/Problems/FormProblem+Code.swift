extension FormProblem {
    /// What kind of problem it is. The raw value is stable: scripts may match it.
    public enum Code: String, Sendable, Hashable, CaseIterable, Codable, CustomStringConvertible {
        // The request's head.

        /// The request has no request line, or a line of its head is no header field.
        case malformedRequest = "malformed-request"
        /// The Content-Length is another than the number of the body's bytes.
        case contentLengthMismatch = "content-length-mismatch"
        /// The chunks of the body do not follow RFC 9112 §7.1.
        case malformedChunk = "malformed-chunk"
        /// The request has no Content-Type.
        case missingContentType = "missing-content-type"
        /// The Content-Type is another than `multipart/form-data`.
        case notFormData = "not-form-data"
        /// The Content-Type does not follow the grammar of RFC 9110 §8.3.1.
        case malformedContentType = "malformed-content-type"
        /// The Content-Type names no boundary.
        case missingBoundary = "missing-boundary"
        /// The Content-Type names two boundaries that differ.
        case duplicateBoundary = "duplicate-boundary"
        /// The boundary breaks the rules of RFC 2046 §5.1.1.
        case invalidBoundary = "invalid-boundary"

        // The delimiters.

        /// The boundary of the Content-Type is nowhere in the body.
        case delimiterNotFound = "delimiter-not-found"
        /// A line begins as a delimiter does and does not end as one.
        case malformedDelimiter = "malformed-delimiter"
        /// The close delimiter is followed by more text on its line.
        case textAfterCloseDelimiter = "text-after-close-delimiter"
        /// The body ends before the close delimiter.
        case truncated = "truncated"

        // The header of a part.

        /// A line of the header ends in a lone LF, or a lone CR stands in it.
        case bareLineBreak = "bare-line-break"
        /// A NUL stands in the header.
        case nulInHeader = "nul-in-header"
        /// A line of the header is no field: it has no colon, or its name is not a token.
        case malformedHeaderField = "malformed-header-field"
        /// The part has no Content-Disposition.
        case missingContentDisposition = "missing-content-disposition"
        /// The part has more than one Content-Disposition.
        case duplicateContentDisposition = "duplicate-content-disposition"
        /// The part's Content-Disposition is not `form-data`.
        case dispositionNotFormData = "disposition-not-form-data"
        /// A parameter of the Content-Disposition does not follow the grammar.
        case malformedParameter = "malformed-parameter"
        /// A parameter of the Content-Disposition is given twice.
        case duplicateParameter = "duplicate-parameter"
        /// `filename` and `filename*` name different files.
        case contradictingFilenames = "contradicting-filenames"
        /// The Content-Disposition has no name.
        case missingName = "missing-name"
        /// The name is empty.
        case emptyName = "empty-name"

        // Limits.

        /// The body has more bytes than allowed.
        case bodyTooLarge = "body-too-large"
        /// The form has more parts than allowed.
        case tooManyParts = "too-many-parts"
        /// A file has more bytes than allowed.
        case fileTooLarge = "file-too-large"
        /// The value of a text field has more bytes than allowed.
        case fieldTooLarge = "field-too-large"
        /// The header of a part has more bytes than allowed.
        case headerTooLarge = "header-too-large"
        /// The header of a part has more fields than allowed.
        case tooManyHeaderFields = "too-many-header-fields"
        /// More bytes than allowed come before the first delimiter.
        case preambleTooLarge = "preamble-too-large"
        /// More bytes than allowed come behind the close delimiter.
        case epilogueTooLarge = "epilogue-too-large"

        // Warnings.

        /// A Content-Transfer-Encoding, which RFC 7578 §4.7 retired, was not undone.
        case contentTransferEncoding = "content-transfer-encoding"
        /// A name or filename is not in UTF-8.
        case nameNotUTF8 = "name-not-utf-8"
        /// A parameter is there that RFC 7578 does not allow, and it was not read.
        case ignoredParameter = "ignored-parameter"
        /// The Content-Type of a part is given twice, and the first was taken.
        case duplicatePartContentType = "duplicate-part-content-type"

        /// How much a problem of the kind weighs.
        public var severity: Severity { classification.severity }

        /// The status that a receiver refuses the request with; 200 where it does not.
        public var status: Int { classification.status }

        public var description: String { rawValue }
    }
}

extension FormProblem.Code {
    /// The one table that says how each code is treated.
    private var classification: (severity: FormProblem.Severity, status: Int) {
        switch self {
        case .missingContentType, .notFormData:
            (.error, 415)
        case .malformedRequest, .contentLengthMismatch, .malformedChunk, .malformedContentType, .missingBoundary,
            .duplicateBoundary, .invalidBoundary, .delimiterNotFound, .malformedDelimiter,
            .textAfterCloseDelimiter, .truncated, .bareLineBreak, .nulInHeader, .malformedHeaderField,
            .missingContentDisposition, .duplicateContentDisposition, .dispositionNotFormData,
            .malformedParameter, .duplicateParameter, .contradictingFilenames, .missingName, .emptyName:
            (.error, 400)
        case .bodyTooLarge, .tooManyParts, .fileTooLarge, .fieldTooLarge, .headerTooLarge, .tooManyHeaderFields,
            .preambleTooLarge, .epilogueTooLarge:
            (.error, 413)
        case .contentTransferEncoding, .nameNotUTF8, .ignoredParameter, .duplicatePartContentType:
            (.warning, 200)
        }
    }
}
