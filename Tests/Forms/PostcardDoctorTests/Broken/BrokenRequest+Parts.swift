import PostcardDoctor
import PostcardForm

extension BrokenRequest {
    private static let disposition = #"Content-Disposition: form-data; name="title""#

    static let parts: [BrokenRequest] = [
        .init("no Content-Disposition", .pictures, .missingContentDisposition, at: .body("Content-Type"), part: 1) {
            $0.replace("Content-Disposition: form-data; name=\"image\"; filename=\"sea.jpg\"\r\n", with: "")
        },
        .init(
            "a second Content-Disposition", .texts, .duplicateContentDisposition,
            at: .body("Content-Disposition", 2), part: 0
        ) {
            $0.replace(disposition, with: disposition + "\r\n" + #"Content-Disposition: form-data; name="other""#)
        },
        .init("an attachment", .pictures, .dispositionNotFormData, at: .body("Content-Disposition", 2), part: 1) {
            $0.replace("form-data; name=\"image\"", with: "attachment; name=\"image\"")
        },
        .init("no name", .pictures, .missingName, at: .body("Content-Disposition", 2), part: 1) {
            $0.replace("name=\"image\"; ", with: "")
        },
        .init("no parameters", .texts, .missingName, at: .body("Content-Disposition"), part: 0) {
            $0.replace("; name=\"title\"", with: "")
        },
        .init("an empty name", .texts, .emptyName, at: .body("name=\"\""), part: 0) {
            $0.replace("name=\"title\"", with: "name=\"\"")
        },
        .init("a name without a value", .texts, .malformedParameter, at: .body("name\r", plus: 4), part: 0) {
            $0.replace("name=\"title\"", with: "name")
        },
        .init("a quote that is not closed", .texts, .malformedParameter, at: .body("title"), part: 0) {
            $0.replace("\"title\"", with: "\"title")
        },
        .init(
            "a quote that is missing before a filename", .pictures, .malformedParameter, at: .body("; filename"),
            part: 1
        ) {
            $0.replace("\"image\"; filename", with: "\"image; filename")
        },
        .init("blanks around an equals sign", .texts, .malformedParameter, at: .body(" = \"title"), part: 0) {
            $0.replace("name=\"title\"", with: "name = \"title\"")
        },
        .init("blanks around every equals sign", .pictures, .malformedParameter, at: .body(" = \"image"), part: 1) {
            $0.replace(#"name="image"; filename="sea.jpg""#, with: #"name = "image" ; filename = "sea.jpg""#)
        },
        .init("a colon for an equals sign", .texts, .malformedParameter, at: .body(":\"title"), part: 0) {
            $0.replace("name=\"title\"", with: "name:\"title\"")
        },
        .init("a comma before a name", .texts, .malformedParameter, at: .body(", name"), part: 0) {
            $0.replace("form-data; name=\"title\"", with: "form-data, name=\"title\"")
        },
        .init("no semicolon before a name", .texts, .malformedParameter, at: .body(" name=\"title"), part: 0) {
            $0.replace("form-data; name=\"title\"", with: "form-data name=\"title\"")
        },
        .init("a comma before a filename", .pictures, .malformedParameter, at: .body(", filename"), part: 1) {
            $0.replace("\"image\"; filename", with: "\"image\", filename")
        },
        .init("no semicolon before a filename", .pictures, .malformedParameter, at: .body(" filename"), part: 1) {
            $0.replace("\"image\"; filename", with: "\"image\" filename")
        },
        .init("two names", .texts, .duplicateParameter, at: .body("name=\"b\""), part: 0) {
            $0.replace("name=\"title\"", with: "name=\"title\"; name=\"b\"")
        },
        .init("quotes in a filename", .pictures, .unescapedQuote, at: .body("my \"best\""), part: 1) {
            $0.replace("sea.jpg", with: "my \"best\" sea.jpg")
        },
        .init("a quote in a name", .texts, .unescapedQuote, at: .body("ti\"tle"), part: 0) {
            $0.replace("title", with: "ti\"tle")
        },
        .init("a filename without quotes", .pictures, .unquotedValue, at: .body("my sea.jpg"), part: 1) {
            $0.replace("\"sea.jpg\"", with: "my sea.jpg")
        },
        .init("a name without quotes", .texts, .unquotedValue, at: .body("the title"), part: 0) {
            $0.replace("\"title\"", with: "the title")
        },
        .init("a blank before a colon", .texts, .blankBeforeColon, at: .body(" :"), part: 0) {
            $0.replace("Content-Disposition:", with: "Content-Disposition :")
        },
        .init("no colon", .pictures, .malformedHeaderField, at: .body("Type image", plus: 4), part: 1) {
            $0.replace("Content-Type: image", with: "Content-Type image")
        },
        .init("a line that is no field", .pictures, .malformedHeaderField, at: .body("(jpeg)"), part: 1) {
            $0.replace("Content-Type: image/jpeg", with: "(jpeg)")
        },
        .init("a NUL in a name", .texts, .nulInHeader, at: .body("\0"), part: 0) {
            $0.replace("title", with: "ti\0tle")
        },
        .init("a CR in a name", .texts, .bareLineBreak, at: .body("\rtle"), part: 0) {
            $0.replace("title", with: "ti\rtle")
        },
        .init("a tab in a filename", .pictures, .controlInName, at: .body("\t"), part: 1) {
            $0.replace("sea.jpg", with: "s\tea.jpg")
        },
        .init("a bell in a name", .texts, .controlInName, at: .body("\u{7}"), part: 0) {
            $0.replace("title", with: "title\u{7}")
        },
        .init("a filename in Latin-1", .pictures, .nameNotUTF8, at: .body("filename="), part: 1) {
            $0.replace(Array("sea.jpg".utf8), with: Array("caf".utf8) + [0xE9] + Array(".jpg".utf8))
        },
        .init("marks in a filename", .pictures, .tooManyCombiningMarks, at: .body("\u{301}.jpg"), part: 1) {
            $0.replace("sea.jpg", with: "sea" + String(repeating: "\u{300}", count: 30) + "\u{301}.jpg")
        },
        .init("a filename read as Latin-1", .pictures, .mojibake, at: .body("cafÃ©"), part: 1) {
            $0.replace("sea.jpg", with: "cafÃ©.jpg")
        },
        .init("a Korean name read as Windows-1252", .korean, .mojibake, at: .body("ì‚¬ì§„"), part: 1) {
            $0.replace("사진", with: "ì‚¬ì§„")
        },
        .init("filename* alone", .pictures, .extendedFilename, at: .body("filename*"), part: 1) {
            $0.replace("filename=\"sea.jpg\"", with: "filename*=UTF-8''sea.jpg")
        },
        .init("filename* and an encoded word", .pictures, .extendedFilename, at: .body("filename*"), part: 1) {
            $0.replace("\"sea.jpg\"", with: "\"=?utf-8?B?c2VhLmpwZw==?=\"; filename*=utf-8''sea.jpg")
        },
        .init("single quotes around a name", .texts, .quotesInName, at: .body("'title'"), part: 0) {
            $0.replace("\"title\"", with: "'title'")
        },
        .init("typographic quotes around a name", .korean, .quotesInName, at: .body("“이름”"), part: 0) {
            $0.replace("\"이름\"", with: "“이름”")
        },
        .init("single quotes around a filename", .pictures, .quotesInName, at: .body("'sea.jpg'"), part: 1) {
            $0.replace("\"sea.jpg\"", with: "'sea.jpg'")
        },
        .init("single quotes around blanks", .pictures, .unquotedValue, at: .body("my sea.jpg"), part: 1) {
            $0.replace("\"sea.jpg\"", with: "'my sea.jpg'")
        },
        .init("two filenames", .pictures, .contradictingFilenames, at: .body("filename*"), part: 1) {
            $0.replace("filename=\"sea.jpg\"", with: "filename=\"sea.jpg\"; filename*=UTF-8''evil.php")
        },
        .init("a size", .texts, .ignoredParameter, at: .body("size"), part: 0) {
            $0.replace("name=\"title\"", with: "name=\"title\"; size=4")
        },
        .init("a transfer encoding", .pictures, .contentTransferEncoding, at: .body("Content-Transfer"), part: 1) {
            $0.replace("image/jpeg\r\n", with: "image/jpeg\r\nContent-Transfer-Encoding: binary\r\n")
        },
        .init("one type twice", .pictures, .duplicatePartContentType, at: .body("content-type:"), part: 1) {
            $0.replace("image/jpeg\r\n", with: "image/jpeg\r\ncontent-type: image/JPEG\r\n")
        },
        .init(
            "one type twice, in lines between others", .pictures, .duplicatePartContentType,
            at: .body("Content-Type", 2), part: 1
        ) {
            $0.replace("image/jpeg\r\n", with: "image/jpeg\r\nX: y\r\nContent-Type: image/jpeg\r\nX: z\r\n")
        },
        .init("two types", .pictures, .duplicatePartContentType, at: .body("Content-Type", 2), part: 1) {
            $0.replace("image/jpeg\r\n", with: "image/jpeg\r\nContent-Type: text/html;\r\n charset=utf-8\r\n")
        },
        .init("a field on two lines", .pictures, .foldedHeaderLine, at: .body("\r\n filename", plus: 2), part: 1) {
            $0.replace(" filename=\"sea.jpg\"", with: "\r\n filename=\"sea.jpg\"")
        },
        .init("two fields on five lines", .pictures, .foldedHeaderLine, at: .body("\t \tname"), part: 1) {
            $0.replace("; name=\"image\"; ", with: ";\r\n\t \tname=\"image\";\r\n ")
            $0.replace("image/jpeg\r\n", with: "\r\n image/jpeg\r\n")
        },
        .init("a backslash at a name's end", .texts, .unescapedBackslash, at: .body("name=\"title"), part: 0) {
            $0.replace("\"title\"", with: #""title\""#)
        },
        .init("a long header", .texts, .headerTooLarge, at: .body(disposition, plus: 16 << 10), part: 0) {
            $0.replace(disposition, with: disposition + "\r\nX-Note: " + String(repeating: "x", count: 17_000))
        },
        .init("65 fields", .texts, .tooManyHeaderFields, at: .body("X-64:"), part: 0) { request in
            let fields = (1...64).map { "X-\($0): x\r\n" }.joined()
            request.replace(disposition + "\r\n", with: disposition + "\r\n" + fields)
        },
        .init(
            "a picture without a filename", .pictures, .fileWithoutFilename, at: .body("Content-Disposition", 2),
            part: 1
        ) {
            $0.replace("; filename=\"sea.jpg\"", with: "")
        },
        .init("bytes without a filename", .browser, .fileWithoutFilename, at: .body("Content-Disposition", 5), part: 4)
        {
            $0.replace("; filename=\"blob\"", with: "")
        },
        .init("an empty filename", .pictures, .emptyFilename, at: .body("\"\"", plus: 1), part: 1) {
            $0.replace("sea.jpg", with: "")
        },
        .init("a path", .pictures, .pathInFilename, at: .body("/var"), part: 1) {
            $0.replace("sea.jpg", with: "/var/mobile/sea.jpg")
        },
        .init("a path of Windows", .pictures, .pathInFilename, at: .body("C:"), part: 1) {
            $0.replace("sea.jpg", with: "C:\\photos\\sea.jpg")
        },
        .init("a text with a filename", .texts, .textWithFilename, at: .body("title", 2), part: 0) {
            $0.replace("name=\"title\"", with: "name=\"title\"; filename=\"title\"")
        },
        .init("jpeg", .pictures, .malformedMediaType, at: .body("jpeg"), part: 1) {
            $0.replace("image/jpeg", with: "jpeg")
        },
        .init("a type without a subtype", .pictures, .malformedMediaType, at: .body("image/\r"), part: 1) {
            $0.replace("image/jpeg", with: "image/")
        },
        .init("image/jpg", .pictures, .misspelledMediaType, at: .body("image/jpg"), part: 1) {
            $0.replace("image/jpeg", with: "image/jpg")
        },
        .init("img/png", .pictures, .misspelledMediaType, at: .body("img/png"), part: 2) {
            $0.replace("image/png", with: "img/png")
        },
        .init("one filename for all", .pictures, .repeatedFilename, at: .bytes([0x89]), part: 2) {
            $0.replace("\"stamp.png\"", with: "\"sea.jpg\"")
            $0.replace("\"sea.jpg\"", with: "\"imagename\"")
            $0.replace("\"sea.jpg\"", with: "\"imagename\"")
        },
    ]
}
