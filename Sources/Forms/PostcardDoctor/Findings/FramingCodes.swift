public import PostcardForm

extension FormProblem.Code {
    /// The codes about the request's head and the delimiters, in the order of the documentation's page.
    static let ofFraming: [Self] = [
        .bareLineBreakInHead, .methodWithoutContent, .duplicateContentType, .conflictingLengths, .boundaryMismatch,
        .boundaryWithDashes,
        .boundaryQuotes, .boundarySpaces, .boundaryCase, .boundaryWithoutQuotes, .boundaryCharacters, .jsonBody,
        .urlEncodedBody, .base64Body, .percentEncodedBody, .withoutLineBreaks, .escapedLineBreaks, .compressedBody,
        .bodyNotRecorded, .byteOrderMark,
        .leadingLineBreak, .preamble, .delimiterWithoutDashes, .extraDashes, .missingLineBreakBeforeDelimiter,
        .missingLineBreakAfterDelimiter, .extraLineBreakBeforeDelimiter, .paddedDelimiter, .missingBlankLine,
        .extraBlankLine, .delimiterInContent, .partInContent, .wrongCloseDelimiter,
        .noFinalLineBreak,
        .epilogue, .partsAfterCloseDelimiter, .notExamined,
    ]
}

// MARK: - The request's head

