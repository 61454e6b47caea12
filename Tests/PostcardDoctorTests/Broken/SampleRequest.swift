/// A request to be broken: its head in lines and its body, whose length the head says unless it is told otherwise.
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

    static let good: [(name: String, request: SampleRequest)] = [
        ("texts", texts), ("pictures", pictures), ("korean", korean), ("browser", browser),
    ]
}

/// The smallest pictures that have a beginning and an end.
enum Picture {
    static let jpeg = jpeg(segments: [])

    static func jpeg(segments: [UInt8]) -> [UInt8] {
        [0xFF, 0xD8, 0xFF, 0xE0, 0x00, 0x10] + Array("JFIF\0".utf8) + [1, 1, 0, 0, 1, 0, 1, 0, 0] + segments
            + [0xFF, 0xDA, 0x00, 0x08, 1, 1, 0, 0, 0x3F, 0, 0x12, 0xFF, 0x00, 0x34, 0xFF, 0xD0, 0x56, 0xFF, 0xD9]
    }

    /// A JPEG whose EXIF has a directory with a latitude.
    static let jpegWithLocation: [UInt8] = {
        let directory: [UInt8] = [1, 0, 0x25, 0x88, 4, 0, 1, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0]
        let location: [UInt8] = [1, 0, 2, 0, 5, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        let exif = Array("Exif\0\0II*\0".utf8) + [8, 0, 0, 0] + directory + location
        return jpeg(segments: [0xFF, 0xE1, 0, UInt8(exif.count + 2)] + exif)
    }()

    static let png: [UInt8] =
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8)
        + [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0x3A, 0x7E, 0x9B, 0x55, 0, 0, 0, 0] + Array("IEND".utf8)
        + [0xAE, 0x42, 0x60, 0x82]

    static let heic: [UInt8] =
        [0, 0, 0, 24] + Array("ftypheic".utf8) + [0, 0, 0, 0] + Array("mif1heic".utf8) + [1, 2, 3]
}
