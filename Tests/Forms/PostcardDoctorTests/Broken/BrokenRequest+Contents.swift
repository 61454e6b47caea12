import PostcardDoctor
import PostcardForm

extension BrokenRequest {
    /// A text field's value in the place of another.
    private static func value(_ name: String, _ value: String, _ code: FormProblem.Code) -> BrokenRequest {
        .init(name, .texts, code, at: .body("\r\n\r\n", plus: 4), part: 0) { $0.replace("Jeju", with: value) }
    }

    static let contents: [BrokenRequest] =
        [
            value("an optional", "Optional(\"Jeju\")", .optionalDescription),
            value("an optional number", "Optional(3)", .optionalDescription),
            value("nil", "nil", .nullText),
            value("<null>", "<null>", .nullText),
            value("null", "null", .nullText),
            value("(null)", "(null)", .nullText),
            value("undefined", "undefined", .nullText),
            value("an object of JavaScript", "[object Object]", .objectDescription),
            value("an object of Foundation", "<UIImage:0x600003a: 0x600003a80000>", .objectDescription),
            value("a dictionary of Foundation", "{\n    city = Jeju;\n}", .objectDescription),
            value("an array of Foundation", "(\n    Jeju\n)", .objectDescription),
            value("a dictionary of Swift", "[\"city\": \"Jeju\"]", .objectDescription),
            value("a structure of Swift", "Place(city: \"Jeju\", visits: 3)", .objectDescription),
            value("an array of Swift", #"["a", "b"]"#, .objectDescription),
            value("a picture of UIKit", "<UIImage:0x600003a1c5a0 anonymous {3024, 4032}>", .objectDescription),
            value("Data", "12 bytes", .objectDescription),
            value("a blob", "Blob {size: 5, type: \"image/png\"}", .objectDescription),
            value("a bytearray", "bytearray(b'\\xff')", .objectDescription),
            value("a stream of PHP", "Resource id #5", .objectDescription),
            value("the bytes of a PNG", "[137, 80, 78, 71, 13, 10, 26, 10]", .objectDescription),
            value("the bytes of a JPEG", "-1,-40,-1,-32,0,16,74,70,73,70", .objectDescription),
            value("a file of Dart", "File: '/data/user/0/com.a/cache/x.jpg'", .pathInsteadOfFile),
            value("a share", #"\\server\share\a.jpg"#, .pathInsteadOfFile),
            value("NSData", "{length = 5, bytes = 0x68656c6c6f}", .objectDescription),
            value("NSData of old systems", "<ffd8ffe0 00104a46 49460001>", .objectDescription),
            value("CFData", "<CFData 0x1 [0x2]>{length = 3}", .objectDescription),
            value("an object of Dart", "Instance of 'MultipartFile'", .objectDescription),
            value("a file of Python", "<_io.BufferedReader name='a.jpg'>", .objectDescription),
            value("a file of Django", "<InMemoryUploadedFile: a.jpg (image/jpeg)>", .objectDescription),
            value("bytes of Python", #"b'\xff\xd8\xff\xe0'"#, .objectDescription),
            value("a file of Ruby", "#<File:0x000055d5>", .objectDescription),
            value("bytes of Java", "[B@1b6d3586", .objectDescription),
            value("an object of Java", "com.example.Photo@1b6d3586", .objectDescription),
            value("bytes of .NET", "System.Byte[]", .objectDescription),
            value("a file's URL", "file:///private/var/mobile/tmp/IMG_0001.jpg", .pathInsteadOfFile),
            value("a file's path", "/Users/anna/photo.jpg", .pathInsteadOfFile),
            value("what browsers show of a path", #"C:\fakepath\photo.jpg"#, .pathInsteadOfFile),
            value("a blob's URL", "blob:https://a.example/0f", .pathInsteadOfFile),
            value("a photo of a library", "ph://ED7AC36B/L0/001", .pathInsteadOfFile),
            value("curl's @ as a letter", "@photo.jpg", .pathInsteadOfFile),
            value("separators of thousands", "1,234.56", .surprisingNumber),
            value("a decimal comma", "12,50", .surprisingNumber),
            value("a decimal comma behind a zero", "0,5", .surprisingNumber),
            value("points for thousands", "1.234,56", .surprisingNumber),
            value("a printed date", "2026-11-21 11:04:10 +0000", .surprisingDate),
            value("an American date", "11/21/2026", .surprisingDate),
            value("a German date", "21.11.2026", .surprisingDate),
            value("a date in words", "Nov 21, 2026", .surprisingDate),
            value(
                "a picture in base64", "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgK",
                .base64Content),
            value(
                "a data: URL", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
                .base64Content),
            value(
                "a HEIC photo in base64", "AAAAJGZ0eXBoZWljAAAAAG1pZjFNaUhFTWlQcm1pYWZNaUhCaGVpYwAABKFtZXRhAAAAAAAA",
                .base64Content),
            value("a text read in the wrong charset", "cafÃ© on Jeju", .mojibake),
            value("a text of Korean read in the wrong charset", "\u{EC}\u{A0}\u{153}\u{EC}\u{A3}\u{BC}", .mojibake),
        ] + [
            .init("a word read in the wrong charset", .texts, .mojibake, at: .body("cafÃ©"), part: 0) {
                $0.replace("Jeju", with: "The new cafÃ© on Jeju")
            },
            .init("a text in Latin-1", .texts, .textNotUTF8, at: .bytes([0xE9]), part: 0) {
                $0.replace(Array("Jeju".utf8), with: Array("caf".utf8) + [0xE9])
            },
            .init("HEIC as JPEG", .pictures, .contentContradictsType, at: .body("image/jpeg"), part: 1) {
                $0.replace(Picture.jpeg, with: Picture.heic)
            },
            .init("HEIC as image/jpg", .pictures, .contentContradictsType, at: .body("image/jpg"), part: 1) {
                $0.replace("image/jpeg", with: "image/jpg; name=x")
                $0.replace(Picture.jpeg, with: Picture.heic)
            },
            .init("PNG as jpeg", .pictures, .contentContradictsType, at: .body("jpeg\r", plus: 0), part: 1) {
                $0.replace("image/jpeg", with: "jpeg")
                $0.replace(Picture.jpeg, with: Picture.png + [0])
            },
            .init("PNG as JPEG", .pictures, .contentContradictsType, at: .body("image/jpeg"), part: 1) {
                $0.replace(Picture.jpeg, with: Picture.png)
                $0.replace(Picture.png, 2, with: Array("GIF89a".utf8) + [0x3B])
                $0.replace("image/png", with: "image/gif")
                $0.replace("stamp.png", with: "stamp.gif")
            },
            .init("a web page as JPEG", .pictures, .contentContradictsType, at: .body("image/jpeg"), part: 1) {
                $0.replace(Picture.jpeg, with: Array("<html><body>Not found</body></html>".utf8))
            },
            .init("a JPEG named .png", .pictures, .extensionContradictsType, at: .body("sea.png"), part: 1) {
                $0.replace("sea.jpg", with: "sea.png")
            },
            .init(
                "a PNG announced as PNG and named .jpg", .pictures, .extensionContradictsType, at: .body("stamp.jpg"),
                part: 2
            ) {
                $0.replace("stamp.png", with: "stamp.jpg")
            },
            .init("an empty picture", .pictures, .emptyFile, at: .body("image/jpeg\r\n\r\n", plus: 14), part: 1) {
                $0.replace(Picture.jpeg, with: [])
            },
            .init("a JPEG cut off", .pictures, .truncatedPicture, at: .bytes([0xFF, 0xD0, 0x56], plus: 3), part: 1) {
                $0.replace([0x56, 0xFF, 0xD9], with: [0x56])
            },
            .init("a PNG cut off", .pictures, .truncatedPicture, at: .body("\r\n--FormBoundary7MA4--"), part: 2) {
                $0.replace(Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82], with: [])
            },
            .init("a picture as base64 text", .pictures, .base64Content, at: .body("/9j/"), part: 1) {
                $0.replace(
                    Picture.jpeg,
                    with: Array("/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgK".utf8))
            },
            .init("a picture as hexadecimal text", .pictures, .hexadecimalContent, at: .body("ffd8ff"), part: 1) {
                $0.replace(Picture.jpeg, with: Array(Picture.jpeg.hexadecimal.utf8))
            },
            .init("a picture as a string of JSON", .pictures, .escapedContent, at: .body(#""\u0089"#), part: 2) {
                $0.replace(Picture.png, with: Array(#""\u0089PNG\r\n\u001a\n\u0000\u0000\u0000\rIHDR""#.utf8))
            },
            .init("a picture as a list of numbers", .pictures, .escapedContent, at: .body("[255"), part: 1) {
                $0.replace(Picture.jpeg, with: Array("\(Picture.jpeg)".utf8))
            },
            .init("the description of a picture", .pictures, .objectDescription, at: .body("52 bytes"), part: 1) {
                $0.replace(Picture.jpeg, with: Array("52 bytes".utf8))
            },
            .init(
                "a picture decoded as UTF-8", .pictures, .fileDecodedAsText, at: .bytes([0xEF, 0xBF, 0xBD]), part: 1
            ) {
                $0.replace(Picture.jpeg, with: Array(String(decoding: Picture.jpeg, as: UTF8.self).utf8))
            },
            .init("a picture decoded as Latin-1", .pictures, .fileDecodedAsText, at: .body("\u{89}PNG"), part: 2) {
                $0.replace(
                    Picture.png,
                    with: Picture.png.flatMap { Array(String(Character(Unicode.Scalar($0))).utf8) })
            },
            .init("a picture encoded as ASCII", .pictures, .fileDecodedAsText, at: .body("????"), part: 1) {
                $0.replace(Picture.jpeg, with: Picture.jpeg.map { $0 < 0x80 ? $0 : UInt8(ascii: "?") })
            },
            .init("CRLF as LF in a picture", .pictures, .convertedLineBreaks, at: .bytes([0x0A, 0x1A, 0x0A]), part: 2) {
                $0.replace([0x0D, 0x0A, 0x1A, 0x0A], with: [0x0A, 0x1A, 0x0A])
            },
            .init(
                "LF as CRLF in a picture", .pictures, .convertedLineBreaks, at: .bytes([0x0D, 0x0A, 0x1A]), part: 2
            ) {
                $0.replace([0x0D, 0x0A, 0x1A, 0x0A], with: [0x0D, 0x0A, 0x1A, 0x0D, 0x0A])
            },
            .init(
                "CRLF before a picture", .pictures, .extraLineBreakBeforeContent,
                at: .bytes([0x0D, 0x0A, 0xFF, 0xD8]), part: 1
            ) {
                $0.replace(Picture.jpeg, with: [0x0D, 0x0A] + Picture.jpeg)
            },
            .init("the same picture twice", .pictures, .repeatedContent, at: .bytes([0xFF, 0xD8], 2), part: 2) {
                $0.replace(Picture.png, with: Picture.jpeg)
                $0.replace("stamp.png\"\r\nContent-Type: image/png", with: "stamp.jpg\"\r\nContent-Type: image/jpeg")
            },
            .init("a position in a photo", .pictures, .locationInPhoto, at: .bytes([0x25, 0x88]), part: 1) {
                $0.replace(Picture.jpeg, with: Picture.jpegWithLocation)
            },
            .init("a position in a PNG", .pictures, .locationInPhoto, at: .bytes([0x25, 0x88]), part: 2) {
                $0.replace(Picture.png, with: Picture.pngWithLocation)
            },
            .init("a position in a WebP", .pictures, .locationInPhoto, at: .bytes([0x25, 0x88]), part: 1) {
                $0 = SampleRequest([
                    .field("title", "Jeju"), .file("image", "sea.webp", "image/webp", Picture.webPWithLocation),
                ])
            },
            .init("a position in a HEIC photo", .pictures, .locationInPhoto, at: .bytes([0x25, 0x88]), part: 1) {
                $0 = SampleRequest([
                    .field("title", "Jeju"), .file("image", "sea.heic", "image/heic", Picture.heicWithLocation),
                ])
            },
            .init("S3's fields behind the file", s3, .fieldsAfterFile, at: .body("\r\n\r\npolicy", plus: 4), part: 2) {
                $0 = SampleRequest([
                    .field("key", "a.jpg"), .file("file", "a.jpg", "image/jpeg", Picture.jpeg),
                    .field("policy", "policy"),
                ])
            },
            .init("a body over nginx's default", .pictures, .overCommonDefaults, at: .start) {
                $0.replace(Picture.jpeg, with: jpeg(padding: 1 << 20))
            },
            .init("21 files for PHP", .pictures, .overCommonDefaults, at: .body("part 20"), part: 20) {
                $0 = SampleRequest(
                    (0..<21).map { .file("f\($0)", "f\($0).txt", "text/plain", Array("part \($0)".utf8)) })
            },
        ]

    private static let s3 = SampleRequest([
        .field("key", "a.jpg"), .field("policy", "policy"), .file("file", "a.jpg", "image/jpeg", Picture.jpeg),
    ])

    private static func jpeg(padding: Int) -> [UInt8] {
        Array(Picture.jpeg.dropLast(2)) + [UInt8](repeating: 0x11, count: padding) + [0xFF, 0xD9]
    }
}
