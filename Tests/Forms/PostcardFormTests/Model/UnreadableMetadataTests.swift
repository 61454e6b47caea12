import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@Suite struct UnreadableMetadataTests {
    private static func jpeg(exif: [UInt8]) -> [UInt8] {
        [0xFF, 0xD8] + JPEG.segment(0xE1, JPEG.exifMark + exif) + JPEG.picture() + JPEG.end
    }

    private static func jpeg(xmp: String) -> [UInt8] {
        [0xFF, 0xD8] + JPEG.segment(0xE1, JPEG.xmpMark + Array(xmp.utf8)) + JPEG.picture() + JPEG.end
    }

    private static func jpeg(photoshop: [UInt8]) -> [UInt8] {
        [0xFF, 0xD8] + JPEG.segment(0xED, Array("Photoshop 3.0\0".utf8) + photoshop) + JPEG.picture() + JPEG.end
    }

    private static let tiff = EXIF()

    /// A directory that names another, whose place is the number of the entry.
    private static func exif(_ entry: EXIF.Entry, next: Int = 0) -> [UInt8] {
        tiff.header + tiff.directory([entry], at: 8, next: next)
    }

    /// A file, where it is not understood, and a word of the reason.
    struct Unreadable: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
        var offset: Int64 = 0
        var word = ""

        init(_ about: String, _ bytes: [UInt8], _ offset: Int64 = 0, _ word: String = "") {
            testDescription = about
            self.bytes = bytes
            self.offset = offset
            self.word = word
        }
    }

    static let files: [Unreadable] = [
        Unreadable("a text", Array("Hello, world".utf8), 0, "not known"),
        Unreadable("a PDF", Array("%PDF-1.7".utf8), 0, "pdf"),
        Unreadable("a raw picture", box("ftyp", Array("crx \0\0\0\0".utf8)) + box("moov", []), 0, "cannot be removed"),
        Unreadable("a JPEG cut off in a segment", [0xFF, 0xD8, 0xFF, 0xE1, 0x10, 0x00, 1, 2], 2, "4096 bytes"),
        Unreadable("a JPEG whose segment is too short", [0xFF, 0xD8, 0xFF, 0xE1, 0, 1, 1, 2], 2, "1 bytes"),
        Unreadable("two bytes of a JPEG, and then something else", [0xFF, 0xD8, 1, 2, 3, 4], 0, "not known"),
        Unreadable("a JPEG that never gets to its pixels", [0xFF, 0xD8, 0xFF, 0xE0, 0, 2, 1, 2, 3], 9, "header"),
        Unreadable("EXIF that is none", jpeg(exif: Array("something".utf8)), 12, "TIFF"),
        Unreadable("a directory that names itself", jpeg(exif: exif(tiff.long(0x8769, 8))), 20, "one another"),
        Unreadable("directories in a circle", jpeg(exif: exif(tiff.short(0x0112, 6), next: 8)), 20, "one another"),
        Unreadable("a directory behind the end", jpeg(exif: exif(tiff.long(0x8769, 9999))), 30, "9999"),
        Unreadable(
            "a directory without a place", jpeg(exif: exif(tiff.text(0x8769, "abc"))), 30, "without saying where"),
        Unreadable(
            "XMP in EXIF behind its end",
            jpeg(
                exif: tiff.header + tiff.number(1, 2) + tiff.number(0x02BC, 2) + tiff.number(1, 2)
                    + tiff.number(99, 4) + tiff.number(5000, 4) + tiff.number(0, 4)), 38, "outside"
        ),
        Unreadable("XMP that ends in an element", jpeg(xmp: "<x:xmpmeta><a>"), 35 + 14, "inside an element"),
        Unreadable("XMP that ends in a tag", jpeg(xmp: "<x:xmpmeta a='"), 35 + 11, "attribute"),
        Unreadable("XMP with a document type", jpeg(xmp: "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"), 35, "document type"),
        Unreadable("XMP that is not XML", jpeg(xmp: "SECRET"), 35, "not XML"),
        Unreadable(
            "Photoshop's resources cut off", jpeg(photoshop: Array("8BIM\u{4}\u{4}\0\0\0\0\0\u{9}abc".utf8)), 20,
            "9 bytes"
        ),
        Unreadable(
            "an IPTC record cut off",
            jpeg(photoshop: Array("8BIM\u{4}\u{4}\0\0\0\0\0\u{6}".utf8) + [28, 2, 90, 0, 9, 1]), 32, "9 bytes"
        ),
        Unreadable(
            "a PNG cut off in a chunk", PNG.signature + [0, 0, 1, 0] + Array("eXIf".utf8) + [1, 2, 3, 4], 8, "256 bytes"
        ),
        Unreadable("a PNG without an end", PNG.signature + PNG.chunk("IHDR", []), 20, "ends after 20"),
        Unreadable("a WebP that is shorter than it says", Array("RIFF\u{7F}\0\0\0WEBP".utf8), 4, "byte 135"),
        Unreadable("a WebP cut off in a chunk", Array("RIFF\u{C}\0\0\0WEBPEXIF\u{9}\0\0\0".utf8), 12, "9 bytes"),
        Unreadable(
            "a GIF that ends in a block", Array("GIF89a".utf8) + [1, 0, 1, 0, 0, 0, 0, 0x21, 0xFE, 5, 1], 21, "ends"),
        Unreadable("a box that is longer than the file", Array("\0\0\0\u{18}ftypheic\0\0\0\0".utf8), 0, "24 bytes"),
        Unreadable(
            "a box without room for its header", box("ftyp", [1, 2, 3, 4]) + [0, 0, 0, 3] + Array("moov".utf8), 12,
            "3 bytes"
        ),
        Unreadable(
            "an item outside of the data", heic(sizes: 0x44, [0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9]), 16, "item 2"),
        Unreadable("an item nowhere", heic(sizes: 0x44, []), 16, "item 2"),
        Unreadable(
            "an offset of fifteen bytes, which would be negative",
            heic(sizes: 0xF4, [0, 2, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 7) + [0x80, 0, 0, 0, 0, 0, 0, 0]), 75,
            "15 bytes"),
        Unreadable(
            "a length of fifteen bytes, which would be negative",
            heic(sizes: 0x4F, [0, 2, 0, 0, 0, 1, 0, 0, 0, 9] + [UInt8](repeating: 0xFF, count: 15)), 75, "15 bytes"),
        Unreadable(
            "an offset of eight bytes, which would be negative",
            heic(sizes: 0x84, [0, 2, 0, 0, 0, 1, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), 93, "too large"),
        Unreadable(
            "the description of a video, compressed",
            box("ftyp", Array("qt  \0\0\0\0".utf8)) + box("moov", box("cmov", [1, 2, 3])), 24, "compressed"),
        Unreadable(
            "an item constructed in an unknown way", heic(version: 1, sizes: 0x44, [0, 2, 0, 7, 0, 0, 0, 0]), 87,
            "method 7"
        ),
    ]

    private static func heic(version: UInt8 = 0, sizes: UInt8, _ location: [UInt8]) -> [UInt8] {
        let entry = box("infe", [2, 0, 0, 0, 0, 2, 0, 0] + Array("Exif".utf8) + [0])
        let locations = box("iloc", [version, 0, 0, 0, sizes, 0, 0, location.isEmpty ? 0 : 1] + location)
        return box("ftyp", Array("heic\0\0\0\0".utf8))
            + box("meta", [0, 0, 0, 0] + box("iinf", [0, 0, 0, 0, 0, 1] + entry) + locations) + box("mdat", [1, 2, 3])
    }

    @Test(arguments: files)
    func `what is not understood is an error that says where, or is sent as it is`(
        file unreadable: Unreadable
    ) throws {
        let bytes = unreadable.bytes
        let failure = #expect(throws: MetadataError.self) {
            try MetadataPolicy.withoutLocation.applied(to: Data(bytes))
        }
        #expect(failure?.message.contains(unreadable.word) == true, "\(String(describing: failure))")
        #expect(failure?.offset == unreadable.offset, "\(String(describing: failure))")

        let folder = try TemporaryFolder()
        let file = try folder.file("picture", bytes)
        var form = MultipartForm()
        form.append("text", named: "a")
        form.append(fileAt: file, named: "b", metadata: .withoutLocation)
        let error = #expect(throws: FormError.self) { try form.layout() }
        #expect(error?.code == .metadataUnreadable)
        #expect(error?.path == file.path && error?.partIndex == 1)
        #expect(error?.advice?.contains("`metadata: .asIs`") == true)

        var other = MultipartForm()
        other.append(fileAt: file, named: "b", metadata: .withoutLocation.ifUnreadable(.sendAsIs))
        #expect(try other.layout().reader().readAll(by: 999).firstRange(of: bytes) != nil)
    }

    @Test func `pictures in videos in pictures are not read without end`() throws {
        var picture: [UInt8] = [0xFF, 0xD8, 0xFF, 0xD9]
        let entry = box("infe", [2, 0, 0, 0, 0, 1, 0, 0] + Array("jpeg".utf8) + [0])
        for _ in 0..<2000 {
            func header(_ offset: Int) -> [UInt8] {
                let location = [0, 1, 0, 0, 0, 1] + offset.bytes(4) + picture.count.bytes(4)
                let directory =
                    box("iinf", [0, 0, 0, 0, 0, 1] + entry) + box("iloc", [0, 0, 0, 0, 0x44, 0, 0, 1] + location)
                return box("ftyp", Array("heic\0\0\0\0".utf8)) + box("meta", [0, 0, 0, 0] + directory)
            }
            let start = header(0).count + 8
            picture = [0xFF, 0xD8, 0xFF, 0xD9] + header(start) + box("mdat", picture)
        }
        let failure = #expect(throws: MetadataError.self) {
            try MetadataPolicy.withoutLocation.applied(to: Data(picture))
        }
        #expect(failure?.message.contains("more than 8") == true, "\(String(describing: failure))")
    }

    @Test func `a stream cannot be read before it is sent`() throws {
        var form = MultipartForm()
        let stream = FormStream(length: 0) { AsyncStream<Data> { $0.finish() } }
        form.append(FormPart(name: "a", filename: "a", content: .stream(stream), metadata: .withoutLocation))
        let error = #expect(throws: FormError.self) { try form.layout() }
        #expect(error?.code == .metadataUnreadable)
    }

    @Test func `a file that is gone is that error, whatever its metadata`() throws {
        var form = MultipartForm()
        form.append(fileAt: URL(filePath: "/no/such/file.jpg"), named: "a", metadata: .withoutLocation)
        let error = #expect(throws: FormError.self) { try form.layout() }
        #expect(error?.code == .fileMissing)
    }

    /// Files that were made to be slow or large: each is an error or done soon, and takes little memory.
    static let hostile: [Unreadable] = [
        Unreadable("100,000 chunks", PNG.signature + (0..<100_000).flatMap { _ in PNG.chunk("a", []).dropLast(3) }),
        Unreadable("300,000 boxes", (0..<300_000).flatMap { _ in [0, 0, 0, 8] + Array("free".utf8) }),
        Unreadable("boxes in boxes", (0..<2000).reduce([]) { content, _ in box("moov", box("trak", content)) }),
        Unreadable(
            "a directory of values that are all the same bytes",
            jpeg(
                exif: tiff.header + tiff.number(4000, 2)
                    + (0..<4000).flatMap { _ in
                        tiff.number(0x9286, 2) + tiff.number(2, 2) + tiff.number(40_000, 4) + tiff.number(8, 4)
                    } + tiff.number(0, 4))
        ),
        Unreadable("XMP of one long tag", jpeg(xmp: "<" + String(repeating: "a", count: 60_000))),
        Unreadable("pictures in pictures", (0..<40).reduce([]) { picture, _ in jpeg(exif: exifNaming(picture)) }),
    ]

    private static func exifNaming(_ picture: [UInt8]) -> [UInt8] {
        let entries = { (offset: Int) in [tiff.long(0x0201, offset), tiff.long(0x0202, picture.count)] }
        return tiff.header + tiff.directory(entries(8 + tiff.directory(entries(0), at: 8).count), at: 8) + picture
    }

    @Test(arguments: hostile) func `a hostile file ends in an error or a result`(file: Unreadable) {
        for policy in [MetadataPolicy.withoutLocation, .none] {
            do {
                #expect(try policy.applied(to: Data(file.bytes)).count == file.bytes.count)
            } catch {
                #expect(error.offset >= 0)
            }
        }
    }

    @Test(arguments: PlantedFile.all)
    func `a file with wrong bytes is understood or refused, and never trapped on`(file: PlantedFile) throws {
        var random = SeededGenerator(seed: 20_261_122)
        for round in 0..<120 {
            var bytes = file.bytes
            for _ in 0...(round % 4) {
                let index = Int(random.next() % UInt64(bytes.count))
                bytes[index] =
                    [0, 0xFF, 0x7F, bytes[index] ^ 1, UInt8(truncatingIfNeeded: random.next())].randomElement(
                        using: &random) ?? 0
            }
            if round % 5 == 0 { bytes.removeLast(Int(random.next() % UInt64(bytes.count))) }
            for policy in [MetadataPolicy.withoutLocation, .none] {
                guard let once = try? policy.applied(to: Data(bytes)) else { continue }
                #expect(once.count == bytes.count)
                // Without the directory of its pictures, the end of the first is found by reading its pixels, and those
                // may be damaged: such a result is refused.
                guard let twice = try? policy.applied(to: once) else { continue }
                #expect(twice == once, "round \(round)")
            }
        }
    }
}
