import Foundation
import PostcardForm
import PostcardPictureFormats
import PostcardTestSupport
import Testing

@Suite struct TIFFMetadataTests {
    private static let exif = EXIF()

    /// A file with one directory behind its pixels.
    private static func file(_ pixels: [UInt8], _ entries: [EXIF.Entry], next: Int = 0) -> [UInt8] {
        let body = pixels + [UInt8](repeating: 0, count: pixels.count % 2)
        return Array("II*\0".utf8) + exif.number(8 + body.count, 4) + body
            + exif.directory(entries.sorted { $0.tag < $1.tag }, at: 8 + body.count, next: next)
    }

    /// One row of pixels, with further entries.
    private static func row(_ further: [EXIF.Entry] = [], without tags: Set<Int> = []) -> [UInt8] {
        let layout = TIFF.layout(exif, 8..<(8 + PlantedFile.pixels.count)).filter { !tags.contains($0.tag) }
        return file(PlantedFile.pixels, layout + further)
    }

    private func withoutLocation(_ bytes: [UInt8]) throws -> [UInt8] {
        Array(try MetadataPolicy.withoutLocation.applied(to: Data(bytes)))
    }

    @Test(arguments: TIFF.planted)
    func `the directory with the position is gone, and the others are where they were`(file: PlantedFile) throws {
        let result = try withoutLocation(file.bytes)
        #expect(TIFFBlock(file.bytes)?.locationEntry != nil)
        let block = try #require(TIFFBlock(result))
        #expect(block.locationEntry == nil && block.orientation == 6)
        for text in ["KEPT description", "KEPT comment", "PROFILE"] {
            #expect(result.firstRange(of: Array(text.utf8)) == file.bytes.firstRange(of: Array(text.utf8)), "\(text)")
        }
    }

    @Test func `a row per strip is read to the last strip, and no strip is overwritten`() throws {
        let count = 20_000
        let pixels = (0..<(2 * count)).map { UInt8(truncatingIfNeeded: $0 * 7 + 1) }
        // From the bottom to the top, so that no strip follows the one before it.
        let strips = (0..<count).reversed().flatMap { Self.exif.number(8 + 2 * $0, 4) }
        let entries = [
            Self.exif.long(0x0100, 2), Self.exif.long(0x0101, count), Self.exif.short(0x0102, 8),
            Self.exif.short(0x0103, 1), Self.exif.short(0x0106, 1),
            EXIF.Entry(tag: 0x0111, type: 4, count: count, value: strips),
            EXIF.Entry(
                tag: 0x0117, type: 3, count: count, value: (0..<count).flatMap { _ in Self.exif.number(2, 2) }),
            Self.exif.text(0x013B, "SECRET artist"),
        ]
        let file = Self.file(pixels, entries)
        let result = try withoutLocation(file)
        #expect(PlantedFile.secrets(in: result) == [])
        #expect(Array(result[8..<(8 + pixels.count)]) == pixels)
        let start = try #require(file.firstRange(of: strips))
        #expect(Array(result[start]) == strips)
    }

    @Test func `bytes that nothing names are overwritten if they are few, and else are a private format's`() throws {
        let start = Self.row([Self.exif.text(0x013B, "SECRET artist")])
        for (count, stays) in [(64 << 10, false), (64 << 10 + 1, true)] {
            let result = try withoutLocation(start + [UInt8](repeating: 7, count: count))
            #expect(result.last == (stays ? 7 : 0), "\(count) bytes")
            // What a removed entry names is overwritten whatever follows it.
            #expect(PlantedFile.secrets(in: result) == [])
        }
    }

    @Test func `a large value of a removed entry is overwritten, and what its directory names too`() throws {
        let maker = [UInt8](repeating: 9, count: 200_000)
        let camera = EXIF.Entry(tag: 0x927C, type: 7, count: maker.count, value: maker)
        let place = 8 + PlantedFile.pixels.count + 1
        let directory = Self.exif.directory([camera], at: place)
        let layout = TIFF.layout(Self.exif, 8..<(8 + PlantedFile.pixels.count)) + [Self.exif.long(0x8769, place)]
        let file = Self.file(PlantedFile.pixels + [0] + directory, layout)
        for policy in [MetadataPolicy.withoutLocation, .none] {
            let result = Array(try policy.applied(to: Data(file)))
            #expect(result.firstRange(of: [9, 9, 9, 9]) == nil)
            #expect(Array(result[8..<(8 + PlantedFile.pixels.count)]) == PlantedFile.pixels)
        }
    }

