/// What the reference says of the delimiters, where the doctor alone looks.
extension FindingReference {
    static let byteOrderMark = FindingReference(
        .delimiters, "A byte order mark comes first",
        cause: "The body was written as a text file with a byte order mark. It counts as text before the "
            + "first delimiter, and servers that allow none refuse the form.",
        example: #"\u{FEFF}--XX\r\n"#,
        fix: "Begin the body with two dashes and the boundary.")

    static let leadingLineBreak = FindingReference(
        .delimiters, "The body begins with a line break",
        cause: "The first delimiter was written like the others, with CRLF before it. RFC 2046 §5.1.1 allows "
            + "it, and some servers refuse it all the same.",
        example: #"\r\n--XX\r\nContent-Disposition: form-data; name=\"a\"…"#,
        fix: "Begin the body with two dashes and the boundary; write CRLF only before the later delimiters.")

    static let preamble = FindingReference(
        .delimiters, "Text comes before the first delimiter",
        cause: "What comes before the first delimiter is passed over (RFC 2046 §5.1.1), or refused. It is lost "
            + "in any case. Where a part's header is in it, that part is lost, which is an error.",
        example: #"This is a form.\r\n--XX\r\n…"#,
        fix: "Begin the body with two dashes and the boundary.")

    static let delimiterWithoutDashes = FindingReference(
        .delimiters, "The delimiters lack their dashes",
        cause: "Before each part stands the boundary alone. A delimiter is two dashes and the boundary "
            + "(RFC 2046 §5.1.1), so the server finds none.",
        example: #"XX\r\nContent-Disposition: form-data; name=\"a\"…"#,
        fix: "Write two dashes before the boundary, and two more behind the last one.",
        swift: #"body.append(Data("--\(boundary)\r\n".utf8))"#)

    static let missingLineBreakBeforeDelimiter = FindingReference(
        .delimiters, "A delimiter does not begin a line",
        cause: "The CRLF before a delimiter belongs to the delimiter. Without it the content goes on: the "
            + "server takes the delimiter, and all behind it, for the value.",
        example: #"hello--XX--\r\n"#,
        fix: "Write CRLF between a part's content and the next delimiter.",
        swift: #"body.append(content); body.append(Data("\r\n--\(boundary)\r\n".utf8))"#)

    static let missingLineBreakAfterDelimiter = FindingReference(
        .delimiters, "A header begins on the delimiter's line",
        cause: "A delimiter fills its line. With something behind the boundary it is another boundary, or "
            + "part of the content.",
        example: "--XXContent-Disposition: form-data; name=\"a\"",
        fix: "Write CRLF behind the boundary.", swift: #"body.append(Data("--\(boundary)\r\n".utf8))"#)

    static let extraLineBreakBeforeDelimiter = FindingReference(
        .delimiters, "The content ends in a line break of its own",
        cause: "Each part ends in CRLF and each delimiter begins with one, so that every part but the last "
            + "gains two bytes. Digests differ, and strict picture readers complain. Where only texts end so it may be "
            + "meant, and is a warning.",
        example: #"…\xFF\xD9\r\n\r\n--XX\r\n"#,
        fix: "Write one CRLF between a part's content and the next delimiter.",
        swift: #"body.append(photo); body.append(Data("\r\n--\(boundary)\r\n".utf8))  // not twice "\r\n""#)

    static let paddedDelimiter = FindingReference(
        .delimiters, "Blanks follow the boundary",
        cause:
            "RFC 2046 §5.1.1 lets blanks follow a boundary, and most servers refuse the form for it or find no part.",
        example: #"--XX  \r\n"#,
        fix: "Let CRLF follow the boundary.")

    static let missingBlankLine = FindingReference(
        .delimiters, "No blank line follows a part's header",
        cause: "The blank line ends the header. Without it the content is read as header fields, and refused.",
        example: #"Content-Disposition: form-data; name=\"a\"\r\nhello\r\n--XX--"#,
        fix: "Write a blank line, which is CRLF twice, between a part's header and its content.",
        swift: #"body.append(Data("Content-Disposition: form-data; name=\"a\"\r\n\r\n".utf8))"#)

    static let extraBlankLine = FindingReference(
        .delimiters, "A blank line precedes a part's header",
        cause: "A part's header follows its delimiter at once. After a blank line it is content, and the part "
            + "has no name.",
        example: #"--XX\r\n\r\nContent-Disposition: form-data; name=\"a\""#,
        fix: "Let the header follow the delimiter's CRLF at once.")

    static let delimiterInContent = FindingReference(
        .delimiters, "A line of the content looks like a delimiter",
        cause: "The content has the boundary in it. A server ends the part at such a line and reads what follows as "
            + "a header; a line that only begins so some take for a delimiter, and some do not.",
        example: #"…text\r\n--XX\r\nmore text…"#,
        fix: "Choose a boundary that the content does not hold; a random one never is.",
        swift: "let boundary = Boundary()")

    static let missingCloseDelimiter = FindingReference(
        .delimiters, "The close delimiter is missing",
        cause: "Only the close delimiter tells a whole form from one that was cut off, so servers refuse a "
            + "form without it, or wait for the rest.",
        example: #"…hello\r\n"#,
        fix: "End the body with CRLF, two dashes, the boundary, two dashes and CRLF.",
        swift: #"body.append(Data("\r\n--\(boundary)--\r\n".utf8))"#)

    static let wrongCloseDelimiter = FindingReference(
        .delimiters, "The last delimiter does not close",
        cause: "The close delimiter is two hyphens, the form's boundary and two more hyphens. With fewer, with a "
            + "typographic dash or with another boundary it closes nothing, and the rest of the form is awaited.",
        example: #"--XX—\r\n"#,
        fix: "Write two hyphens before the last boundary, and two behind it.",
        swift: #"body.append(Data("\r\n--\(boundary)--\r\n".utf8))"#)

    static let noFinalLineBreak = FindingReference(
        .delimiters, "No line break follows the close delimiter",
        cause: "RFC 2046 does not ask for one, but ASP.NET's older readers wait for it and report an "
            + "unexpected end of the stream.",
        example: "…hello\\r\\n--XX--",
        fix: "Write CRLF behind the close delimiter.",
        swift: #"body.append(Data("\r\n--\(boundary)--\r\n".utf8))"#)

    static let epilogue = FindingReference(
        .delimiters, "Bytes follow the close delimiter",
        cause: "What follows the close delimiter is passed over, or refused. It is lost in any case. Where it closes "
            + "the form again, the first close delimiter may be content, and the rest of that is lost, which is an "
            + "error.",
        example: #"--XX--\r\nThat was the form."#,
        fix: "End the body with the close delimiter and CRLF.")

    static let partsAfterCloseDelimiter = FindingReference(
        .delimiters, "Parts follow the close delimiter",
        cause: "Each part was closed as if it were the last. The server reads up to the first close delimiter "
            + "and loses the rest without a word.",
        example: #"--XX--\r\n--XX\r\nContent-Disposition: …"#,
        fix: "Write two dashes behind the last boundary alone.")
}
