public import PostcardForm

/// What the doctor looks for and the parser does not: requests that are refused elsewhere, or arrive with something
/// else than was meant.
public enum DoctorCode: String, Sendable, Hashable, CaseIterable, Codable, CustomStringConvertible {
    // The request's head.

    /// A line of the head ends in LF alone.
    case bareLineBreakInHead = "bare-line-break-in-head"
    /// The request has two Content-Type fields, or two values in one.
    case duplicateContentType = "duplicate-content-type"
    /// The head says in two ways how long the body is.
    case conflictingLengths = "conflicting-lengths"
    /// The body's delimiters are made of another boundary than the Content-Type's.
    case boundaryMismatch = "boundary-mismatch"
    /// The Content-Type's boundary has dashes that are the delimiter's.
    case boundaryWithDashes = "boundary-with-dashes"
    /// The Content-Type's boundary and the body's differ in quotes.
    case boundaryQuotes = "boundary-quotes"
    /// The Content-Type's boundary and the body's differ in spaces.
    case boundarySpaces = "boundary-spaces"
    /// The Content-Type's boundary and the body's differ in case.
    case boundaryCase = "boundary-case"
    /// The boundary has characters that need quotes, and has none.
    case boundaryWithoutQuotes = "boundary-without-quotes"
    /// The boundary has characters that RFC 2046 does not allow.
    case boundaryCharacters = "boundary-characters"
    /// The body is JSON.
    case jsonBody = "json-body"
    /// The body is `application/x-www-form-urlencoded`.
    case urlEncodedBody = "url-encoded-body"
    /// The whole body was encoded in base64.
    case base64Body = "base64-body"
    /// The whole body was percent-encoded.
    case percentEncodedBody = "percent-encoded-body"
    /// The whole body was compressed.
    case compressedBody = "compressed-body"
    /// The recording of the request holds none of its body.
    case bodyNotRecorded = "body-not-recorded"

    // The delimiters.

    /// The body begins with a byte order mark.
    case byteOrderMark = "byte-order-mark"
    /// The body begins with a line break.
    case leadingLineBreak = "leading-line-break"
    /// Text comes before the first delimiter.
    case preamble = "preamble"
    /// The delimiters lack their two dashes.
    case delimiterWithoutDashes = "delimiter-without-dashes"
    /// A delimiter does not begin a line.
    case missingLineBreakBeforeDelimiter = "missing-line-break-before-delimiter"
    /// A part's header begins on the delimiter's line.
    case missingLineBreakAfterDelimiter = "missing-line-break-after-delimiter"
    /// A part ends in a line break that belongs to the next delimiter.
    case extraLineBreakBeforeDelimiter = "extra-line-break-before-delimiter"
    /// Blanks stand behind the boundary of a delimiter.
    case paddedDelimiter = "padded-delimiter"
    /// No blank line stands between a part's header and its content.
    case missingBlankLine = "missing-blank-line"
    /// A blank line stands between a delimiter and the part's header.
    case extraBlankLine = "extra-blank-line"
    /// A line of the content looks like a delimiter.
    case delimiterInContent = "delimiter-in-content"
    /// The body is whole but for its close delimiter.
    case missingCloseDelimiter = "missing-close-delimiter"
    /// The last delimiter does not end in two dashes.
    case wrongCloseDelimiter = "wrong-close-delimiter"
    /// No line break follows the close delimiter.
    case noFinalLineBreak = "no-final-line-break"
    /// Bytes follow the close delimiter's line.
    case epilogue = "epilogue"
    /// Parts follow the close delimiter.
    case partsAfterCloseDelimiter = "parts-after-close-delimiter"

    // The parts.

