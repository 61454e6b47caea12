import Foundation
import PostcardForm
import Testing

@Suite("A media type")
struct MediaTypeTests {
    @Test(arguments: [
        "image/jpeg", "text/plain; charset=utf-8", "application/vnd.api+json", "a/b ;c=\"d\"",
    ])
    func `it is type/subtype, with parameters or without`(value: String) throws {
        #expect(try MediaType(value).value == value)
    }

    @Test(arguments: ["", "jpeg", "/", "image/", "/jpeg", "a/b\r\nX: y", "a b/c", "a/b c"])
    func `anything else is refused`(value: String) {
        let error = #expect(throws: FormError.self) { try MediaType(value) }
        #expect(error?.code == .invalidMediaType)
    }

    @Test
    func `a literal is one, with parameters or without`() throws {
        let type: MediaType = "text/plain; charset=utf-8"
        #expect(type.value == "text/plain; charset=utf-8")
        #expect(type == "text/plain; charset=utf-8" && MediaType.jpeg == "image/jpeg")
    }

    @Test
    func `a literal that is none stops the program and says why`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let type: MediaType = "jpeg"
            print(type)
        }
        let output = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(output.contains(#""jpeg" is not a media type. Write it as type/subtype, such as image/jpeg."#))
    }

    @Test(arguments: [
        ("a.JPG", MediaType.jpeg), ("a.b.png", .png), (".heic", .heic), ("folder.jpg/a", nil), ("a", nil),
        ("a.", nil),
        ("a.unknown", nil), ("사진.webp", .webP), ("a.aac", .aac), ("a.FLAC", .flac), ("memo.caf", .caf),
        ("a.aiff", .aiff), ("a.aif", .aiff), ("voice.opus", .opus),
        ("voice.mpga", .mp3), ("film.mpeg", "video/mpeg"),
    ])
    func `extensions tell it, whatever their case`(filename: String, type: MediaType?) {
        #expect(MediaType.forExtension(of: filename) == type)
    }

    /// Beginnings of files, a dot for a byte that does not matter.
    static let beginnings: [(bytes: String, type: MediaType?)] = [
        ("\u{89}PNG\r\n\u{1A}\n", .png), ("\u{FF}\u{D8}\u{FF}", .jpeg), ("GIF89a", .gif), ("RIFF....WEBP", .webP),
        ("RIFF....WAVE", .wave), ("....ftypheic", .heic), ("....ftypmif1", .heif), ("....ftypavif", .avif),
        ("....ftypisom", .mp4), ("....ftypqt  ", .quickTime), ("%PDF-1.7", .pdf), ("", nil), ("plain", nil),
        ("\u{FF}\u{D8}", nil), ("RIFF", nil), ("....ftyp", nil), ("....ftypmif1....mif1avif", .avif),
        ("....ftypmif1....mif1heic", .heif), ("....ftypnew!....mif1heic", .heif), ("....ftypnew!....isommp41", .mp4),
        ("....ftypnew!....heicmif1", .heic), ("\0\0\0\u{14}ftypmif1....avifavif", .avif),
        ("\0\0\0\u{10}ftypmif1....avifavif", .heif),
        ("....ftypheic....avif", .heic), ("BM....\0\0\0\0", .bmp), ("\u{FF}\u{F1}P\u{80}", .aac),
        ("fLaC\0\0\0\u{22}", .flac),
        ("caff\0\u{1}", .caf), ("FORM....AIFFCOMM", .aiff), ("FORM....AIFC", .aiff), ("FORM....ILBM", nil),
        ("OggS", .ogg),
    ]

    @Test(arguments: beginnings)
    func `first bytes tell it`(bytes: String, type: MediaType?) {
        #expect(MediaType.forFirstBytes(bytes.unicodeScalars.map { UInt8($0.value) }) == type)
    }

    /// Names with the beginning of their files.
    static let files: [(filename: String?, bytes: String, type: MediaType?)] = [
        ("photo.jpg", "....ftypheic", .heic), ("photo.HEIC", "\u{FF}\u{D8}\u{FF}", .jpeg),
        ("a.heic", "....ftypmif1", .heic), ("a.jpg", "BM....\0\0\0\0", .bmp), ("a.bmp", "\u{FF}\u{D8}\u{FF}", .jpeg),
        ("a.heic", "....ftypnew!", .heic), ("a.mov", "....ftypisom", .quickTime), ("a.mp4", "....ftypheic", .heic),
        ("a.dng", "II*\0", .dng), ("a.tif", "\u{89}PNG\r\n\u{1A}\n", .png), ("a.txt", "GIF89a", .plainText),
        ("a.svg", "%PDF-1.7", .svg), ("a.jpg", "plain", .jpeg), ("a", "GIF89a", .gif), (nil, "GIF89a", .gif),
        ("a.opus", "OggS", .opus), ("a.wav", "fLaC", .flac), ("a.flac", "RIFF....WAVE", .wave), ("a.aac", "ID3", .aac),
        ("a.unknown", "GIF89a", .gif), ("a.docx", "PK\u{3}\u{4}", .zip), ("a", "plain", nil), (nil, "", nil),
    ]

    @Test(arguments: files)
    func `the first bytes decide if the extension promises others`(filename: String?, bytes: String, type: MediaType?) {
        let bytes = bytes.unicodeScalars.map { UInt8($0.value) }
        #expect(MediaType.forFile(named: filename, firstBytes: bytes) == type)
    }

    @Test
    func `the caller's goes before that of the extension and the first bytes`() throws {
        let png = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
        var form = MultipartForm()
        form.append(png, named: "a", filename: "a.jpg", contentType: .pdf, metadata: .asIs)
        form.append(png, named: "a", filename: "a.jpg", metadata: .asIs)
        form.append(png, named: "a", filename: "a", metadata: .asIs)
        form.append(Data([1]), named: "a", filename: "a")
        form.append("text", named: "a")
        #expect(try form.layout().parts.map(\.contentType) == [.pdf, .png, .png, .octetStream, nil])
    }
}
