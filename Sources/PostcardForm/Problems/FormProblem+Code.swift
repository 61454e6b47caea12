extension FormProblem {
    /// What kind of problem it is. The raw value is stable: scripts may match it.
    public enum Code: String, Sendable, Hashable, CaseIterable, Codable, CustomStringConvertible {
        // The request's head.

        /// The request has no request line, or a line of its head is no header field.
        case malformedRequest = "malformed-request"
        /// The Content-Length is another than the number of the body's bytes.
        case contentLengthMismatch = "content-length-mismatch"
        /// The request says nothing of its body's length, and has bytes behind its head.
        case missingLength = "missing-length"
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
        /// More bytes than allowed come before the first delimiter: mostly the boundary is another.
        case preambleTooLarge = "preamble-too-large"
        /// More bytes than allowed come behind the close delimiter.
        case epilogueTooLarge = "epilogue-too-large"

        // The rules of a form.

        /// A text field comes that the rules do not name.
        case unexpectedField = "unexpected-field"
        /// A part holds files in a `multipart/mixed` of its own, where rules are to be kept.
        case nestedFiles = "nested-files"
        /// A file comes that the rules do not name.
        case unexpectedFile = "unexpected-file"
        /// A text field comes where the rules have a file: its Content-Disposition has no filename.
        case fieldInsteadOfFile = "field-instead-of-file"
        /// A file comes where the rules have a text field.
        case fileInsteadOfField = "file-instead-of-field"
        /// A text field comes more often than the rules allow.
        case tooManyFields = "too-many-fields"
        /// More files come under a name than the rules allow.
        case tooManyFiles = "too-many-files"
        /// A text field does not come, or not often enough.
        case missingField = "missing-field"
        /// A file does not come, or too few do.
        case missingFile = "missing-file"
        /// A text field has fewer characters than the rules allow.
        case fieldTooShort = "field-too-short"
        /// A text field has more characters than the rules allow.
        case fieldTooLong = "field-too-long"
        /// A text field that the rules want to be text is not in UTF-8.
        case fieldNotUTF8 = "field-not-utf-8"
        /// A text field does not match the pattern of the rules.
        case patternMismatch = "pattern-mismatch"
        /// A text field has none of the values that the rules allow.
        case valueNotAllowed = "value-not-allowed"
        /// A file has fewer bytes than the rules allow.
        case fileTooSmall = "file-too-small"
        /// All files together have more bytes than the rules allow.
        case filesTooLarge = "files-too-large"
        /// The Content-Type of a file names no accepted type.
        case fileTypeNotAccepted = "file-type-not-accepted"
        /// The first bytes of a file are not those of an accepted type.
        case fileContentNotAccepted = "file-content-not-accepted"

        // Warnings.

        /// A Content-Transfer-Encoding, which RFC 7578 §4.7 retired, was not undone.
        case contentTransferEncoding = "content-transfer-encoding"
        /// A name or filename is not in UTF-8.
        case nameNotUTF8 = "name-not-utf-8"
        /// `filename*` names the file, which RFC 7578 §4.2 forbids and some receivers do not read.
        case extendedFilename = "extended-filename"
        /// Parameters are there that RFC 7578 does not allow, and they were not read.
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
        case .missingContentType, .notFormData, .fileTypeNotAccepted, .fileContentNotAccepted:
            (.error, 415)
        case .malformedRequest, .contentLengthMismatch, .malformedChunk, .malformedContentType, .missingBoundary,
            .duplicateBoundary, .invalidBoundary, .delimiterNotFound, .malformedDelimiter,
            .textAfterCloseDelimiter, .truncated, .bareLineBreak, .nulInHeader, .malformedHeaderField,
            .missingContentDisposition, .duplicateContentDisposition, .dispositionNotFormData,
            .malformedParameter, .duplicateParameter, .contradictingFilenames,
            .missingName, .emptyName,
            .preambleTooLarge:
            (.error, 400)
        case .bodyTooLarge, .tooManyParts, .fileTooLarge, .fieldTooLarge, .headerTooLarge, .tooManyHeaderFields,
            .epilogueTooLarge, .filesTooLarge:
            (.error, 413)
        case .unexpectedField, .unexpectedFile, .nestedFiles, .fieldInsteadOfFile, .fileInsteadOfField, .tooManyFields,
            .tooManyFiles, .missingField, .missingFile, .fieldTooShort, .fieldTooLong, .fieldNotUTF8,
            .patternMismatch, .valueNotAllowed, .fileTooSmall:
            (.error, 422)
        case .missingLength, .contentTransferEncoding, .nameNotUTF8, .extendedFilename, .ignoredParameter,
            .duplicatePartContentType:
            (.warning, 200)
        }
    }
}
