import PostcardDoctor
import PostcardForm

extension BrokenRequest {
    private static let type = "multipart/form-data; boundary="

    static let heads: [BrokenRequest] = [
        .init("no request line", .texts, .malformedRequest, at: .head("")) { $0.requestLine = "POST /uploads" },
        .init("a field without a colon", .texts, .malformedRequest, at: .head("Accept")) {
            $0.otherFields.append("Accept everything")
        },
        .init("a blank before a colon", .texts, .malformedRequest, at: .head("Host", plus: 4)) {
            $0.otherFields = ["Host : example.com"]
        },
        .init("a blank before the Content-Length's colon", .texts, .malformedRequest, at: .head(" : ")) {
            $0.contentLength = "Content-Length : \($0.body.count)"
        },
        .init("no Content-Type", .texts, .missingContentType, at: .head("\r\n\r\n", plus: 2)) {
            $0.contentType = nil
        },
        .init("no Content-Type for pictures", .pictures, .missingContentType, at: .head("\r\n\r\n", plus: 2)) {
            $0.contentType = nil
        },
        .init("LF in the head", .texts, .bareLineBreakInHead, at: .head("com\n", plus: 3)) {
            $0.otherFields = ["Host: example.com\nAccept: */*"]
        },
        .init("LF in the head and in the body", .pictures, .bareLineBreakInHead, at: .head("com\n", plus: 3)) {
            $0.otherFields = ["Host: example.com\nAccept: */*"]
            $0.replace("MA4\r\n", with: "MA4\n")
        },
        .init("GET with a form", .texts, .methodWithoutContent, at: .head("GET")) {
            $0.requestLine = "GET /uploads HTTP/1.1"
        },
        .init("a comma for a semicolon", .texts, .malformedContentType, at: .head("multipart")) {
            $0.setType("multipart/form-data, boundary=FormBoundary7MA4")
        },
        .init("a comma behind a charset", .texts, .malformedContentType, at: .head("multipart")) {
            $0.setType("multipart/form-data; charset=utf-8, boundary=FormBoundary7MA4")
        },
        .init("no semicolon", .pictures, .malformedContentType, at: .head("multipart")) {
            $0.setType("multipart/form-data boundary=FormBoundary7MA4")
        },
        .init("blanks around the equals sign", .texts, .malformedContentType, at: .head("multipart")) {
            $0.setType("multipart/form-data; boundary = FormBoundary7MA4")
        },
        .init("a blank behind the equals sign", .texts, .malformedContentType, at: .head("multipart")) {
            $0.setType("multipart/form-data; boundary= FormBoundary7MA4")
        },
        .init("a Content-Type on two lines", .texts, .malformedRequest, at: .head(" boundary")) {
            $0.setType("multipart/form-data;\r\n boundary=FormBoundary7MA4")
        },
        .init("an empty Content-Type", .texts, .missingContentType, at: .head("Content-Type:", plus: 14)) {
            $0.setType("")
        },
        .init("JSON announced", .texts, .notFormData, at: .head("application/json")) {
            $0.setType("application/json")
        },
        .init("URL encoding announced", .pictures, .notFormData, at: .head("application/x")) {
            $0.setType("application/x-www-form-urlencoded")
        },
        .init("multipart/mixed announced", .korean, .notFormData, at: .head("multipart/mixed")) {
            $0.setType("multipart/mixed; boundary=\(SampleRequest.boundary)")
        },
        .init("a picture announced", .pictures, .notFormData, at: .head("image/jpeg")) {
            $0.setType("image/jpeg")
        },
        .init("no boundary", .texts, .missingBoundary, at: .head("multipart")) {
            $0.setType("multipart/form-data")
        },
        .init("no boundary but a charset", .korean, .missingBoundary, at: .head("multipart")) {
            $0.setType("multipart/form-data; charset=utf-8")
        },
        .init("two boundaries", .texts, .duplicateBoundary, at: .head("multipart")) {
            $0.setType("multipart/form-data; boundary=FormBoundary7MA4; boundary=other")
        },
        .init("an unclosed quote", .texts, .malformedContentType, at: .head("multipart")) {
            $0.setType("multipart/form-data; boundary=\"FormBoundary7MA4")
        },
        .init("an empty boundary", .texts, .invalidBoundary, at: .head("multipart")) {
            $0.setType("multipart/form-data; boundary=\"\"")
        },
        .init("a boundary of 71 characters", .texts, .invalidBoundary, at: .head("multipart")) { request in
            let long = String(repeating: "b", count: 71)
            request.setType(type + long)
            request.replaceAll(SampleRequest.boundary, with: long)
        },
        .init("a boundary that ends in a space", .texts, .invalidBoundary, at: .head("multipart")) {
            $0.setType("multipart/form-data; boundary=\"FormBoundary7MA4 \"")
        },
        .init("JSON and then multipart in one field", .texts, .duplicateContentType, at: .head("application/json")) {
            $0.setType("application/json, multipart/form-data; boundary=FormBoundary7MA4")
        },
        .init("multipart and then JSON in one field", .pictures, .duplicateContentType, at: .head("multipart")) {
            $0.setType("multipart/form-data; boundary=FormBoundary7MA4, application/json")
        },
        .init("a second Content-Type field", .texts, .duplicateContentType, at: .head("Content-Type: multipart")) {
            $0.otherFields.append("Content-Type: application/json")
        },
        .init("a boundary made anew", .texts, .boundaryMismatch, at: .head("0E9FB2C4")) {
            $0.setType(type + "0E9FB2C4-8D59-4B5C-9D56-6A3C1F1E0B57")
        },
        .init("a boundary made anew for pictures", .pictures, .boundaryMismatch, at: .head("other")) {
            $0.setType(type + "other")
        },
        .init("a boundary made anew for each delimiter", .texts, .boundaryMismatch, at: .head("other")) {
            $0.setType(type + "other")
            $0.replace("--FormBoundary7MA4--", with: "--another--")
        },
        .init("the header's boundary at the end alone", .texts, .boundaryMismatch, at: .head("other")) {
            $0.setType(type + "other")
            $0.replace("--FormBoundary7MA4--", with: "--other--")
        },
        .init("the header's boundary behind the first part", .pictures, .boundaryMismatch, at: .head("FormBoundary")) {
            $0.replace("--FormBoundary7MA4", with: "--other")
        },
        .init("a boundary one character short", .korean, .boundaryMismatch, at: .head("FormBoundary7MA", plus: 0)) {
            $0.setType(type + "FormBoundary7MA")
        },
        .init("dashes in the Content-Type", .texts, .boundaryWithDashes, at: .head("--Form")) {
            $0.setType(type + "--FormBoundary7MA4")
        },
        .init("closing dashes in the Content-Type", .pictures, .boundaryWithDashes, at: .head("FormBoundary7MA4--")) {
            $0.setType(type + "FormBoundary7MA4--")
        },
        .init("dashes of the body's own", .texts, .boundaryWithDashes, at: .head("FormBoundary")) {
            $0.replaceAll("--FormBoundary7MA4", with: "----FormBoundary7MA4")
        },
        .init("single quotes", .texts, .boundaryQuotes, at: .head("'Form")) { $0.setType(type + "'FormBoundary7MA4'") },
        .init("quotes in the body", .texts, .boundaryQuotes, at: .head("FormBoundary")) {
            $0.setType(type + "\"FormBoundary7MA4\"")
            $0.replaceAll("FormBoundary7MA4", with: "\"FormBoundary7MA4\"")
        },
        .init("a space at the boundary's start", .texts, .boundarySpaces, at: .head(" FormBoundary")) {
            $0.setType(type + "\" FormBoundary7MA4\"")
        },
        .init("a boundary in lower case", .texts, .boundaryCase, at: .head("formboundary")) {
            $0.setType(type + "formboundary7ma4")
        },
        .init("a boundary that needs quotes", .texts, .boundaryWithoutQuotes, at: .head("form:1", plus: 4)) {
            $0.setType(type + "form:1/2")
            $0.replaceAll("FormBoundary7MA4", with: "form:1/2")
        },
        .init("a forbidden character", .texts, .boundaryCharacters, at: .head("photo@", plus: 5)) {
            $0.setType(type + "photo@home")
            $0.replaceAll("FormBoundary7MA4", with: "photo@home")
        },
        .init("a Content-Length too small", .texts, .contentLengthMismatch, at: .body("Jeju")) {
            let index = $0.body.index(of: Array("Jeju".utf8)) ?? 0
            $0.contentLength = "Content-Length: \(index)"
        },
        .init("a Content-Length too large", .texts, .contentLengthMismatch, at: .end) {
            $0.contentLength = "Content-Length: \($0.body.count + 2)"
        },
        .init("characters counted, not bytes", .korean, .contentLengthMismatch, at: .end) { request in
            let text = "초코"
            request.contentLength = "Content-Length: \(request.body.count + text.utf8.count - text.count)"
        },
        .init("a body that is not sent", .texts, .bodyNotSent, at: .start) {
            $0.contentLength = "Content-Length: 157"
            $0.body = []
        },
        .init("an empty body in chunks", .texts, .bodyNotSent, at: .start) {
            $0.contentLength = "Transfer-Encoding: chunked"
            $0.body = Array("0\r\n\r\n".utf8)
        },
        .init("a Content-Length in words", .texts, .malformedRequest, at: .head("many")) {
            $0.contentLength = "Content-Length: many"
        },
        .init("a negative Content-Length", .texts, .malformedRequest, at: .head("-1")) {
            $0.contentLength = "Content-Length: -1"
        },
        .init("no length", .texts, .missingLength, at: .head("\r\n\r\n", plus: 2)) { $0.contentLength = "" },
        .init("two Content-Lengths", .texts, .conflictingLengths, at: .head("Content-Length: 9")) { request in
            request.contentLength = "Content-Length: \(request.body.count)\r\nContent-Length: 9"
        },
        .init("both lengths", .texts, .conflictingLengths, at: .head("Content-Length")) { request in
            let size = String(request.body.count, radix: 16)
            request.contentLength = "Content-Length: \(request.body.count)"
            request.otherFields.append("Transfer-Encoding: chunked")
            request.body = Array("\(size)\r\n".utf8) + request.body + Array("\r\n0\r\n\r\n".utf8)
        },
        .init("another coding", .texts, .malformedRequest, at: .head("gzip")) { request in
            let size = String(request.body.count, radix: 16)
            request.contentLength = ""
            request.otherFields.append("Transfer-Encoding: gzip, chunked")
            request.body = Array("\(size)\r\n".utf8) + request.body + Array("\r\n0\r\n\r\n".utf8)
        },
        .init("the fields through JSONEncoder", .texts, .jsonBody, at: .start) {
            $0.body = Array(#"{"title":"Jeju","message":"hello"}"#.utf8)
        },
        .init("a body through gzip", .texts, .compressedBody, at: .start) {
            $0.otherFields.append("Content-Encoding: gzip")
            $0.body =
                [0x1F, 0x8B, 0x08, 0, 0, 0, 0, 0, 0, 3, 1, UInt8(truncatingIfNeeded: $0.body.count), 0, 0, 0] + $0.body
        },
        .init("a body that the head says is compressed", .pictures, .compressedBody, at: .start) {
            $0.otherFields.append("Content-Encoding: deflate")
            $0.body = [0x78, 0x9C, 0xD3, 0xD5, 0x75, 0xCB, 0x2F, 0xCA, 0x75, 0xCA]
        },
        .init("an array as JSON", .pictures, .jsonBody, at: .start) { $0.body = Array(#"[{"name":"title"}]"#.utf8) },
        .init("the fields URL-encoded", .texts, .urlEncodedBody, at: .start) {
            $0.body = Array("title=Jeju&message=hello&visits=3".utf8)
        },
        .init("the whole form in base64", .texts, .base64Body, at: .start) { $0.body = Array(base64(texts.body).utf8) },
        .init("no line breaks", .texts, .withoutLineBreaks, at: .start) { $0.replaceAll("\r\n", with: "") },
        .init("no line breaks, and one at the end", .korean, .withoutLineBreaks, at: .start) {
            $0.replaceAll("\r\n", with: "")
            $0.body += [0x0A]
        },
        .init("line breaks as four letters", .texts, .escapedLineBreaks, at: .start) {
            $0.replaceAll("\r\n", with: #"\r\n"#)
        },
        .init("line breaks as two letters, in quotes", .texts, .escapedLineBreaks, at: .start) {
            $0.replaceAll("\r\n", with: #"\n"#)
            $0.body = [0x22] + $0.body + [0x22]
        },
        .init("the whole form percent-encoded", .texts, .percentEncodedBody, at: .start) {
            $0.replaceAll("\r\n", with: "%0D%0A")
            $0.replaceAll(" ", with: "%20")
            $0.replaceAll("\"", with: "%22")
        },
    ]

    private static let texts = SampleRequest.texts

    private static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count - bytes.count % 3, by: 3) {
            let bits = bytes[start..<(start + 3)].reduce(0) { $0 << 8 | Int($1) }
            text += [18, 12, 6, 0].map { alphabet[bits >> $0 & 63] }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
