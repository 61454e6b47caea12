import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

/// What forms remove if their author says nothing of metadata.
@Suite struct DefaultMetadataTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private struct Album: Encodable {
        var picture: FormFile
        var pictures: [FormFile]
        var thumbnail: Data
    }

    /// The forms that have a file, by every way in which an author can write them.
    private func forms(_ bytes: [UInt8], named filename: String) throws -> [MultipartForm] {
        let url = try folder.file(filename, bytes)
        let boundary = try Boundary("XX")
        return try [
            { $0.append(fileAt: url, named: "picture") },
            { $0.append(filesAt: [url, url], named: "picture") },
            { $0.append(Data(bytes), named: "picture", filename: filename) },
            { $0.append(FormPart(name: "picture", content: .file(url))) },
            { $0.append(FormPart(name: "picture", filename: filename, content: .bytes(Data(bytes)))) },
        ].map { (append: (inout MultipartForm) -> Void) in
            var form = MultipartForm(boundary: boundary)
            append(&form)
            return form
        } + [
            MultipartForm(
                encoding: Album(
                    picture: FormFile(at: url), pictures: [FormFile(Data(bytes), filename: filename)],
                    thumbnail: Data(bytes)))
        ]
    }

    @Test(arguments: PlantedFile.all)
    func `pictures and videos are sent without their position, in a body of the length that was said`(
        file: PlantedFile
    ) throws {
        let expected = Array(try MetadataPolicy.withoutLocation.applied(to: Data(file.bytes)))
        for form in try forms(file.bytes, named: "choco") {
            let layout = try form.layout()
            let body = try layout.reader().readAll(by: 1 << 20)
            #expect(PlantedFile.secrets(in: body) == [])
            #expect(body.firstRange(of: expected) != nil)
            #expect(layout.contentLength == Int64(body.count))
            // As a retry reads it, and an upload that resumes.
            #expect(try form.layout().reader().readAll(by: 997) == body)
            #expect(try layout.reader(from: Int64(body.count / 2)).readAll(by: 64) == Array(body[(body.count / 2)...]))
        }
    }

    static let others: [(String, [UInt8])] = [
        ("a text", Array("Hello, 59.3293, 18.0686".utf8)), ("nothing", []), ("a PDF", Array("%PDF-1.7 SECRET".utf8)),
        ("an archive", [0x50, 0x4B, 0x03, 0x04] + Array("SECRET".utf8)),
        ("sound", box("ftyp", Array("M4A \0\0\0\0".utf8)) + box("moov", Array("SECRET".utf8))),
        ("two bytes of a JPEG, and then something else", [0xFF, 0xD8, 1, 2, 3, 4]),
        ("a JPEG within something else", [0] + JPEG.file()),
        ("a text like a box", Array("The free lunch of the dog".utf8)),
        ("a text like a raw picture", Array("IIROC member, FOVb".utf8)),
    ]

    @Test(arguments: others)
    func `what is no picture or video is sent byte for byte, whatever its name`(about: String, bytes: [UInt8]) throws {
        for form in try forms(bytes, named: "choco.jpg") {
            let body = try form.layout().reader().readAll(by: 4096)
            #expect(bytes.isEmpty || body.firstRange(of: bytes) != nil)
        }
    }

    @Test(arguments: [("voice.weba", nil), ("blob", "audio/webm"), ("blob.webm", "audio/webm;codecs=opus")])
    func `a recording in WebM is sent as it is, if its sender says that it is sound`(
        filename: String, type: MediaType?
    ) throws {
        let bytes: [UInt8] = [0x1A, 0x45, 0xDF, 0xA3, 1, 2, 3]
        var form = MultipartForm()
        form.append(Data(bytes), named: "voice", filename: filename, contentType: type)
        form.append(fileAt: try folder.file(filename, bytes), named: "voice", contentType: type)
        let body = try form.layout().reader().readAll(by: 4096)
        #expect(body.ranges(of: bytes).count == 2)
    }

    @Test func `what is called sound and begins as a picture is a picture`() throws {
        var form = MultipartForm()
        form.append(
            Data([0xFF, 0xD8, 0xFF, 0xE1, 0x10, 0x00, 1, 2]), named: "voice", filename: nil, contentType: "audio/webm")
        #expect(throws: FormError.self) { try form.layout() }
    }

    @Test func `of what is no picture or video only the first bytes are read`() throws {
        var read = 0
        let edits = try MetadataPolicy.picturesWithoutLocation.edits(ofLength: 6 << 30) { _, buffer in
            read += buffer.count
            return buffer.count
        }
        #expect(edits.isEmpty)
        #expect(read == MediaType.firstBytesCount)
    }

    static let unreadable: [(String, [UInt8])] = [
        ("a JPEG cut off in a segment", [0xFF, 0xD8, 0xFF, 0xE1, 0x10, 0x00, 1, 2]),
        ("a PNG without an end", PNG.signature + PNG.chunk("IHDR", [])),
        ("a film in WebM", [0x1A, 0x45, 0xDF, 0xA3, 1, 2, 3]), ("a BigTIFF", [0x49, 0x49, 0x2B, 0, 8, 0, 0, 0]),
        ("a raw picture of Canon", box("ftyp", Array("crx \0\0\0\0".utf8)) + box("moov", [])),
        ("a raw picture of Fujifilm", Array("FUJIFILMCCD-RAW 0201".utf8)),
        ("a raw picture of Panasonic", Array("IIU\0".utf8) + [8, 0, 0, 0]),
        ("a film in AVI", Array("RIFF\0\0\0\0AVI LIST".utf8)),
        ("JPEG XL", [0, 0, 0, 12] + Array("JXL \r\n".utf8) + [0x87, 0x0A]),
        ("a film of QuickTime without a type, cut off", [0, 0, 0, 99] + Array("moov".utf8)),
    ]

    @Test(arguments: unreadable)
    func `a picture that cannot be read is an error that says how to send it anyway`(
        about: String, bytes: [UInt8]
    ) throws {
        for form in try forms(bytes, named: "choco.jpg") {
            let error = try #require(throws: FormError.self) { try form.layout() }
            #expect(error.code == .metadataUnreadable)
            let advice = try #require(error.advice)
            #expect(advice.contains("`metadata: .asIs`") && advice.contains("--metadata as-is"))
        }
        let url = try folder.file("choco.jpg", bytes)
        var form = MultipartForm()
        form.append(fileAt: url, named: "picture", metadata: .asIs)
        form.append(filesAt: [url], named: "picture", metadata: .asIs)
        form.append(Data(bytes), named: "picture", filename: "choco.jpg", metadata: .asIs)
        form.append(fileAt: url, named: "picture", metadata: .picturesWithoutLocation.ifUnreadable(.sendAsIs))
        let body = try form.layout().reader().readAll(by: 4096)
        #expect(body.ranges(of: bytes).count == 4)
    }

    @Test func `a stream is sent as it is`() throws {
        let picture = Data(JPEG.file())
        var form = MultipartForm()
        let stream = FormStream(length: Int64(picture.count)) {
            AsyncStream { continuation in
                continuation.yield(picture)
                continuation.finish()
            }
        }
        form.append(stream, named: "picture", filename: "choco.jpg")
        form.append(FormPart(name: "picture", content: .stream(stream)))
        #expect(try form.layout().parts.map(\.contentLength) == [Int64(picture.count), Int64(picture.count)])
    }
}
