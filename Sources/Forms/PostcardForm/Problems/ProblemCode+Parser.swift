extension FormProblem.Code {
    /// The codes of the parser's errors and warnings, in the order of the documentation's page.
    package static let ofParser: [Self] = [
        .malformedRequest, .bodyNotSent, .contentLengthMismatch, .missingLength, .malformedChunk, .missingContentType,
        .notFormData,
        .malformedContentType, .missingBoundary, .duplicateBoundary, .invalidBoundary, .delimiterNotFound,
        .malformedDelimiter, .textAfterCloseDelimiter, .missingCloseDelimiter, .truncated, .bareLineBreak, .nulInHeader,
        .malformedHeaderField,
        .missingContentDisposition, .duplicateContentDisposition, .duplicatePartContentType, .dispositionNotFormData,
        .malformedParameter, .duplicateParameter, .contradictingFilenames, .missingName, .emptyName, .headerTooLarge,
        .tooManyHeaderFields, .foldedHeaderLine, .contentTransferEncoding, .nameNotUTF8, .tooManyCombiningMarks,
        .unescapedBackslash, .extendedFilename, .ignoredParameter, .tooManyParts,
    ]
}

// MARK: - The request's head

extension FormProblem.Code {
    /// The request has no request line, or a line of its head is not a header field.
    public static let malformedRequest = Self(
        "malformed-request", status: 400, .head, "The request's head is malformed",
        cause: "A server reads a request line, header fields and a blank line (RFC 9112 §2.1), and refuses "
            + "anything else before it looks at the form.",
        example: #"POST /uploads HTTP/1.1\r\nContent-Length : 3\r\n\r\n"#,
        advice: "Let an HTTP library write the head; each line is Name: value.")

    /// The head announces a body, but no body follows.
    public static let bodyNotSent = Self(
        "body-not-sent", status: 400, .head, "The body was not sent",
        cause:
            "The head has the body's length, and the connection ends after the head. A stream was read before, as for a "
            + "first attempt or a digest, or the request is the first of an authentication, whose body follows in the "
            + "second.",
        example: #"Content-Length: 812\r\n\r\n, and nothing more"#,
        advice: "Open the file or the stream again for each attempt.",
        swift: "request.httpBodyStream = InputStream(url: file)  // a new one for each attempt")

    /// A field of the head has a byte that its grammar does not allow.
    public static let malformedRequestField = Self(
        "malformed-request-field", status: 400, .head, "A header field has a byte that it cannot have",
        cause: "Host, Origin, Authorization, Content-Type and other fields that servers compare are written in ASCII, "
            + "each by a grammar of its own. Servers read other bytes differently, or refuse the request.",
        example: "Host: \u{c4}rzte.example", advice: "Write the field in ASCII, by its grammar.")

    /// A field of the head is longer than those of any ordinary client.
    public static let requestFieldTooLong = Self(
        "request-field-too-long", status: 431, .head, "A header field is too long",
        cause: "Servers compare such fields for each request, and limit their length.",
        example: "a Host of 301 bytes", advice: "Shorten the field.")

    /// The Content-Length differs from the number of bytes in the body.
    public static let contentLengthMismatch = Self(
        "content-length-mismatch", status: 400, .head, "The Content-Length is not the body's length",
        cause: "If it is too large, the server waits for bytes that are never sent. If it is too small, the form is "
            + "cut off, and the rest is read as another request.",
        example: #"Content-Length: 20\r\n\r\n, and a body of 25 bytes"#,
        advice: "Let the library that sends the body count it, or count its bytes, not its characters.",
        swift: "body.count  // of Data; not String.count, which counts characters")

    /// A body follows the head of the request, but the head has neither Content-Length nor Transfer-Encoding.
    public static let missingLength = Self(
        "missing-length", .head, "The request does not say how long its body is",
        cause: "Without Content-Length or Transfer-Encoding a request has no body (RFC 9112 §6.3).",
        example: #"POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=XX\r\n\r\n--XX…"#,
        advice: "Let the library that sends the body say how long it is.")

