import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@Suite struct MotionPhotoTests {
    /// The video of a motion photo, as a file of its own.
    private static let video = Movie.file(pixels: [9, 9, 9])
    private static let picture = [0xFF, 0xD8] + JPEG.picture() + JPEG.end

    /// A picture with a video, in a form that cameras write.
    struct Form: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
    }

    private static func announced(length: Int, padding: Int, offset: Int? = nil) -> [UInt8] {
        let micro = offset.map { " GCamera:MicroVideo='1' GCamera:MicroVideoOffset='\($0)'" } ?? ""
        let items = "<c:Item Item:Length='0' Item:Padding='\(padding)'/><c:Item Item:Length='\(length)'/>"
        let packet = "<x:xmpmeta><d GCamera:MotionPhoto='1'\(micro)>\(items)</d></x:xmpmeta>"
        return [0xFF, 0xD8] + JPEG.segment(0xE1, JPEG.xmpMark + Array(packet.utf8)) + picture[2...]
    }

    private static let blocks = [Samsung.time, Samsung.motion(video), Samsung.version, Samsung.country]

    static let forms: [Form] = {
        let trailer = Samsung.trailer([Samsung.motion(video), Samsung.version])
        let directory = box("sefd", Samsung.trailer([Samsung.time, Samsung.reference, Samsung.version]))
        let sound = Samsung.trailer([Samsung.Block(type: 0x0100, name: "SoundShot_000", data: video)])
        let heic = HEIC.file(method: 1)
        return [
            Form(testDescription: "MicroVideo", bytes: announced(length: 0, padding: 0, offset: video.count) + video),
            Form(
                testDescription: "MotionPhoto, with padding",
                bytes: announced(length: video.count, padding: 8) + [UInt8](repeating: 0, count: 8) + video),
            Form(
                testDescription: "behind a gain map",
                bytes: announced(length: video.count, padding: 0) + picture + video),
            Form(testDescription: "behind other bytes", bytes: picture + Array("\0\u{1}other".utf8) + video),
            Form(testDescription: "before other bytes", bytes: picture + video + Array("v2_f31  LIVE_1234567".utf8)),
            Form(testDescription: "Samsung", bytes: picture + Samsung.trailer(blocks)),
            Form(
                testDescription: "Samsung, listed in another order",
                bytes: picture + Samsung.trailer(blocks, order: [3, 1, 0, 2])),
            Form(
                testDescription: "Samsung, with Google's XMP",
                bytes: announced(length: trailer.count - 24, padding: 24) + trailer),
            Form(testDescription: "Samsung, before zeros", bytes: picture + trailer + [0, 0, 0, 0, 0]),
            Form(
                testDescription: "Samsung, with sound in another directory",
                bytes: picture + sound + Array("QDIO".utf8) + [UInt8](repeating: 1, count: 16) + [20, 0, 0, 0]
                    + Array("QDIOBS".utf8)),
            Form(testDescription: "a video with Samsung's directory in it", bytes: picture + video + directory),
            Form(testDescription: "HEIC", bytes: heic + box("mpvd", video)),
            Form(testDescription: "HEIC of Samsung's", bytes: heic + box("mpvd", video) + directory),
            Form(testDescription: "HEIC with all of it in one box", bytes: heic + box("mpvd", video + directory)),
            Form(testDescription: "HEIC with Samsung's trailer", bytes: heic + trailer),
            Form(testDescription: "HEIC with a video behind it", bytes: heic + video),
        ]
    }()

    private func edits(_ bytes: [UInt8], _ policy: MetadataPolicy = .withoutLocation) throws -> FileEdits {
        try policy.edits(ofLength: Int64(bytes.count)) { offset, buffer in
            let rest = bytes.dropFirst(Int(offset)).prefix(buffer.count)
            buffer.copyBytes(from: rest)
            return rest.count
        }
    }

    @Test(arguments: forms) func `the video stays, without its own position`(form: Form) throws {
        let place = try #require(form.bytes.firstRange(of: Self.video))
        let result = Array(try MetadataPolicy.withoutLocation.applied(to: Data(form.bytes)))
        #expect(Array(result[place]) == Array(try MetadataPolicy.withoutLocation.applied(to: Data(Self.video))))
        #expect(PlantedFile.secrets(in: result) == [])
        let marks = [
            "MotionPhoto_Data", "MotionPhoto_Version", "Image_UTC_Data", "mpv", "SEFH", "SEFT", "QDIOBS", "sefd",
        ]
        for text in marks {
            #expect(PlantedFile.has(result, text) == PlantedFile.has(form.bytes, text), "\(text)")
        }
        let edits = try edits(form.bytes)
        #expect(edits.hasVideo && edits.removed.contains("its position") && !edits.removed.contains("its video"))
        // There is nothing left to remove.
        #expect(try self.edits(result).removed == [])
    }

    @Test(arguments: forms) func `without all metadata the video goes too, and is named`(form: Form) throws {
        let result = Array(try MetadataPolicy.none.applied(to: Data(form.bytes)))
        #expect(result.firstRange(of: [9, 9, 9]) == nil)
        let edits = try edits(form.bytes, .none)
        #expect(edits.removedContent.contains("its video"), "\(edits.removedContent)")
    }

    @Test func `a picture and a video of Apple's stay a pair`() throws {
        let picture = JPEG.file(exif: EXIF(makerNote: AppleNote.bytes).bytes)
        let result = Array(try MetadataPolicy.withoutLocation.applied(to: Data(picture)))
        let note = try #require(picture.firstRange(of: AppleNote.bytes))
        #expect(result[note].starts(with: Array("Apple iOS\0".utf8) + [0, 1] + Array("MM".utf8) + [0, 3]))
        let identifier = Array(AppleNote.identifier.utf8)
        #expect(result.firstRange(of: identifier) == picture.firstRange(of: identifier))
        #expect(try edits(picture).removed.contains("the camera maker's own data"))

        let key = box("mdta", Array("com.apple.quicktime.content.identifier".utf8))
        let item = box("\0\0\0\u{1}", box("data", [0, 0, 0, 1, 0, 0, 0, 0] + identifier))
        let handler = box("hdlr", [UInt8](repeating: 0, count: 8) + Array("mdta".utf8) + [0, 0, 0, 0])
        let meta = box("meta", handler + box("keys", [0, 0, 0, 0, 0, 0, 0, 1] + key) + box("ilst", item))
        let video = box("ftyp", Array("qt  \0\0\0\0qt  ".utf8)) + box("moov", meta)
        #expect(Array(try MetadataPolicy.withoutLocation.applied(to: Data(video))) == video)
    }

    @Test func `a note of Apple's that is damaged goes`() throws {
        for note in [Array(AppleNote.bytes[..<20]), Array(AppleNote.bytes[..<14]) + [0xFF, 0xFF, 1, 2, 3]] {
            let picture = JPEG.file(exif: EXIF(makerNote: note).bytes)
            let result = Array(try MetadataPolicy.withoutLocation.applied(to: Data(picture)))
            #expect(PlantedFile.secrets(in: result) == [])
            #expect(Array(try MetadataPolicy.withoutLocation.applied(to: Data(result))) == result)
        }
    }

    // MARK: - What is named

    private static func png(_ chunks: [UInt8]..., end: [UInt8] = []) -> [UInt8] {
        PNG.signature + PNG.chunk("IHDR", [1, 2, 3]) + chunks.flatMap(\.self) + PNG.chunk("IDAT", [4])
            + PNG.chunk("IEND", []) + end
    }

    private static func xmp(_ attributes: String) -> [UInt8] {
        PNG.chunk("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0<a x:CreatorTool='f-spot' \(attributes)/>".utf8))
    }

    private static func jpeg(gps tags: [Int]) -> [UInt8] {
        let exif = EXIF()
        func main(_ offset: Int) -> [UInt8] { exif.directory([exif.long(0x8825, offset)], at: 8) }
        let gps = exif.directory(tags.map { exif.short($0, 1) }, at: 8 + main(0).count)
        return JPEG.segment(0xE1, JPEG.exifMark + exif.header + main(8 + main(0).count) + gps)
    }

    /// A file, and what it loses.
    static let named: [(bytes: [UInt8], names: [String])] = [
        (picture, []), (picture + [UInt8](repeating: 0, count: 500), []),
        (picture + Samsung.trailer([Samsung.time]), []),
        (picture + Array("other".utf8), ["the data after its end"]), (picture + picture, []),
        (picture + Samsung.trailer([Samsung.country]), ["names of places"]),
        (picture[..<2] + JPEG.segment(0xEF, [0, 0]) + picture[2...], []),
        (picture[..<2] + JPEG.segment(0xE9, Array("Vendor".utf8)) + picture[2...], ["data in unknown formats"]),
        (picture[..<2] + jpeg(gps: [0, 2, 4]) + picture[2...], ["its position"]),
        (picture[..<2] + jpeg(gps: [0, 7, 29]) + picture[2...], ["other metadata"]),
        (png(), []), (png(end: [0, 0, 0]), []), (png(end: [1]), ["the data after its end"]), (png(xmp("")), []),
        (png(xmp("exif:GPSLatitude='1'")), ["its position"]), (png(xmp("photoshop:City='Jeju'")), ["names of places"]),
        (png(xmp("aux:OwnerName='Kim' aux:SerialNumber='1'")), ["names of persons or devices", "serial numbers"]),
        (png(PNG.chunk("tEXt", Array("Author\0Kim".utf8))), ["names of persons or devices"]),
        // These have a box in an unknown format.
        (Movie.file(withTrack: "sbtl", "a person"), ["data in unknown formats"]),
        (Movie.file(withTrack: "camm", "12345"), ["data in unknown formats"]),
        (Movie.file(withTrack: "gpmd", "GPS5 1"), ["its position", "data in unknown formats"]),
        (box("ftyp", Array("isom\0\0\0\0isom".utf8)) + box("free", [0, 0, 0]), []),
        (box("ftyp", Array("isom\0\0\0\0isom".utf8)) + box("free", [1]), ["unused bytes"]),
    ]

    @Test(arguments: named.indices)
    func `what was removed is named, and nothing where no byte changes`(index: Int) throws {
        let (bytes, names) = Self.named[index]
        let edits = try edits(bytes)
        #expect(edits.removed == names)
        #expect(edits.isEmpty == names.isEmpty)
    }
}