    @Test func `pages may share their metadata`() throws {
        let xmp = Array(XMP.packet.utf8)
        let base = PlantedFile.pixels + [0] + xmp + [UInt8](repeating: 0, count: xmp.count % 2)
        // The value is at a fixed place, so the entry is written by hand.
        let offset = 8 + PlantedFile.pixels.count + 1
        func directory(at place: Int, next: Int) -> [UInt8] {
            let layout = TIFF.layout(Self.exif, 8..<(8 + PlantedFile.pixels.count))
            let table = Self.exif.directory(layout, at: place, next: next)
            let entry =
                Self.exif.number(0x02BC, 2) + Self.exif.number(1, 2) + Self.exif.number(xmp.count, 4)
                + Self.exif.number(offset, 4)
            let end = 2 + 12 * layout.count
            return Self.exif.number(layout.count + 1, 2) + table[2..<end] + entry + table[end...]
        }
        let first = 8 + base.count
        let second = first + directory(at: first, next: 0).count
        let header = Array("II*\0".utf8) + Self.exif.number(first, 4)
        let file = header + base + directory(at: first, next: second) + directory(at: second, next: 0)
        let result = try withoutLocation(file)
        #expect(PlantedFile.secrets(in: result) == [] && PlantedFile.has(result, "KEPT title"))
    }

    /// Files whose pixels could not be told from what has to go.
    static let refused: [UnreadableMetadataTests.Unreadable] = [
        .init("a BigTIFF", Array("II+\0".utf8) + [8, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0], 0, "BigTIFF"),
        .init("a raw picture of Canon's", Array("II*\0".utf8) + [16, 0, 0, 0] + Array("CR\u{2}\0".utf8), 0, "raw"),
        .init("a raw picture of Nikon's", row([], color: 32803), 0, "raw picture"),
        .init("strips without lengths", row(without: [0x0117]), 8, "where its pixels end"),
        .init("a strip without bytes", row([exif.long(0x0117, 0)], without: [0x0117]), 8, "where its pixels end"),
        .init("offsets of eight bytes", row([strips(type: 16)], without: [0x0111]), 0, "where its pixels end"),
        .init("strips that are too short", row([exif.long(0x0117, 44)], without: [0x0117]), 8, "where its pixels end"),
        .init("JPEG of TIFF 6.0", row([exif.long(0x0207, 8)]), 8, "where its pixels end"),
        .init("a preview that is none", row([exif.long(0x0201, 8), exif.long(0x0202, 9)]), 8, "not a JPEG"),
        .init("a preview of one byte", oneByte, 8, "a JPEG picture was expected"),
        .init("a preview outside", row([exif.long(0x0201, 9999), exif.long(0x0202, 9)]), 9999, "outside"),
        .init("pixels that are a directory", row([exif.long(0x0111, 54)], without: [0x0111]), 54, "overlap"),
        .init("a header alone", Array("II*\0".utf8), 0, "header"),
        .init("a directory behind the end", Array("II*\0".utf8) + [0xFF, 0xFF, 0xFF, 0xFF], 4, "4294967295"),
        .init("a huge directory", Array("II*\0".utf8) + [8, 0, 0, 0, 0xFF, 0xFF], 4, "none fits"),
        .init("a circle of pages", file([], [exif.short(0x0112, 1)], next: 8), 8, "one another"),
        .init("sub-directories in a circle", file([], [exif.long(0x014A, 8)]), 8, "one another"),
        .init("directories in directories", nested(9), 8 + 18 * 7 + 10, "nested too deeply"),
        .init("directories behind the end", file([], [exif.long(0x014A, 1 << 30)]), 18, "none fits"),
    ]

    private static let oneByte = file([0xFF, 0xD8, 0xFF, 0xD9], [exif.long(0x0201, 8), exif.long(0x0202, 1)])

    private static func strips(type: Int) -> EXIF.Entry {
        EXIF.Entry(tag: 0x0111, type: type, count: 1, value: exif.number(8, 4) + exif.number(0, 4))
    }

    private static let header: [UInt8] = Array("II*\0".utf8) + exif.number(8, 4)