extension FormProblem.Code {
    /// A line of the head ends in LF alone.
    public static let bareLineBreakInHead = Self(
        "bare-line-break-in-head", .head, "A line of the head ends in LF alone",
        cause: "Lines of a request's head end in CRLF (RFC 9112 §2.1). Some servers accept LF alone and some refuse "
            + "it, because request smuggling exploits the difference. Text editors and multi-line string literals "
            + "write LF, and usually the body has it too.",
        example: #"POST / HTTP/1.1\nContent-Type: multipart/form-data; boundary=XX\n\n"#,
        advice: #"End every line with CRLF ("\r\n"), or let an HTTP library write the head."#)

    /// The request has a form, although its method allows no body.
    public static let methodWithoutContent = Self(
        "method-without-content", severity: .warning, .head, "The method sends no form",
        cause: "What the content of a GET, HEAD, DELETE, TRACE or CONNECT means is not defined (RFC 9110 §9.3): most "
            + "servers and proxies ignore it, drop it, or refuse the request.",
        example: "GET /uploads HTTP/1.1, and a form as its body",
        advice: "Send the form with POST, or with the method that the server documents.",
        swift: #"request.httpMethod = "POST""#)

    /// The request has two Content-Type fields, or one field with two values.
    public static let duplicateContentType = Self(
        "duplicate-content-type", .head, "Two Content-Types",
        cause: "A header was added where it should have been set: URLRequest's addValue appends to a JSON type that "
            + "was set before. Servers use the first, which is not multipart, or neither.",
        example: "Content-Type: application/json, multipart/form-data; boundary=XX",
        advice: "Set Content-Type once, to multipart/form-data with the body's boundary.",
        swift: #"request.setValue("multipart/form-data; boundary=\(boundary)", "#
            + #"forHTTPHeaderField: "Content-Type")"#)

    /// The head states two different lengths of the body.
    public static let conflictingLengths = Self(
        "conflicting-lengths", .head, "Two lengths of one body",
        cause: "If a server uses one and its proxy the other, requests can be smuggled, so both refuse (RFC 9112 "
            + "§6.3).",
        example: #"Content-Length: 812\r\nTransfer-Encoding: chunked"#,
        advice: "Send the Content-Length or the Transfer-Encoding, and let the library that sends decide which.")

    /// The Content-Type and the body use different boundaries.
    public static let boundaryMismatch = Self(
        "boundary-mismatch", .head, "The header's boundary is not the body's",
        cause: "The boundary was made twice, once for the header and once for the body: often by a computed "
            + "property that returns a new UUID. The server looks for delimiters that are not there, and finds no "
            + "part.",
        example: #"Content-Type: multipart/form-data; boundary=A1\r\n\r\n--B2\r\n…"#,
        advice: "Make the boundary once, keep it, and use it for both.",
        swift: "let boundary = UUID().uuidString  // stored, not var boundary: String { UUID().uuidString }")

    /// The boundary in the Content-Type begins with the dashes of the delimiter.
    public static let boundaryWithDashes = Self(
        "boundary-with-dashes", .head, "The boundary contains the delimiter's dashes",
        cause: "A delimiter is two dashes and the boundary. If the boundary parameter already has them, or the body "
            + "has too few, the server looks for two dashes that are not there.",
        example: #"Content-Type: multipart/form-data; boundary=--XX\r\n\r\n--XX\r\n…"#,
        advice: "Leave the two dashes out of the Content-Type, and write them before the boundary in the body only.",
        swift: #""multipart/form-data; boundary=\(boundary)"  // and "--\(boundary)\r\n" in the body"#)

    /// The boundaries of the Content-Type and of the body differ only by quotes.
    public static let boundaryQuotes = Self(
        "boundary-quotes", .head, "Quotes became part of the boundary",
        cause: "Quotes around the parameter are not part of its value; single quotes are, and so is every "
            + "quote in the body. The server looks for the boundary without them, or with them.",
        example: #"boundary="XX" in the head, and --"XX" in the body"#,
        advice: "Write the boundary without quotes in both places.")

    /// The boundaries of the Content-Type and of the body differ only by spaces.
    public static let boundarySpaces = Self(
        "boundary-spaces", .head, "Spaces became part of the boundary",
        cause: "A space at either end of a quoted boundary is part of it, and it may not end in one (RFC 2046 "
            + "§5.1.1). Servers differ in what they then look for.",
        example: #"boundary="XX " in the head, and --XX in the body"#,
        advice: "Write the boundary without spaces.")

    /// The boundaries of the Content-Type and of the body differ in upper and lower case.
    public static let boundaryCase = Self(
        "boundary-case", .head, "The boundary changed its case",
        cause: "A boundary is compared byte by byte; something has lowercased the header.",
        example: "boundary=formboundary7ma in the head, and --FormBoundary7MA in the body",
        advice: "Write the same boundary in both places.")

    /// The boundary has characters that must be quoted, but is not quoted.
    public static let boundaryWithoutQuotes = Self(
        "boundary-without-quotes", severity: .warning, .head, "The boundary needs quotes",
        cause: "Characters such as : / ? = , and space end a token (RFC 9110 §5.6.2). Strict servers read the "
            + "boundary only up to there.",
        example: "Content-Type: multipart/form-data; boundary=form:1/2",
        advice: "Use only letters and digits, or put the boundary into double quotes.")

    /// The boundary has characters that RFC 2046 does not allow.
    public static let boundaryCharacters = Self(
        "boundary-characters", severity: .warning, .head, "The boundary has forbidden characters",
        cause: "RFC 2046 §5.1.1 allows letters, digits and '()+_,-./:=? in a boundary; some servers insist on it.",
        example: "Content-Type: multipart/form-data; boundary=photo@home",
        advice: "Make the boundary of letters and digits.")

    /// The body is JSON.
    public static let jsonBody = Self(
        "json-body", .head, "The body is JSON",
        cause: "A generic endpoint passed the form, or the fields, through JSONEncoder. The Content-Type "
            + "announces parts, and the server finds none.",
        example: #"{"title":"Jeju","image":"/9j/4AAQ…"}"#,
        advice: "Send the form's own bytes as the body, or announce application/json if the server accepts it.",
        swift: "request.httpBody = try form.body()  // not try JSONEncoder().encode(form)")

    /// The body is `application/x-www-form-urlencoded`.
    public static let urlEncodedBody = Self(
        "url-encoded-body", .head, "The body is a URL-encoded form",
        cause:
            "The body is name=value&name=value, and the Content-Type announces parts. The server finds none.",
        example: "title=Jeju&message=hello",
        advice: "Send application/x-www-form-urlencoded with this body, or build a multipart one.")

    /// The whole body was encoded in base64.
    public static let base64Body = Self(
        "base64-body", .head, "The whole body is base64",
        cause: "The form was encoded for a place that accepts only text, and never decoded. HTTP carries bytes as "
            + "they are, and no server decodes base64.",
        example: "LS1YWA0KQ29udGVudC1EaXNwb3NpdGlvbjog…",
        advice: "Send the bytes of the body as they are.",
        swift: "request.httpBody = body  // not Data(body.base64EncodedString().utf8)")

    /// The whole body was percent-encoded.
    public static let percentEncodedBody = Self(
        "percent-encoded-body", .head, "The whole body is percent-encoded",
        cause: "The form went through URL escaping, so its line breaks are %0D%0A. No server decodes that for "
            + "multipart.",
        example: "--XX%0D%0AContent-Disposition:%20form-data;%20name=%22a%22%0D%0A…",
        advice: "Send the bytes of the body as they are.")

    /// The body has no line breaks.
    public static let withoutLineBreaks = Self(
        "without-line-breaks", .head, "All line breaks of the body are missing",
        cause:
            "curl's -d removes the line breaks of a file, and so do tools that join its lines. Delimiters and headers "
            + "are lines, so the server finds no part.",
        example: "--XXContent-Disposition: form-data; name=\"a\"hello--XX--",
        advice: "Send the file as it is: curl --data-binary @file, or let curl build the form with -F.",
        swift: #"lines.joined(separator: "\r\n")"#)

    /// The line breaks of the body are written as escapes.
    public static let escapedLineBreaks = Self(
        "escaped-line-breaks", .head, "The line breaks are written as backslashes and letters",
        cause:
            "The body was copied from a program's text or from JSON, where a line break is written as \\r\\n. Sent like "
            + "that they are four letters and no line break, so the server finds no part.",
        example: #"--XX\\r\\nContent-Disposition: form-data; name="a"\\r\\n\\r\\nhello…"#,
        advice: "Write CRLF, the bytes 13 and 10. In a shell, $'…' and printf write them for \\r\\n.",
        swift: #""--\(boundary)\r\n"  // not a raw string, and not "\\r\\n""#)

    /// The whole body was compressed.
    public static let compressedBody = Self(
        "compressed-body", .head, "The body was compressed as a whole",
        cause:
            "Content-Encoding is for responses: few servers decompress a request, and the others look for "
            + "delimiters in compressed bytes. It does not make pictures smaller.",
        example: #"Content-Encoding: gzip\r\n\r\n\x1F\x8B\x08…"#,
        advice: "Send the body as it is, without a Content-Encoding.")

    /// The recording of the request has no bytes of the body.
    public static let bodyNotRecorded = Self(
        "body-not-recorded", .head, "The recording lacks the body",
        cause:
            "Browsers leave the content of a form's files out of a HAR file, and some leave out the whole body. "
            + "Without its bytes the form cannot be checked.",
        example: #""postData": {"mimeType": "multipart/form-data; boundary=XX", "text": ""}"#,
        advice: "Record the request with curl --trace FILE or with a proxy that keeps bodies, or send it to "
            + "postcard explain --listen PORT.")
}

// MARK: - The delimiters

extension FormProblem.Code {
    /// The body begins with a byte order mark.
    public static let byteOrderMark = Self(
        "byte-order-mark", .delimiters, "The body begins with a byte order mark",
        cause: "The body was written as a text file with a byte order mark. It counts as text before the first "
            + "delimiter, and strict servers refuse the form.",
        example: #"\u{FEFF}--XX\r\n"#,
        advice: "Begin the body with two dashes and the boundary.")

    /// The body begins with a line break.
    public static let leadingLineBreak = Self(
        "leading-line-break", severity: .warning, .delimiters, "The body begins with a line break",
        cause: "The first delimiter was written like the others, with CRLF before it. RFC 2046 §5.1.1 allows it, "
            + "but some servers refuse it.",
        example: #"\r\n--XX\r\nContent-Disposition: form-data; name=\"a\"…"#,
        advice: "Begin the body with two dashes and the boundary; write CRLF only before the later delimiters.")

    /// Text comes before the first delimiter.
    public static let preamble = Self(
        "preamble", severity: .warning, .delimiters, "Text comes before the first delimiter",
        cause: "Servers ignore what comes before the first delimiter (RFC 2046 §5.1.1), or refuse it. It is lost in "
            + "either case. If it contains a part's header, that part is lost, which is an error.",
        example: #"This is a form.\r\n--XX\r\n…"#,
        advice: "Begin the body with two dashes and the boundary.")

    /// The delimiters lack the two dashes at their start.
    public static let delimiterWithoutDashes = Self(
        "delimiter-without-dashes", .delimiters, "The delimiters lack their dashes",
        cause: "Only the boundary is before each part. A delimiter is two dashes and the boundary (RFC 2046 "
            + "§5.1.1), so the server finds none.",
        example: #"XX\r\nContent-Disposition: form-data; name=\"a\"…"#,
        advice: "Write two dashes before the boundary, and two more after the last one.",
        swift: #"body.append(Data("--\(boundary)\r\n".utf8))"#)

    /// The first delimiter has too many dashes, or blanks, before its boundary.
    public static let extraDashes = Self(
        "extra-dashes", .delimiters, "The first delimiter has dashes or blanks too many",
        cause: "A delimiter is two dashes and the boundary (RFC 2046 §5.1.1), and nothing is before them on the line. "
            + "The server finds its first delimiter later, and the first part is lost.",
        example: "---XX for the first delimiter, and --XX for the others",
        advice: "Write all delimiters with the same code: two dashes and the boundary.",
        swift: #"body.append(Data("--\(boundary)\r\n".utf8))"#)

    /// A delimiter does not begin a line.
    public static let missingLineBreakBeforeDelimiter = Self(
        "missing-line-break-before-delimiter", .delimiters, "A delimiter does not begin a line",
        cause: "The CRLF before a delimiter belongs to the delimiter. Without it the content continues: the "
            + "delimiter and everything after it become part of the value.",
        example: #"hello--XX--\r\n"#,
        advice: "Write CRLF between a part's content and the next delimiter.",
        swift: #"body.append(content); body.append(Data("\r\n--\(boundary)\r\n".utf8))"#)

    /// A part's header begins on the delimiter's line.
    public static let missingLineBreakAfterDelimiter = Self(
        "missing-line-break-after-delimiter", .delimiters, "A header begins on the delimiter's line",
        cause: "A delimiter is a whole line. With text after the boundary it is another boundary, or part of the "
            + "content.",
        example: "--XXContent-Disposition: form-data; name=\"a\"",
        advice: "Write CRLF after the boundary.", swift: #"body.append(Data("--\(boundary)\r\n".utf8))"#)

    /// A part ends in a line break that belongs to the next delimiter.
    public static let extraLineBreakBeforeDelimiter = Self(
        "extra-line-break-before-delimiter", .delimiters, "The content ends with an extra line break",
        cause: "Each part ends with CRLF and each delimiter begins with one, so every part but the last gains two "
            + "bytes. Digests differ, and strict picture readers complain. If only texts end this way it may be "
            + "intended, and is a warning.",
        example: #"…\xFF\xD9\r\n\r\n--XX\r\n"#,
        advice: "Write one CRLF between a part's content and the next delimiter.",
        swift: #"body.append(photo); body.append(Data("\r\n--\(boundary)\r\n".utf8))  // not twice "\r\n""#)

    /// Blanks follow the boundary of a delimiter.
    public static let paddedDelimiter = Self(
        "padded-delimiter", severity: .warning, .delimiters, "Blanks follow the boundary",
        cause:
            "RFC 2046 §5.1.1 lets blanks follow a boundary, and browsers accept them, but many servers then refuse the "
            + "form or find no part.",
        example: #"--XX  \r\n"#,
        advice: "Write CRLF directly after the boundary.")

    /// There is no blank line between a part's header and its content.
    public static let missingBlankLine = Self(
        "missing-blank-line", .delimiters, "No blank line follows a part's header",
        cause: "The blank line ends the header. Without it, the content is read as header fields and refused.",
        example: #"Content-Disposition: form-data; name=\"a\"\r\nhello\r\n--XX--"#,
        advice: "Write a blank line, which is CRLF twice, between a part's header and its content.",
        swift: #"body.append(Data("Content-Disposition: form-data; name=\"a\"\r\n\r\n".utf8))"#)

    /// There is a blank line between a delimiter and the part's header.
    public static let extraBlankLine = Self(
        "extra-blank-line", .delimiters, "A blank line precedes a part's header",
        cause: "A part's header follows directly after its delimiter. After a blank line it is content, and the "
            + "part has no name.",
        example: #"--XX\r\n\r\nContent-Disposition: form-data; name=\"a\""#,
        advice: "Write the header directly after the delimiter's CRLF.")

    /// A line of the content looks like a delimiter.
    public static let delimiterInContent = Self(
        "delimiter-in-content", .delimiters, "A line of the content looks like a delimiter",
        cause: "The content contains the boundary. A server ends the part at such a line and reads what follows as "
            + "a header. If a line only begins like a delimiter, servers disagree.",
        example: #"…text\r\n--XX\r\nmore text…"#,
        advice: "Choose a boundary that the content does not contain, such as a random one.",
        swift: "let boundary = Boundary()")

    /// The content has a line that resembles a delimiter, or that begins a part's header.
    public static let partInContent = Self(
        "part-in-content", severity: .warning, .delimiters, "The content may have swallowed a part",
        cause:
            "A delimiter with a mistake is content, and so is the part after it. If the content is a form itself, such "
            + "as a recorded request, it is meant so. If anything else is wrong with the form, it is an error.",
        example: #"…hello\r\n---XX\r\nContent-Disposition: form-data; name=\"b\"\r\n…"#,
        advice: "Write two dashes, exactly the boundary and CRLF before each part.",
        swift: #"body.append(Data("--\(boundary)\r\n".utf8))"#)

    /// The last delimiter does not end in two dashes.
    public static let wrongCloseDelimiter = Self(
        "wrong-close-delimiter", .delimiters, "The last delimiter does not close",
        cause: "The close delimiter is two hyphens, the form's boundary and two more hyphens. With fewer, with a "
            + "typographic dash or with another boundary it does not close the form, and servers wait for the rest.",
        example: #"--XX—\r\n"#,
        advice: "Write two hyphens before the last boundary, and two after it.",
        swift: #"body.append(Data("\r\n--\(boundary)--\r\n".utf8))"#)

    /// No line break follows the close delimiter.
    public static let noFinalLineBreak = Self(
        "no-final-line-break", severity: .warning, .delimiters, "No line break follows the close delimiter",
        cause: "RFC 2046 does not require one, but ASP.NET's older readers wait for it and report an unexpected end "
            + "of the stream.",
        example: "…hello\\r\\n--XX--",
        advice: "Write CRLF after the close delimiter.",
        swift: #"body.append(Data("\r\n--\(boundary)--\r\n".utf8))"#)

    /// Bytes follow the close delimiter's line.
    public static let epilogue = Self(
        "epilogue", severity: .warning, .delimiters, "Bytes follow the close delimiter",
        cause: "Servers ignore what follows the close delimiter, or refuse it. It is lost in either case. If it "
            + "closes the form again, the first close delimiter may be content whose rest is lost, which is an "
            + "error.",
        example: #"--XX--\r\nThat was the form."#,
        advice: "End the body with the close delimiter and CRLF.")

    /// Parts follow the close delimiter.
    public static let partsAfterCloseDelimiter = Self(
        "parts-after-close-delimiter", .delimiters, "Parts follow the close delimiter",
        cause: "Each part was closed as if it were the last. The server reads up to the first close delimiter and "
            + "silently loses the rest.",
        example: #"--XX--\r\n--XX\r\nContent-Disposition: …"#,
        advice: "Write two dashes after the last boundary only.")

    /// The rest of the body was not examined, because too many delimiters and headers precede it.
    public static let notExamined = Self(
        "not-examined", severity: .warning, .delimiters, "The rest is not examined",
        cause: "The body has more delimiters and headers than any server accepts. What follows is checked only as a "
            + "server does it: its problems are not listed, and nothing can be fixed.",
        example: "30,000 lines of delimiters and headers",
        advice: "Look for a loop that appends parts without end, or explain the first megabyte alone.")
}