    /// A blank stands before the colon of a header field.
    case blankBeforeColon = "blank-before-colon"
    /// A quote in a quoted value is not escaped.
    case unescapedQuote = "unescaped-quote"
    /// A value with blanks or semicolons is not quoted.
    case unquotedValue = "unquoted-value"
    /// A name or filename stands between quotes that are no double quotes.
    case quotesInName = "quotes-in-name"
    /// A name or filename holds control characters.
    case controlInName = "control-in-name"
    /// A name, a filename or a text was read in the wrong charset before it was sent.
    case mojibake = "mojibake"
    /// A part that is a file by its type or content has no filename.
    case fileWithoutFilename = "file-without-filename"
    /// A filename is empty.
    case emptyFilename = "empty-filename"
    /// A filename has a path before it.
    case pathInFilename = "path-in-filename"
    /// A text has a filename.
    case textWithFilename = "text-with-filename"
    /// A part's Content-Type is no media type.
    case malformedMediaType = "malformed-media-type"
    /// A part's Content-Type is a common misspelling.
    case misspelledMediaType = "misspelled-media-type"
    /// A part's first bytes are those of another type.
    case contentContradictsType = "content-contradicts-type"
    /// A filename's extension is that of another type.
    case extensionContradictsType = "extension-contradicts-type"
    /// A file has no bytes.
    case emptyFile = "empty-file"
    /// A picture ends before its format does.
    case truncatedPicture = "truncated-picture"
    /// Base64 text stands where bytes belong.
    case base64Content = "base64-content"
    /// A value is what Swift prints of an optional.
    case optionalDescription = "optional-description"
    /// A value is what a language prints for nothing.
    case nullText = "null-text"
    /// A value is what a language prints of an object.
    case objectDescription = "object-description"
    /// A number is written as people write it, not as programs read it.
    case surprisingNumber = "surprising-number"
    /// A date is written as people write it, not as programs read it.
    case surprisingDate = "surprising-date"
    /// A text is not in UTF-8.
    case textNotUTF8 = "text-not-utf-8"
    /// Several files have the same filename.
    case repeatedFilename = "repeated-filename"
    /// Two files have the same bytes.
    case repeatedContent = "repeated-content"
    /// A photo tells where it was taken.
    case locationInPhoto = "location-in-photo"

    // The whole.

    /// The form has no parts.
    case noParts = "no-parts"
    /// Fields come behind the file, where S3 does not read them.
    case fieldsAfterFile = "fields-after-file"
    /// The form is over what common servers take unless told otherwise.
    case overCommonDefaults = "over-common-defaults"
    /// One of the servers asked about refuses the form, or reads it otherwise than meant.
    case refusedByServer = "refused-by-server"

    public var description: String { rawValue }
}

extension DoctorCode {
    /// How much a problem of the kind weighs; ``FindingCode/severity`` says by which rule.
    public var severity: FormProblem.Severity {
        switch self {
        // Receivers refuse these, or do not find the form.
        case .bareLineBreakInHead, .duplicateContentType, .conflictingLengths, .boundaryMismatch, .boundaryWithDashes,
            .boundaryQuotes, .boundarySpaces, .boundaryCase, .jsonBody, .urlEncodedBody, .base64Body,
            .percentEncodedBody, .compressedBody, .bodyNotRecorded, .delimiterWithoutDashes,
            .missingLineBreakBeforeDelimiter, .missingLineBreakAfterDelimiter, .missingBlankLine, .extraBlankLine,
            .missingCloseDelimiter, .wrongCloseDelimiter, .blankBeforeColon, .unescapedQuote, .unquotedValue,
            .byteOrderMark, .refusedByServer:
            .error
        // Receivers take these, and lose or alter something.
        case .delimiterInContent, .extraLineBreakBeforeDelimiter, .paddedDelimiter, .partsAfterCloseDelimiter,
            .quotesInName, .fileWithoutFilename, .textNotUTF8, .fieldsAfterFile:
            .error
        // These arrive as they were sent. Some receivers refuse them, or something else may have been meant.
        case .boundaryWithoutQuotes, .boundaryCharacters, .leadingLineBreak, .preamble, .noFinalLineBreak, .epilogue,
            .controlInName, .mojibake, .emptyFilename, .pathInFilename, .textWithFilename, .malformedMediaType,
            .misspelledMediaType, .contentContradictsType, .extensionContradictsType, .emptyFile, .truncatedPicture,
            .base64Content, .optionalDescription, .nullText, .objectDescription, .surprisingNumber, .surprisingDate,
            .repeatedFilename, .repeatedContent, .locationInPhoto, .noParts, .overCommonDefaults:
            .warning
        }
    }
}