    /// The chunks of the body do not follow RFC 9112 §7.1.
    public static let malformedChunk = Self(
        "malformed-chunk", status: 400, .head, "The body's chunks are malformed",
        cause: "Each chunk is its length in hexadecimal digits, CRLF, its bytes and CRLF, and the last has the "
            + "length 0 (RFC 9112 §7.1). Otherwise a server does not know where the body ends.",
        example: #"5\r\n--XX\r\n0\r\n\r\n"#, advice: "Let an HTTP library write the chunks.")

    /// The request has no Content-Type.
    public static let missingContentType = Self(
        "missing-content-type", status: 415, .head, "The request has no Content-Type",
        cause: "The boundary is in the Content-Type. Without it no server can separate the parts.",
        example: #"POST / HTTP/1.1\r\nContent-Length: 812\r\n\r\n--XX…"#,
        advice: "Send Content-Type: multipart/form-data; boundary=… with the body's boundary.",
        swift: #"request.setValue("multipart/form-data; boundary=\(boundary)", "#
            + #"forHTTPHeaderField: "Content-Type")"#)

    /// The Content-Type is not `multipart/form-data`.
    public static let notFormData = Self(
        "not-form-data", status: 415, .head, "The Content-Type is not multipart/form-data",
        cause: "A server picks its parser by the Content-Type, and this one is for another format.",
        example: #"Content-Type: application/json\r\n\r\n--XX…"#,
        advice: "Send Content-Type: multipart/form-data; boundary=… with the body's boundary.",
        swift: #"request.setValue("multipart/form-data; boundary=\(boundary)", "#
            + #"forHTTPHeaderField: "Content-Type")"#)

    /// The Content-Type does not follow the grammar of RFC 9110 §8.3.1.
    public static let malformedContentType = Self(
        "malformed-content-type", status: 400, .head, "The Content-Type is malformed",
        cause: "It is a media type and parameters, name=value, between semicolons (RFC 9110 §8.3.1).",
        example: #"Content-Type: multipart/form-data; boundary="XX"#,
        advice: "Write multipart/form-data; boundary=… and nothing more.")

    /// The Content-Type has no boundary.
    public static let missingBoundary = Self(
        "missing-boundary", status: 400, .head, "The Content-Type names no boundary",
        cause: "The header was set by hand, replacing the one that the library would have written. Without the "
            + "boundary no server can separate the parts.",
        example: "Content-Type: multipart/form-data",
        advice: "Add boundary=… with the body's boundary, or let the library that makes the body set the header.",
        swift: #""multipart/form-data; boundary=\(boundary)""#)

    /// The Content-Type has two different boundaries.
    public static let duplicateBoundary = Self(
        "duplicate-boundary", status: 400, .head, "The Content-Type names two boundaries",
        cause: "One server uses the first and another the last, which lets attackers bypass filters, so strict ones "
            + "refuse.",
        example: "Content-Type: multipart/form-data; boundary=XX; boundary=YY",
        advice: "Write only the one that the body uses.")

    /// The boundary breaks the rules of RFC 2046 §5.1.1.
    public static let invalidBoundary = Self(
        "invalid-boundary", status: 400, .head, "The boundary is not allowed",
        cause: "A boundary has 1 to 70 characters and does not end in a space (RFC 2046 §5.1.1).",
        example: #"Content-Type: multipart/form-data; boundary="""#,
        advice: "Use 1 to 70 letters and digits.", swift: "let boundary = Boundary()")
}

// MARK: - The delimiters

extension FormProblem.Code {
    /// The boundary of the Content-Type is nowhere in the body.
    public static let delimiterNotFound = Self(
        "delimiter-not-found", status: 400, .delimiters, "The body has no delimiter",
        cause: "The body has no parts, or uses another boundary. The server finds nothing in it.",
        example: #"Content-Type: multipart/form-data; boundary=XX\r\n\r\nhello"#,
        advice: "Write two dashes, the boundary of the Content-Type and CRLF before each part.")

    /// A line begins like a delimiter, but does not end like one.
    public static let malformedDelimiter = Self(
        "malformed-delimiter", status: 400, .delimiters, "Text follows a delimiter on the same line",
        cause: "Only blanks may follow a boundary on the same line (RFC 2046 §5.1.1).",
        example: #"--XX  bogus\r\n"#,
        advice: "Write CRLF directly after the boundary, or choose a boundary that the content does not contain.")

    /// The close delimiter is followed by more text on its line.
    public static let textAfterCloseDelimiter = Self(
        "text-after-close-delimiter", status: 400, .delimiters, "Text follows the close delimiter on the same line",
        cause: "The close delimiter is a whole line. If text follows it on the line, servers disagree what it is.",
        example: "--XX--end", advice: "End the body with the close delimiter and CRLF.")

    /// The body ends after a line break in a part's content, without a close delimiter.
    public static let missingCloseDelimiter = Self(
        "missing-close-delimiter", status: 400, .delimiters, "The close delimiter is missing",
        cause: "Only the close delimiter shows that a form is complete, so servers refuse a form without it, or "
            + "wait for the rest.",
        example: #"…hello\r\n"#,
        advice: "End the body with CRLF, two dashes, the boundary, two dashes and CRLF.",
        swift: #"body.append(Data("\r\n--\(boundary)--\r\n".utf8))"#)

    /// The body ends inside a part's content, inside a part's header or inside a delimiter.
    public static let truncated = Self(
        "truncated", status: 400, .delimiters, "The body is cut off",
        cause: "The body ends before its close delimiter, and not at a line's end: the connection broke, the "
            + "Content-Length was too small, or a stream was not read to its end. Servers refuse it, or keep half a file.",
        example: #"--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nhel"#,
        advice: "Send all of it, up to the close delimiter.")

    /// A delimiter or header line ends in LF without CR, or contains a CR without LF.
    public static let bareLineBreak = Self(
        "bare-line-break", status: 400, .delimiters, "A line ends in LF or CR alone",
        cause: "Delimiter and header lines end in CRLF (RFC 2046 §5.1.1). Multi-line string literals and text "
            + "editors write LF, and most servers then find no delimiter or no header.",
        example: #"--XX\nContent-Disposition: form-data; name="a"\n\nhello\n--XX--\n"#,
        advice: #"End every delimiter and header line with CRLF ("\r\n")."#,
        swift: #"body.append(Data("--\(boundary)\r\n".utf8))"#)
}

// MARK: - The parts

extension FormProblem.Code {
    /// The header contains a NUL.
    public static let nulInHeader = Self(
        "nul-in-header", status: 400, .parts, "A part's header contains a NUL",
        cause: "The header was written in UTF-16, or content follows without a blank line. Servers refuse it, "
            + "because C cuts names at a NUL.",
        example: #"name="a\0b""#,
        advice: "Write the header in UTF-8, and a blank line between it and the content.")

    /// A line of the header is not a field: it has no colon, or its name is not a token.
    public static let malformedHeaderField = Self(
        "malformed-header-field", status: 400, .parts, "A line of a part's header is not a field",
        cause: "Each line up to the blank one is Name: value. Servers refuse the form or drop the part.",
        example: #"Content-Disposition form-data; name="a""#,
        advice: "Write Name: value, and a blank line between the header and the content.")

    /// The part has no Content-Disposition.
    public static let missingContentDisposition = Self(
        "missing-content-disposition", status: 400, .parts, "A part has no Content-Disposition",
        cause: "It contains the field's name (RFC 7578 §4.2), so the part is refused or lost.",
        example: #"--XX\r\nContent-Type: image/jpeg\r\n\r\n…"#,
        advice: #"Write Content-Disposition: form-data; name="…", and filename="…" for a file."#)

    /// The part has more than one Content-Disposition.
    public static let duplicateContentDisposition = Self(
        "duplicate-content-disposition", status: 400, .parts, "A part has two Content-Dispositions",
        cause: "One server uses the first and another the last.",
        example: "Content-Disposition: form-data; name=\"a\"\\r\\nContent-Disposition: form-data; name=\"b\"",
        advice: "Write one, with all its parameters.")

    /// The part has more than one Content-Type. This is an error even if the values are equal.
    public static let duplicatePartContentType = Self(
        "duplicate-part-content-type", status: 400, .parts, "A part has two Content-Types",
        cause: "One server uses the first and another the last, so a filter may check one type and the receiver store "
            + "the other.",
        example: #"Content-Type: image/jpeg\r\nContent-Type: text/html"#,
        advice: "Write one, with the type that the content has.")

    /// The part's Content-Disposition is not `form-data`.
    public static let dispositionNotFormData = Self(
        "disposition-not-form-data", status: 400, .parts, "A part's Content-Disposition is not form-data",
        cause: "Other types are for mail. Servers silently ignore such a part, or refuse the form.",
        example: #"Content-Disposition: attachment; name="image"; filename="a.jpg""#,
        advice: #"Write Content-Disposition: form-data; name="…", and filename="…" for a file."#)

    /// A parameter of the Content-Disposition does not follow the grammar.
    public static let malformedParameter = Self(
        "malformed-parameter", status: 400, .parts, "A parameter of the Content-Disposition is malformed",
        cause: "Parameters are name=value, separated by semicolons (RFC 9110 §5.6.6). Anything else is refused, or "
            + "the name is lost.",
        example: "Content-Disposition: form-data; name",
        advice: #"Write name="value", with %22 for a quote in the value, and a semicolon between parameters."#)

    /// A parameter of the Content-Disposition appears twice.
    public static let duplicateParameter = Self(
        "duplicate-parameter", status: 400, .parts, "A parameter appears twice",
        cause: "One server uses the first and another the last, which lets attackers bypass filters.",
        example: #"form-data; name="a"; name="b""#, advice: "Write each parameter once.")

    /// `filename` and `filename*` name different files.
    public static let contradictingFilenames = Self(
        "contradicting-filenames", status: 400, .parts, "filename and filename* name different files",
        cause: "A filter checks one and the server stores the other.",
        example: #"filename="safe.txt"; filename*=UTF-8''evil.php"#,
        advice: "Write only filename, in UTF-8 (RFC 7578 §4.2).")

    /// The Content-Disposition has no `name`.
    public static let missingName = Self(
        "missing-name", status: 400, .parts, "A part has no name",
        cause: "Servers look fields up by name, so the part is refused or lost.",
        example: #"Content-Disposition: form-data; filename="a.jpg""#,
        advice: #"Write Content-Disposition: form-data; name="…"."#)

    /// The `name` of the Content-Disposition is empty.
    public static let emptyName = Self(
        "empty-name", status: 400, .parts, "A part's name is empty",
        cause: "Servers look fields up by name, so the part is refused or lost.",
        example: #"Content-Disposition: form-data; name="""#,
        advice: "Use the name that the server expects.")

    /// The header of a part has more bytes than allowed.
    public static let headerTooLarge = Self(
        "header-too-large", status: 413, .parts, "A part's header is too large",
        cause:
            "Servers hold headers in memory and limit them to 8 or 16 KiB; usually the blank line is missing.",
        example: "20,000 bytes without a blank line",
        advice: "Shorten it, and write a blank line between it and the content.")

    /// The header of a part has more fields than allowed.
    public static let tooManyHeaderFields = Self(
        "too-many-header-fields", status: 413, .parts, "A part's header has too many fields",
        cause: "Only Content-Disposition and Content-Type are used (RFC 7578 §4.8), and servers limit the rest.",
        example: "65 header fields", advice: "Write only Content-Disposition and Content-Type.")

    /// A header field continues on a line that begins with a blank. HTTP has deprecated such lines (RFC 9112 §5.2).
    public static let foldedHeaderLine = Self(
        "folded-header-line", severity: .warning, .parts, "A header field is folded over several lines",
        cause: "A line that begins with a blank continues the field before it, as in mail. HTTP has retired that "
            + "(RFC 9112 §5.2): most servers join the lines, but browsers and some servers refuse the form.",
        example: #"Content-Disposition: form-data;\r\n name="a""#, advice: "Write each header field on one line.")

    /// A part has a Content-Transfer-Encoding, which RFC 7578 §4.7 deprecates. The content was not decoded.
    public static let contentTransferEncoding = Self(
        "content-transfer-encoding", severity: .warning, .parts, "A Content-Transfer-Encoding is announced",
        cause: "RFC 7578 §4.7 retired it: hardly any server decodes it, and one that does stores other bytes.",
        example: "Content-Transfer-Encoding: base64",
        advice: "Send the bytes as they are, and leave the field out.")

    /// A name or filename is not in UTF-8.
    public static let nameNotUTF8 = Self(
        "name-not-utf-8", severity: .warning, .parts, "A name is not in UTF-8",
        cause: "Servers and browsers read names as UTF-8 (RFC 7578 §5.1), and replace other bytes with question marks.",
        example: #"filename="caf\xE9.jpg""#, advice: "Write names in UTF-8.", swift: "Data(filename.utf8)")

    /// A part's header has more combining marks in a row than any text needs.
    public static let tooManyCombiningMarks = Self(
        "too-many-combining-marks", status: 400, .parts, "There are too many combining marks in a row",
        cause: "No text in any language has more than 30 in a row (UAX #15 §13). Comparing such names takes time by "
            + "the square of their number, so receivers refuse them.",
        example: #"name="a\u{300}\u{316}\u{300}\u{316}…""#,
        advice: "Send names, filenames and header fields without them.")

    /// A name or filename ends in an unescaped backslash, as browsers write it.
    public static let unescapedBackslash = Self(
        "unescaped-backslash", severity: .warning, .parts, "A name ends in a backslash that is not escaped",
        cause: "Browsers write a backslash as it is, but in a quoted string it escapes the quote after it (RFC 9110 "
            + "§5.6.4). Go, busboy and Werkzeug then lose the part or its name, and PHP reads a quote in it.",
        example: #"Content-Disposition: form-data; name="a\""#,
        advice: #"Write \\ for a backslash in a name or filename."#)

    /// The file is named by `filename*`, which RFC 7578 §4.2 forbids and some receivers ignore.
    public static let extendedFilename = Self(
        "extended-filename", .parts, "The filename is written as filename*",
        cause: "RFC 7578 §4.2 forbids it in forms, and many servers do not read it: the part is then no file.",
        example: "filename*=UTF-8''caf%C3%A9.jpg", advice: "Write filename, in UTF-8.")

    /// A Content-Disposition has parameters that RFC 7578 does not allow. They were ignored.
    public static let ignoredParameter = Self(
        "ignored-parameter", severity: .warning, .parts, "A parameter is not read",
        cause: "A Content-Disposition in a form has name and filename (RFC 7578 §4.2); others are ignored.",
        example: #"form-data; name="a"; size=12"#, advice: "Write only name and filename.")
}

// MARK: - The form as a whole

extension FormProblem.Code {
    /// The form has more parts than allowed.
    public static let tooManyParts = Self(
        "too-many-parts", status: 413, .whole, "The form has too many parts",
        cause: "Servers limit parts to some hundreds or thousands, because each costs memory.",
        example: "100,001 parts", advice: "Send fewer parts in one form.")
}
