/// A request to break: the lines of its head, and its body. The head has the body's length unless another is given.
struct SampleRequest: Sendable {
    var requestLine = "POST /uploads HTTP/1.1"
    var contentType: String? = "Content-Type: multipart/form-data; boundary=\(SampleRequest.boundary)"
    var contentLength: String?
    var otherFields = ["Host: example.com"]
    var body: [UInt8]

    static let boundary = "FormBoundary7MA4"

    var headBytes: [UInt8] {
        let length = contentLength ?? "Content-Length: \(body.count)"
        let lines = [requestLine] + otherFields + [contentType, length].compactMap(\.self).filter { !$0.isEmpty }
        return Array((lines.map { $0 + "\r\n" }.joined() + "\r\n").utf8)
    }

    var bytes: [UInt8] { headBytes + body }

    /// The value of the Content-Type field.
    var contentTypeValue: String { contentType.map { String($0.dropFirst("Content-Type: ".count)) } ?? "" }

    init(_ parts: [Part]) {
        body = []
        for part in parts {
            body += Array("--\(Self.boundary)\r\n".utf8) + part.header.flatMap { Array("\($0)\r\n".utf8) }
            body += Array("\r\n".utf8) + part.content + Array("\r\n".utf8)
        }
        body += Array("--\(Self.boundary)--\r\n".utf8)
    }

    struct Part {
        let header: [String]
        let content: [UInt8]

        static func field(_ name: String, _ value: String) -> Part {
            Part(header: [#"Content-Disposition: form-data; name="\#(name)""#], content: Array(value.utf8))
        }

        static func file(_ name: String, _ filename: String, _ type: String, _ content: [UInt8]) -> Part {
            Part(
                header: [
                    #"Content-Disposition: form-data; name="\#(name)"; filename="\#(filename)""#,
                    "Content-Type: \(type)",
                ], content: content)
        }
    }
}

extension SampleRequest {
    static let texts = SampleRequest([
        .field("title", "Jeju"), .field("message", "안녕하세요, \"제주\"에서\r\nhello"), .field("visits", "3"),
    ])

    static let pictures = SampleRequest([
        .field("title", "Jeju"), .file("image", "sea.jpg", "image/jpeg", Picture.jpeg),
        .file("stamp", "stamp.png", "image/png", Picture.png),
    ])

    static let korean = SampleRequest([
        .field("이름", "초코"), .file("사진", "제주 바다.jpg", "image/jpeg", Picture.jpeg), .field("날짜", "2026-11-21T11:04:10Z"),
    ])

    static let browser = SampleRequest([
        .field("tags[]", "sea"), .field("tags[]", "island"), .field("note", ""),
        .file("document", "list.csv", "text/csv", Array("a,b\r\n1,2\r\n".utf8)),
        .file("data", "blob", "application/octet-stream", Array(0...255)),
    ])

    /// What .NET's HttpClient writes: names without quotes, and the filename twice.
    static let dotNET = SampleRequest([
        Part(
            header: ["Content-Type: text/plain; charset=utf-8", "Content-Disposition: form-data; name=title"],
            content: Array("Jeju".utf8)),
        Part(
            header: [
                "Content-Type: image/jpeg",
                "Content-Disposition: form-data; name=image; filename=sea.jpg; filename*=utf-8''sea.jpg",
            ], content: Picture.jpeg),
    ])

    static let good: [(name: String, request: SampleRequest)] = [
        ("texts", texts), ("pictures", pictures), ("korean", korean), ("browser", browser), (".NET", dotNET),
        ("object store", BrokenRequest.storeForm()),
    ]
}

/// The smallest pictures that have a beginning and an end.
enum Picture {
    static let jpeg = jpeg(segments: [])

    static func jpeg(segments: [UInt8]) -> [UInt8] {
        [0xFF, 0xD8, 0xFF, 0xE0, 0x00, 0x10] + Array("JFIF\0".utf8) + [1, 1, 0, 0, 1, 0, 1, 0, 0] + segments
            + [0xFF, 0xDA, 0x00, 0x08, 1, 1, 0, 0, 0x3F, 0, 0x12, 0xFF, 0x00, 0x34, 0xFF, 0xD0, 0x56, 0xFF, 0xD9]
    }

    /// EXIF that has a directory with a latitude.
    private static let exif: [UInt8] = {
        let directory: [UInt8] = [1, 0, 0x25, 0x88, 4, 0, 1, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0]
        let location: [UInt8] = [1, 0, 2, 0, 5, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        return Array("II*\0".utf8) + [8, 0, 0, 0] + directory + location
    }()

    static let jpegWithLocation: [UInt8] = {
        // Another segment of the kind comes first, as Adobe's XMP does.
        let other: [UInt8] = [0xFF, 0xE1, 0, 8] + Array("http:/".utf8)
        let content = Array("Exif\0\0".utf8) + exif
        return jpeg(segments: other + [0xFF, 0xE1, 0, UInt8(content.count + 2)] + content)
    }()

    static let png = png(chunks: [])

    private static func png(chunks: [UInt8]) -> [UInt8] {
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8)
            + [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0x3A, 0x7E, 0x9B, 0x55] + chunks + [0, 0, 0, 0]
            + Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82]
    }

    static let pngWithLocation = png(
        chunks: [0, 0, 0, UInt8(exif.count)] + Array("eXIf".utf8) + exif + [0, 0, 0, 0])

    /// WebP keeps EXIF behind the picture.
    static let webPWithLocation: [UInt8] = {
        let picture = Array("VP8 ".utf8) + [3, 0, 0, 0, 1, 2, 3, 0]
        let chunks = picture + Array("EXIF".utf8) + [UInt8(exif.count), 0, 0, 0] + exif
        return Array("RIFF".utf8) + [UInt8(chunks.count + 4), 0, 0, 0] + Array("WEBP".utf8) + chunks
    }()

    static let heicWithLocation: [UInt8] = {
        func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
            [0, 0, 0, UInt8(content.count + 8)] + Array(type.utf8) + content
        }
        let fileType = box("ftyp", Array("heic".utf8) + [0, 0, 0, 0] + Array("mif1heic".utf8))
        let picture = box("infe", [2, 0, 0, 0, 0, 1, 0, 0] + Array("hvc1".utf8) + [0])
        let metadata = box("infe", [2, 0, 0, 0, 0, 2, 0, 0] + Array("Exif".utf8) + [0])
        let information = box("iinf", [0, 0, 0, 0, 0, 2] + picture + metadata)
        func locations(exifAt offset: Int) -> [UInt8] {
            let items: [UInt8] =
                [0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3]
                + [0, 2, 0, 0, 0, 1, 0, 0, 0, UInt8(offset), 0, 0, 0, UInt8(exif.count + 4)]
            return box("iloc", [0, 0, 0, 0, 0x44, 0, 0, 2] + items)
        }
        func meta(exifAt offset: Int) -> [UInt8] {
            box("meta", [0, 0, 0, 0] + information + locations(exifAt: offset))
        }
        // The picture's three bytes are the first of the data.
        let offset = fileType.count + meta(exifAt: 0).count + 8 + 3
        return fileType + meta(exifAt: offset) + box("mdat", [1, 2, 3, 0, 0, 0, 0] + exif)
    }()

    static let heic: [UInt8] =
        [0, 0, 0, 24] + Array("ftypheic".utf8) + [0, 0, 0, 0] + Array("mif1heic".utf8) + [1, 2, 3]
}
