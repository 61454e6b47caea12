/// What the reference says of a request's head, where the doctor alone looks.
extension FindingReference {
    static let bareLineBreakInHead = FindingReference(
        .head, "A line of the head ends in LF alone",
        cause: "Lines of a request's head end in CRLF (RFC 9112 §2.1). Some servers take LF alone and some "
            + "refuse it, as request smuggling uses the difference. Text editors and multi-line string literals "
            + "write it, and mostly the body has it too.",
        example: #"POST / HTTP/1.1\nContent-Type: multipart/form-data; boundary=XX\n\n"#,
        fix: #"End every line with CRLF ("\r\n"), or let an HTTP library write the head."#)

    static let duplicateContentType = FindingReference(
        .head, "Two Content-Types",
        cause: "A header was added where it should have been set: URLRequest's addValue appends to a JSON "
            + "type that was set before. Servers take the first, which is not multipart, or none.",
        example: "Content-Type: application/json, multipart/form-data; boundary=XX",
        fix: "Set Content-Type once, to multipart/form-data with the body's boundary.",
        swift: #"request.setValue("multipart/form-data; boundary=\(boundary)", "#
            + #"forHTTPHeaderField: "Content-Type")"#)

    static let conflictingLengths = FindingReference(
        .head, "Two lengths of one body",
        cause: "A server believes the one and its proxy the other, which is how requests are smuggled, so "
            + "both refuse (RFC 9112 §6.3).",
        example: #"Content-Length: 812\r\nTransfer-Encoding: chunked"#,
        fix: "Send the Content-Length or the Transfer-Encoding, and let the library that sends decide which.")

    static let boundaryMismatch = FindingReference(
        .head, "The header's boundary is not the body's",
        cause: "The boundary was made anew for the header and for the body: often a computed property with "
            + "a UUID. The server looks for delimiters that are not there, and finds no part.",
        example: #"Content-Type: multipart/form-data; boundary=A1\r\n\r\n--B2\r\n…"#,
        fix: "Make the boundary once, keep it, and use it for both.",
        swift: "let boundary = UUID().uuidString  // stored, not var boundary: String { UUID().uuidString }")

    static let boundaryWithDashes = FindingReference(
        .head, "The delimiter's dashes stand in the boundary",
        cause: "A delimiter is two dashes and the boundary. Where the boundary parameter already has them, or "
            + "the body writes too few, the server looks for two dashes that are not there.",
        example: #"Content-Type: multipart/form-data; boundary=--XX\r\n\r\n--XX\r\n…"#,
        fix: "Leave the two dashes out of the Content-Type; write them before the boundary in the body alone.",
        swift: #""multipart/form-data; boundary=\(boundary)"  // and "--\(boundary)\r\n" in the body"#)

    static let boundaryQuotes = FindingReference(
        .head, "Quotes became part of the boundary",
        cause: "Quotes around the parameter are not part of its value; single quotes are, and so is every "
            + "quote in the body. The server looks for the boundary without them, or with them.",
        example: #"boundary="XX" in the head, and --"XX" in the body"#,
        fix: "Write the boundary without quotes in both places.")

    static let boundarySpaces = FindingReference(
        .head, "Spaces became part of the boundary",
        cause: "A space at either end of a quoted boundary is part of it, and it may not end in one (RFC 2046 "
            + "§5.1.1). Servers differ in what they then look for.",
        example: #"boundary="XX " in the head, and --XX in the body"#,
        fix: "Write the boundary without spaces.")

    static let boundaryCase = FindingReference(
        .head, "The boundary changed its case",
        cause: "A boundary is compared byte by byte; something has put the header into lower case.",
        example: "boundary=formboundary7ma in the head, and --FormBoundary7MA in the body",
        fix: "Write the boundary alike in both places.")

    static let boundaryWithoutQuotes = FindingReference(
        .head, "The boundary needs quotes",
        cause: "Characters such as : / ? = , and space end a token (RFC 9110 §5.6.2). Strict servers read the "
            + "boundary only up to there.",
        example: "Content-Type: multipart/form-data; boundary=form:1/2",
        fix: "Use letters and digits alone, or put the boundary into double quotes.")

    static let boundaryCharacters = FindingReference(
        .head, "The boundary has forbidden characters",
        cause: "RFC 2046 §5.1.1 allows letters, digits and '()+_,-./:=? in a boundary; some servers hold "
            + "senders to it.",
        example: "Content-Type: multipart/form-data; boundary=photo@home",
        fix: "Make the boundary of letters and digits.")

    static let jsonBody = FindingReference(
        .head, "The body is JSON",
        cause: "A generic endpoint passed the form, or the fields, through JSONEncoder. The Content-Type "
            + "announces parts, and the server finds none.",
        example: #"{"title":"Jeju","image":"/9j/4AAQ…"}"#,
        fix: "Send the form's own bytes as the body, or announce application/json where the server takes it.",
        swift: "request.httpBody = try form.body()  // not try JSONEncoder().encode(form)")

    static let urlEncodedBody = FindingReference(
        .head, "The body is a URL-encoded form",
        cause:
            "The body is name=value&name=value, and the Content-Type announces parts. The server finds none.",
        example: "title=Jeju&message=hello",
        fix: "Send application/x-www-form-urlencoded with this body, or build a multipart one.")

    static let base64Body = FindingReference(
        .head, "The whole body is base64",
        cause: "The form was encoded for a place that takes text only and never decoded. HTTP carries bytes "
            + "as they are, and no server undoes it.",
        example: "LS1YWA0KQ29udGVudC1EaXNwb3NpdGlvbjog…",
        fix: "Send the bytes of the body as they are.",
        swift: "request.httpBody = body  // not Data(body.base64EncodedString().utf8)")

    static let compressedBody = FindingReference(
        .head, "The body was compressed as a whole",
        cause:
            "Content-Encoding is for responses: few servers decompress a request, and the others look for delimiters "
            + "in compressed bytes. Pictures do not become smaller by it.",
        example: #"Content-Encoding: gzip\r\n\r\n\x1F\x8B\x08…"#,
        fix: "Send the body as it is, without a Content-Encoding.")

    static let bodyNotRecorded = FindingReference(
        .head, "The recording lacks the body",
        cause:
            "Browsers leave out of a HAR file what a form's files hold, and some the whole body. What was sent cannot "
            + "be judged without its bytes.",
        example: #""postData": {"mimeType": "multipart/form-data; boundary=XX", "text": ""}"#,
        fix: "Record the request with curl --trace FILE or with a proxy that keeps bodies, or send it to "
            + "postcard explain --listen PORT.")

    static let percentEncodedBody = FindingReference(
        .head, "The whole body is percent-encoded",
        cause: "The form went through URL escaping, so its line breaks are %0D%0A. No server undoes that for "
            + "multipart.",
        example: "--XX%0D%0AContent-Disposition:%20form-data;%20name=%22a%22%0D%0A…",
        fix: "Send the bytes of the body as they are.")
}
