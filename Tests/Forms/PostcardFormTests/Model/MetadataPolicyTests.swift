import Foundation
import PostcardForm
import PostcardPictureFormats
import PostcardTestSupport
import Testing

extension PlantedFile: CustomTestStringConvertible {
    var testDescription: String { name }
}

@Suite struct MetadataPolicyTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test(arguments: PlantedFile.all, [MetadataPolicy.withoutLocation, .none])
    func `what is removed is gone, and the length, the pixels and the structure stay`(
        file: PlantedFile, policy: MetadataPolicy
    ) throws {
        #expect(!PlantedFile.secrets(in: file.bytes).isEmpty)
        let result = Array(try policy.applied(to: Data(file.bytes)))
        #expect(PlantedFile.secrets(in: result) == [])
        #expect(result.count == file.bytes.count)
        let place = try #require(file.bytes.firstRange(of: file.pixels))
        #expect(Array(result[place]) == file.pixels)
        #expect(PlantedFile.has(result, "PROFILE") == PlantedFile.has(file.bytes, "PROFILE"))
        #expect(PlantedFile.has(result, "KEPT") == (policy == .withoutLocation))
        // It is understood again, and there is nothing left to remove.
        #expect(Array(try policy.applied(to: Data(result))) == result)
        #expect(Array(try MetadataPolicy.none.applied(to: Data(result))).count == result.count)
        if result.starts(with: PNG.signature) { #expect(PNG.chunks(of: result) != nil) }
    }

    @Test(arguments: ["little", "big"]) func `the orientation stays when everything else goes`(order: String) throws {
        let exif = EXIF(isLittleEndian: order == "little")
        let result = Array(try MetadataPolicy.none.applied(to: Data(JPEG.file(exif: exif.bytes))))
        let directory = exif.header + exif.directory([exif.short(0x0112, 6)], at: 8)
        let place = try #require(result.firstRange(of: JPEG.exifMark + directory))
        let rest = result[place.upperBound..<(place.lowerBound + 6 + exif.bytes.count)]
        #expect(rest.allSatisfy { $0 == 0 })
    }

    @Test func `what is kept of EXIF is where it was, in directories without the entries that went`() throws {
        let exif = EXIF(thumbnail: nil)
        let file = JPEG.file(exif: exif.bytes)
        let result = Array(try MetadataPolicy.withoutLocation.applied(to: Data(file)))
        for text in ["KEPT maker", "KEPT copyright", "KEPT lens", "KEPT comment"] {
            #expect(result.firstRange(of: Array(text.utf8)) == file.firstRange(of: Array(text.utf8)), "\(text)")
        }
        let start = try #require(result.firstRange(of: JPEG.exifMark)).upperBound
        #expect(Array(result[(start + 8)..<(start + 10)]) == [5, 0])
        #expect(TIFFBlock(Array(result[start...]))?.locationEntry == nil)
        #expect(TIFFBlock(exif.bytes)?.locationEntry != nil)
    }

    @Test func `a file without metadata is sent byte for byte`() throws {
        let files = [
            [0xFF, 0xD8] + JPEG.picture() + JPEG.end,
            PNG.signature + PNG.chunk("IHDR", [1, 2, 3]) + PNG.chunk("IDAT", [4]) + PNG.chunk("IEND", []),
            Array("BM".utf8) + [UInt8](repeating: 0, count: 60), [],
        ]
        for file in files {
            #expect(Array(try MetadataPolicy.withoutLocation.applied(to: Data(file))) == file)
            #expect(Array(try MetadataPolicy.none.applied(to: Data(file))) == file)
        }
        #expect(Array(try MetadataPolicy.asIs.applied(to: Data(JPEG.file()))) == JPEG.file())
    }

    @Test(arguments: [MetadataPolicy.withoutLocation, .none])
    func `bytes between the segments of a JPEG go, and pixels behind bytes that fill stay`(
        policy: MetadataPolicy
    ) throws {
        let pixels: [UInt8] = [1, 0xFF, 0, 2, 0xFF, 0xD3, 0xFF, 0xFF, 0, 3]
        func file(_ stray: [UInt8]) -> [UInt8] {
            let start = [0xFF, 0xD8] + JPEG.segment(0xE0, Array("JFIF\0".utf8)) + stray
            return start + [0xFF, 0xFF, 0xFF, 0, 0xFF, 0xD0] + JPEG.picture(pixels) + JPEG.end + Array("SECRET".utf8)
        }
        let zeros = [UInt8](repeating: 0, count: 6)
        let result = Array(try policy.applied(to: Data(file(Array("SECRET".utf8)))))
        #expect(result == file(zeros).dropLast(6) + zeros)
        #expect(Array(try policy.applied(to: Data(result))) == result)
    }

    @Test func `nothing that is not pixels or sound stays with the policy none`() throws {
        let files = [
            // Nothing in the first picture announces the second one.
            [0xFF, 0xD8] + JPEG.picture() + JPEG.end + JPEG.file(),
            [0xFF, 0xD8] + JPEG.picture() + JPEG.segment(0xE1, JPEG.exifMark + EXIF().bytes) + JPEG.end,
            Movie.file(withTrack: "data", "SECRET"), Movie.file(withTrack: "sbtl", "SECRET words"),
            Movie.file(withTrack: "tmcd", "SECRET"), Movie.file(withTrack: "clcp", "SECRET"),
        ]
        for file in files {
            #expect(!PlantedFile.secrets(in: file).isEmpty)
            let result = Array(try MetadataPolicy.none.applied(to: Data(file)))
            #expect(PlantedFile.secrets(in: result) == [])
            #expect(result.count == file.count)
        }
        for type in ["vide", "soun"] {
            let file = Movie.file(withTrack: type, "KEPT")
            #expect(PlantedFile.has(Array(try MetadataPolicy.none.applied(to: Data(file))), "KEPT"))
        }
        // Subtitles that say no position.
        let words = Movie.file(withTrack: "sbtl", "KEPT words")
        #expect(PlantedFile.has(Array(try MetadataPolicy.withoutLocation.applied(to: Data(words))), "KEPT"))
    }

    // MARK: - While it is sent

    private func form(_ file: URL, _ policy: MetadataPolicy) throws -> MultipartForm {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append("초코", named: "name")
        form.append(fileAt: file, named: "picture", metadata: policy)
        return form
    }

    @Test(arguments: PlantedFile.all)
    func `a file is overwritten while it is sent, in pieces of any size and from any offset`(
        file: PlantedFile
    ) throws {
        let url = try folder.file("picture", file.bytes)
        let layout = try form(url, .withoutLocation).layout()
        let body = try layout.reader().readAll(by: 1 << 20)
        #expect(layout.contentLength == Int64(body.count))
        let expected = Array(try MetadataPolicy.withoutLocation.applied(to: Data(file.bytes)))
        #expect(body.firstRange(of: expected) != nil)
        #expect(Array(try Data(contentsOf: url)) == file.bytes)
        for size in [1, 2, 7, 64, 1000, 4096] { #expect(try layout.reader().readAll(by: size) == body) }
        for offset in stride(from: 0, through: body.count, by: 13) {
            let reader = try layout.reader(from: Int64(offset))
            #expect(try reader.readAll(by: 997) == Array(body[offset...]))
        }
    }

    @Test(arguments: PlantedFile.all)
    func `edits are in order, apart from one another and inside of the file, and the same cut anywhere`(
        file: PlantedFile
    ) throws {
        let edits = try MetadataPolicy.withoutLocation.edits(ofLength: Int64(file.bytes.count)) { offset, buffer in
            // As few bytes at a time as a slow file system gives.
            let rest = file.bytes[Int(offset)...].prefix(min(buffer.count, 500))
            buffer.copyBytes(from: rest)
            return rest.count
        }
        let ranges = edits.ranges
        #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound })
        #expect(ranges.allSatisfy { !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= Int64(file.bytes.count) })
        let expected = Array(try MetadataPolicy.withoutLocation.applied(to: Data(file.bytes)))
        for cut in stride(from: 0, through: file.bytes.count, by: 3) {
            var halves = (Array(file.bytes[..<cut]), Array(file.bytes[cut...]))
            halves.0.withUnsafeMutableBytes { edits.apply(to: $0, at: 0) }
            halves.1.withUnsafeMutableBytes { edits.apply(to: $0, at: Int64(cut)) }
            #expect(halves.0 + halves.1 == expected)
        }
    }

    @Test func `pixels are not read to find what has to go`() throws {
        let file = try folder.sparseFile("film.mp4", size: 6 << 30)
        let handle = try FileHandle(forUpdating: file)
        let movie = box("ftyp", Array("isom\0\0\0\0isom".utf8))
        // A box that is longer than 4 GiB says so in eight bytes behind its type.
        let data = [0, 0, 0, 1] + Array("mdat".utf8) + (5 << 30).bytes(8)
        try handle.write(contentsOf: Data(movie + data))
        let place = UInt64(movie.count + 5 << 30)
        try handle.seek(toOffset: place)
        let end = box("moov", box("udta", box("\u{A9}xyz", Array("\0\u{5}\u{15}\u{7}SECRET".utf8))))
        try handle.write(contentsOf: Data(end))
        try handle.truncate(atOffset: place + UInt64(end.count))
        try handle.close()

        let layout = try form(file, .withoutLocation).layout()
        let reader = try layout.reader(from: (layout.contentLength ?? 0) - 60)
        let body = try reader.readAll()
        #expect(PlantedFile.has(body, "free") && !PlantedFile.has(body, "SECRET"))
    }

    @Test func `bytes in memory are treated as files are`() throws {
        var form = MultipartForm(boundary: try Boundary("XX"))
        let data = Data(JPEG.file())
        form.append(FormPart(name: "a", filename: "a", content: .bytes(data), metadata: .withoutLocation))
        #expect(PlantedFile.secrets(in: try form.layout().reader().readAll(by: 999)) == [])
    }
}
