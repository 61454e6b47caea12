import PostcardDoctor
import PostcardForm

extension BrokenRequest {
    private static let delimiter = "--FormBoundary7MA4"

    static let delimiters: [BrokenRequest] = [
        .init("no form at all", .texts, .delimiterNotFound, at: .start) { $0.body = Array("hello there".utf8) },
        .init("an empty body", .texts, .bodyNotSent, at: .start) { $0.body = [] },
        .init("LF throughout", .texts, .bareLineBreak, at: .body("\n")) { $0.replaceAll("\r\n", with: "\n") },
        .init("LF throughout, and the length of CRLF", .texts, .bareLineBreak, at: .body("\n")) {
            $0.contentLength = "Content-Length: \($0.body.count)"
            $0.replace("안녕하세요, \"제주\"에서\r\nhello", with: "hello there\n")
            $0.replaceAll("\r\n", with: "\n")
            $0.replace("hello there\n", with: "안녕하세요, \"제주\"에서\r\nhello")
        },
        .init("LF throughout, and Korean names", .korean, .bareLineBreak, at: .body("\n")) {
            $0.replaceAll("\r\n", with: "\n")
        },
        .init("LF throughout the frame, and pictures", .pictures, .bareLineBreak, at: .body("\n")) {
            $0.replaceAll("\r\n", with: "\n")
            $0.replace([0x89, 0x50, 0x4E, 0x47, 0x0A], with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A])
        },
        .init("CR throughout", .texts, .bareLineBreak, at: .body("\r")) { $0.replaceAll("\r\n", with: "\r") },
        .init("LF in a header", .pictures, .bareLineBreak, at: .body("jpg\"\n", plus: 4), part: 1) {
            $0.replace("jpg\"\r\n", with: "jpg\"\n")
        },
        .init("LF for a blank line", .texts, .bareLineBreak, at: .body("\n\n"), part: 0) {
            $0.replace("\r\n\r\nJeju", with: "\n\nJeju")
        },
        .init("LF behind a delimiter", .texts, .bareLineBreak, at: .body("MA4\n", plus: 3), part: 0) {
            $0.replace("MA4\r\n", 2, with: "MA4\n")
        },
        .init("LF before a delimiter", .texts, .bareLineBreak, at: .body("Jeju\n", plus: 4), part: 0) {
            $0.replace("Jeju\r\n", with: "Jeju\n")
        },
        .init("CR behind a delimiter", .texts, .bareLineBreak, at: .body("MA4\rC", plus: 3), part: 0) {
            $0.replace("MA4\r\n", 2, with: "MA4\r")
        },
        .init("LF before the close delimiter", .texts, .bareLineBreak, at: .body("3\n--", plus: 1), part: 2) {
            $0.replace("3\r\n--", with: "3\n--")
        },
        .init("a byte order mark", .texts, .byteOrderMark, at: .start) { $0.body = [0xEF, 0xBB, 0xBF] + $0.body },
        .init("a line break first", .texts, .leadingLineBreak, at: .start) { $0.body = Array("\r\n".utf8) + $0.body },
        .init("two line breaks first", .pictures, .leadingLineBreak, at: .start) {
            $0.body = Array("\r\n\r\n".utf8) + $0.body
        },
        .init("a preamble", .texts, .preamble, at: .start) { $0.body = Array("This is a form.\r\n".utf8) + $0.body },
        .init("no dashes", .texts, .delimiterWithoutDashes, at: .start) {
            $0.replaceAll(delimiter, with: "FormBoundary7MA4")
        },
        .init("one dash", .korean, .delimiterWithoutDashes, at: .start) {
            $0.replaceAll(delimiter, with: "-FormBoundary7MA4")
        },
        .init("no dashes before the first boundary", .texts, .delimiterWithoutDashes, at: .start) {
            $0.replace(delimiter, with: "FormBoundary7MA4")
        },
        .init("three dashes before the first boundary", .texts, .extraDashes, at: .start) {
            $0.replace(delimiter, with: "-\(delimiter)")
        },
        .init("a blank before the first delimiter", .pictures, .extraDashes, at: .start) {
            $0.replace(delimiter, with: " \(delimiter)")
        },
        .init("three dashes before another boundary", .texts, .partInContent, at: .body("-\(delimiter)"), part: 0) {
            $0.replace(delimiter, 2, with: "-\(delimiter)")
        },
        .init("a typo in another boundary", .pictures, .partInContent, at: .body("Content-Disposition", 2), part: 0) {
            $0.replace(delimiter, 2, with: "--FormBoundary7M4")
        },
        .init("a letter behind another boundary", .texts, .partInContent, at: .body("\(delimiter)x"), part: 0) {
            $0.replace("MA4\r\n", 2, with: "MA4x\r\n")
        },
        .init(
            "no CRLF before a delimiter", .texts, .missingLineBreakBeforeDelimiter, at: .body("Jeju--", plus: 4),
            part: 0
        ) { $0.replace("Jeju\r\n", with: "Jeju") },
        .init(
            "no CRLF behind a picture", .pictures, .missingLineBreakBeforeDelimiter, at: .body(delimiter, 3), part: 1
        ) { $0.replace([0xFF, 0xD9, 0x0D, 0x0A], with: [0xFF, 0xD9]) },
        .init(
            "no CRLF before the close delimiter", .texts, .missingLineBreakBeforeDelimiter,
            at: .body("3--", plus: 1), part: 2
        ) { $0.replace("3\r\n--", with: "3--") },
        .init(
            "no CRLF behind a picture before the close delimiter", .pictures, .missingLineBreakBeforeDelimiter,
            at: .body(delimiter, 4), part: 2
        ) { $0.replace("\r\n\(delimiter)--", with: "\(delimiter)--") },
        .init("no CRLF behind a delimiter", .texts, .missingLineBreakAfterDelimiter, at: .body("Content", 2), part: 0) {
            $0.replace("MA4\r\n", 2, with: "MA4")
        },
        .init("no CRLF behind the first delimiter", .texts, .missingLineBreakAfterDelimiter, at: .body("Content")) {
            $0.replace("MA4\r\n", with: "MA4")
        },
        .init(
            "two bytes more for a picture", .pictures, .extraLineBreakBeforeDelimiter,
            at: .bytes([0xFF, 0xD9], plus: 2), part: 1
        ) {
            $0.replace([0xFF, 0xD9], with: [0xFF, 0xD9, 0x0D, 0x0A])
        },
        .init(
            "two bytes more for a drawing", .pictures, .extraLineBreakBeforeDelimiter,
            at: .bytes([0x42, 0x60, 0x82], plus: 3), part: 2
        ) {
            $0.replace([0x42, 0x60, 0x82], with: [0x42, 0x60, 0x82, 0x0D, 0x0A])
        },
        .init(
            "CRLF before and behind each part", .pictures, .extraLineBreakBeforeDelimiter,
            at: .bytes([0xFF, 0xD9], plus: 2), part: 1
        ) {
            $0.replaceAll("\r\n\(delimiter)", with: "\r\n\r\n\(delimiter)")
        },
        .init(
            "CRLF before and behind each text", .texts, .extraLineBreakBeforeDelimiter, at: .body("Jeju", plus: 4),
            part: 0
        ) {
            $0.replaceAll("\r\n\(delimiter)", with: "\r\n\r\n\(delimiter)")
        },
        .init("blanks behind a boundary", .texts, .paddedDelimiter, at: .body("MA4 ", plus: 3), part: 0) {
            $0.replace("MA4\r\n", 2, with: "MA4 \t\r\n")
        },
        .init("text behind a boundary", .texts, .malformedDelimiter, at: .body("bogus"), part: 0) {
            $0.replace("MA4\r\n", 2, with: "MA4 bogus\r\n")
        },
        .init("no blank line", .texts, .missingBlankLine, at: .body("Jeju"), part: 0) {
            $0.replace("\r\n\r\nJeju", with: "\r\nJeju")
        },
        .init("no blank line before a picture", .pictures, .missingBlankLine, at: .bytes([0xFF, 0xD8]), part: 1) {
            $0.replace([0x0D, 0x0A, 0x0D, 0x0A, 0xFF], with: [0x0D, 0x0A, 0xFF])
        },
        .init("no blank line and no content", .browser, .missingBlankLine, at: .body(delimiter, 4), part: 2) {
            $0.replace("note\"\r\n\r\n\r\n", with: "note\"\r\n")
        },
        .init("a blank line before a header", .texts, .extraBlankLine, at: .body("\r\n\r\n", plus: 2), part: 0) {
            $0.replace("MA4\r\n", with: "MA4\r\n\r\n")
        },
        .init("the boundary in a text", .texts, .delimiterInContent, at: .body("\(delimiter)X"), part: 0) {
            $0.replace("Jeju", with: "Jeju\r\n\(delimiter)X\r\nisland")
        },
        .init("a delimiter in a text", .texts, .delimiterInContent, at: .body(delimiter, 2), part: 0) {
            $0.replace("Jeju", with: "Jeju\r\n\(delimiter)\r\nisland")
        },
        .init("a delimiter and more lines in a text", .korean, .delimiterInContent, at: .body(delimiter, 2), part: 0) {
            $0.replace("초코", with: "초코\r\n\(delimiter)\r\nand\r\nColon: cats\r\n\r\nand dogs")
        },
        .init("a delimiter in a file", .browser, .delimiterInContent, at: .body(delimiter, 5), part: 3) {
            $0.replace("1,2\r\n", with: "1,2\r\n\(delimiter)\r\n3,4\r\n\(delimiter)x\r\n5,6\r\n")
        },
        .init("text behind a delimiter in a text", .texts, .delimiterInContent, at: .body(delimiter, 2), part: 0) {
            $0.replace("Jeju", with: "Jeju\r\n\(delimiter) is\r\nan island")
        },
        .init("an empty part", .texts, .missingContentDisposition, at: .body(delimiter, 2), part: 0) {
            $0.replace("\(delimiter)\r\n", with: "\(delimiter)\r\n\(delimiter)\r\n")
        },
        .init("no close delimiter", .texts, .missingCloseDelimiter, at: .end, part: 2) {
            $0.cut(before: "\(delimiter)--")
        },
        .init("no close delimiter and no CRLF", .texts, .missingCloseDelimiter, at: .end, part: 2) {
            $0.cut(before: "\r\n\(delimiter)--")
        },
        .init("no close delimiter behind a picture", .pictures, .missingCloseDelimiter, at: .end, part: 2) {
            $0.cut(before: "\r\n\(delimiter)--")
        },
        .init("no dashes at the end", .texts, .wrongCloseDelimiter, at: .body(delimiter, 4, plus: 18), part: 2) {
            $0.replace("MA4--", with: "MA4")
        },
        .init("one dash at the end", .pictures, .wrongCloseDelimiter, at: .body(delimiter, 4, plus: 18), part: 2) {
            $0.replace("MA4--", with: "MA4-")
        },
        .init(
            "a typographic dash at the end", .korean, .wrongCloseDelimiter, at: .body(delimiter, 4, plus: 18), part: 2
        ) {
            $0.replace("MA4--", with: "MA4—")
        },
        .init("no dashes before the last boundary", .texts, .wrongCloseDelimiter, at: .body("3\r\nF", plus: 3), part: 2)
        {
            $0.replace("\(delimiter)--", with: "FormBoundary7MA4--")
        },
        .init(
            "three dashes before the last boundary", .texts, .wrongCloseDelimiter, at: .body("3\r\n-", plus: 3), part: 2
        ) {
            $0.replace("\(delimiter)--", with: "-\(delimiter)--")
        },
        .init(
            "one dash before the last boundary and no CRLF behind it", .pictures, .wrongCloseDelimiter,
            at: .bytes([0x0A] + Array("-FormBoundary7MA4--".utf8), plus: 1), part: 2
        ) {
            $0.replace("\(delimiter)--\r\n", with: "-FormBoundary7MA4--")
        },
        .init("the close delimiter of another boundary", .texts, .wrongCloseDelimiter, at: .body("OTHER"), part: 2) {
            $0.replace("\(delimiter)--", with: "--OTHER--")
        },
        .init(
            "the close delimiter of another boundary behind a picture", .pictures, .wrongCloseDelimiter,
            at: .body("OTHER"), part: 2
        ) {
            $0.replace("\(delimiter)--\r\n", with: "--OTHER--")
        },
        .init("no final CRLF", .texts, .noFinalLineBreak, at: .end) { $0.body.removeLast(2) },
        .init("no final CRLF behind pictures", .pictures, .noFinalLineBreak, at: .end) { $0.body.removeLast(2) },
        .init("text behind the close delimiter", .texts, .textAfterCloseDelimiter, at: .body("end")) {
            $0.replace("MA4--", with: "MA4--end")
        },
        .init("an epilogue", .texts, .epilogue, at: .body("That")) { $0.body += Array("That was the form.".utf8) },
        .init("each part closed", .texts, .partsAfterCloseDelimiter, at: .body(delimiter, 3)) {
            $0.replace("MA4\r\n", 2, with: "MA4--\r\n\(delimiter)\r\n")
        },
        .init("cut in a text", .texts, .contentLengthMismatch, at: .end) { request in
            request.contentLength = "Content-Length: \(request.body.count)"
            request.cut(before: "hello", plus: 2)
        },
        .init("cut in a picture", .pictures, .truncated, at: .end, part: 1) { request in
            let index = request.body.index(of: [0x12, 0xFF, 0x00]) ?? 0
            request.body.removeSubrange(index...)
        },
        .init("cut in a header", .texts, .truncated, at: .end, part: 1) { $0.cut(before: "message", plus: 3) },
        .init("cut in a delimiter", .texts, .truncated, at: .end, part: 1) {
            $0.cut(before: delimiter, 3, plus: 9)
        },
        .init("no parts", .texts, .noParts, at: .start) {
            $0.cut(before: delimiter); $0.body = Array("\(delimiter)--\r\n".utf8)
        },
    ]
}