    /// Directories, each named by an entry of the one before it.
    private static func nested(_ count: Int, tag: Int = 0x014A) -> [UInt8] {
        (0..<count).reduce(into: header) { file, index in
            file += exif.directory([exif.long(tag, 8 + 18 * (index + 1))], at: 0)
        }
    }

    private static func pages(_ count: Int) -> [UInt8] {
        (0..<count).reduce(into: header) { file, index in
            file += exif.directory([exif.short(0x0112, 1)], at: 0, next: 8 + 18 * (index + 1))
        }
    }

    /// Pages whose strips are all named by one list.
    private static func pagesWithOneList(_ count: Int) -> [UInt8] {
        let strips: [UInt8] = (0..<50_000).flatMap { exif.number(8 + 3 * $0, 4) }
        let list: [UInt8] = exif.number(50_000, 4) + exif.number(8, 4)
        var file: [UInt8] = Array("II*\0".utf8) + exif.number(8 + strips.count, 4) + strips
        for _ in 0..<count {
            file += exif.number(2, 2)
            for tag in [0x0111, 0x0117] { file += exif.number(tag, 2) + exif.number(4, 2) + list }
            file += exif.number(file.count + 4, 4)
        }
        return file
    }

    private static func row(_ further: [EXIF.Entry], color: Int) -> [UInt8] {
        row(further + [exif.short(0x0106, color)], without: [0x0106])
    }

    @Test(arguments: refused)
    func `a file is refused if its pixels are unclear`(file: UnreadableMetadataTests.Unreadable) {
        for policy in [MetadataPolicy.withoutLocation, .none] {
            let failure = #expect(throws: MetadataError.self) { try policy.applied(to: Data(file.bytes)) }
            #expect(failure?.message.contains(file.word) == true, "\(String(describing: failure))")
            #expect(failure?.offset == file.offset, "\(String(describing: failure))")
        }
    }

    @Test func `a value that is not in the file is no error if it is not metadata`() throws {
        let description = EXIF.Entry(tag: 0x010E, type: 2, count: 0xFFFF_FFFF, value: [0, 0, 0, 9])
        let file = Self.row([description])
        #expect(try withoutLocation(file).count == file.count)
    }

    /// Directories that name as much as they can: each file is an error or done soon, and takes little memory.
    static let hostile: [UnreadableMetadataTests.Unreadable] = [
        .init("5,000 pages", pages(5000)),
        .init(
            "60,000 directories of one list",
            file(
                [],
                [
                    EXIF.Entry(
                        tag: 0x014A, type: 4, count: 60_000, value: (0..<60_000).flatMap { exif.number(26 + $0, 4) })
                ])),
        .init("a list of strips that 3,000 pages name", pagesWithOneList(3000)),
        .init("4,000 directories, each in the one before it", nested(4000)),
        .init("4,000 directories in the one with the position", nested(4000, tag: 0x8825)),
        .init("zeros", Array("II*\0".utf8) + [UInt8](repeating: 0, count: 1 << 20)),
    ]

    @Test(arguments: hostile)
    func `a hostile file ends in an error or a result`(file: UnreadableMetadataTests.Unreadable) {
        for policy in [MetadataPolicy.withoutLocation, .none] {
            do {
                #expect(try policy.applied(to: Data(file.bytes)).count == file.bytes.count)
            } catch {
                #expect(error.offset >= 0)
            }
        }
    }

    // MARK: - What another program reads

    /// What exiftool finds of a position, also in embedded pictures and in what it does not know.
    private func positions(in file: URL) async throws -> [String] {
        let ending = try await Program.run("exiftool", ["-ee", "-u", "-U", "-a", "-G1", "-s", file.path])
        return ending.text.split(separator: "\n").map(String.init).filter { line in
            ["GPSL", "GPSPosition", "GPSAlt", "SECRET"].contains { line.contains($0) }
        }
    }

    @Test(arguments: TIFF.planted) func `exiftool finds no position`(file: PlantedFile) async throws {
        let folder = try TemporaryFolder()
        let before = try await positions(in: folder.file("before.tif", file.bytes))
        #expect(before.count > 3, "\(before)")
        let after = try await positions(in: folder.file("after.tif", try withoutLocation(file.bytes)))
        #expect(after == [])
    }
}
