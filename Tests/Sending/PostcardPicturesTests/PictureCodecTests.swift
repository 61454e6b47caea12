import Foundation
import PostcardForm
import PostcardPictureFormats
import PostcardTestSupport
import Testing

@testable import PostcardPictures

/// With the codecs of this build, if it has any.
@Suite(.enabled(if: PictureFitter.isAvailable)) struct PictureCodecTests {
    private let wantsJPEG = PictureLimit(maximumBytes: 100_000, maximumEdge: 5000, acceptedTypes: [])

    private func fitted(_ bytes: [UInt8], to limit: PictureLimit) async throws -> (FittedPicture, [UInt8]) {
        let picture = try await PictureFitter().fit(Data(bytes), to: limit)
        guard case .bytes(let data) = picture.content else { return (picture, []) }
        return (picture, Array(data))
    }

    /// A JPEG of the four quarters.
    private func jpeg(width: Int, height: Int, orientation: Int? = nil) async throws -> [UInt8] {
        let pixels = TestPicture.quarterPixels(width: width, height: height)
        var (_, bytes) = try await fitted(TestPicture.png(width: width, height: height, samples: pixels), to: wantsJPEG)
        if let orientation { bytes.insert(contentsOf: TestPicture.exifSegment(orientation: orientation), at: 2) }
        return bytes
    }

    private func code(_ bytes: [UInt8], _ limit: PictureLimit) async -> PictureFitError.Code? {
        do {
            _ = try await fitted(bytes, to: limit)
            return nil
        } catch {
            return (error as? PictureFitError)?.code
        }
    }

    @Test func `a PNG becomes a JPEG of the same size if the receiver wants JPEG`() async throws {
        let pixels = TestPicture.quarterPixels(width: 30, height: 20)
        let png = TestPicture.png(width: 30, height: 20, samples: pixels)
        let (picture, bytes) = try await fitted(png, to: wantsJPEG)
        #expect(picture.size == PictureSize(width: 30, height: 20) && picture.quality == 82)
        #expect(bytes.starts(with: [0xFF, 0xD8, 0xFF]) && bytes.count == picture.bytes)
        #expect(try PictureHead(reading: PictureBytes(Data(bytes))).storedSize == picture.size)
        let (original, same) = try await fitted(png, to: PictureLimit(maximumBytes: 100_000))
        #expect(original.isOriginal && same == png)
    }

    /// The quality is read from the JPEG itself, so that ImageIO's numbers are not taken for libjpeg's.
    @Test(arguments: [2, 0])
    func `the quality that is promised is the one that the tables show`(colorType: Int) async throws {
        var random = SeededGenerator(seed: 12)
        let channels = colorType == 2 ? 3 : 1
        let samples = (0..<(300 * 200 * channels)).map { _ in UInt8.random(in: 90...170, using: &random) }
        let png = TestPicture.png(width: 300, height: 200, samples: samples, colorType: colorType)
        for limit: Int64 in [100_000, 40_000, 30_000, 20_000, 17_000] {
            let fitting = PictureLimit(maximumBytes: limit, acceptedTypes: [], onFailure: .sendOriginal)
            let (picture, bytes) = try await fitted(png, to: fitting)
            guard !picture.isOriginal else { continue }
            #expect(JPEGQuality.estimate(of: bytes) == picture.quality)
            #expect((50...84).contains(picture.quality ?? 0))
        }
    }

    @Test func `one pixel is enough`() async throws {
        for colorType in [0, 2, 4, 6] {
            let channels = [0: 1, 2: 3, 4: 2, 6: 4][colorType] ?? 1
            let samples = [UInt8](repeating: 200, count: channels)
            let png = TestPicture.png(width: 1, height: 1, samples: samples, colorType: colorType)
            let (picture, _) = try await fitted(png, to: wantsJPEG)
            #expect(picture.size == PictureSize(width: 1, height: 1))
        }
    }

    @Test func `noise is scaled until it fits`() async throws {
        var random = SeededGenerator(seed: 5)
        let samples = (0..<(900 * 700 * 3)).map { _ in UInt8.random(in: 0...255, using: &random) }
        let png = TestPicture.png(width: 900, height: 700, samples: samples)
        for limit: Int64 in [150_000, 120_000] {
            let (picture, bytes) = try await fitted(png, to: PictureLimit(maximumBytes: limit))
            #expect(bytes.count <= limit && (50...82).contains(picture.quality ?? 0) && picture.encodings <= 6)
            #expect([900, 800, 640].contains(picture.size?.longerEdge))
        }
        #expect(await code(png, PictureLimit(maximumBytes: 20_000)) == .cannotFit)
    }

    @Test func `a bomb is refused by what it claims`() async throws {
        let png = TestPicture.png(width: 60_000, height: 60_000, samples: [])
        #expect(await code(png, wantsJPEG) == .tooManyPixels)
        #expect(await code(TestPicture.jpegHead(width: 65_535, height: 65_535), wantsJPEG) == .tooManyPixels)
    }

    @Test func `pictures that end too early are damaged`() async throws {
        let whole = try await jpeg(width: 200, height: 160)
        let small = PictureLimit(maximumBytes: 100_000, maximumEdge: 50)
        #expect(await code(whole, small) == nil)
        for count in [whole.count - 2, whole.count - 40, whole.count / 2] {
            #expect(await code(Array(whole.prefix(count)), small) == .damaged, "\(count) of \(whole.count) bytes")
        }
        let pixels = TestPicture.quarterPixels(width: 90, height: 90)
        let png = TestPicture.png(width: 90, height: 90, samples: pixels)
        #expect(await code(Array(png.prefix(png.count / 2)), small) == .damaged)
        let heic = Fixtures.heic[1] ?? []
        #expect(await code(Array(heic.prefix(heic.count - 60)), small) == .damaged)
        #expect(await code(Array(Fixtures.losslessWebP.prefix(60)), PictureLimit(maximumBytes: 50)) == .damaged)
    }

    @Test func `animated pictures are refused, and pass if they fit`() async throws {
        #expect(await code(Fixtures.animatedWebP, PictureLimit(maximumBytes: 100)) == .animated)
        #expect(await code(Fixtures.animatedGIF, wantsJPEG) == .animated)
        #expect(await code(Fixtures.animatedGIF, PictureLimit(maximumBytes: 1000)) == nil)
    }

    @Test func `a color profile is kept, and metadata is not`() async throws {
        var profile = [UInt8](repeating: 7, count: 400)
        profile.replaceSubrange(0..<4, with: TestPicture.big(400, 4))
        profile.replaceSubrange(12..<24, with: "mntrRGB XYZ ".utf8)
        profile.replaceSubrange(36..<40, with: "acsp".utf8)
        var photo = try await jpeg(width: 120, height: 90)
        let segment = Array("ICC_PROFILE\0".utf8) + [1, 1] + profile
        let place = [0xFF, 0xE1] + TestPicture.big(13, 2) + Array("Jeju at 33N".utf8)
        photo.insert(contentsOf: [0xFF, 0xE2] + TestPicture.big(segment.count + 2, 2) + segment + place, at: 2)
        let (_, bytes) = try await fitted(photo, to: PictureLimit(maximumBytes: 100_000, maximumEdge: 100))
        #expect(Data(bytes).range(of: Data("Jeju".utf8)) == nil)
        #if !canImport(ImageIO)
        #expect(Data(bytes).range(of: Data(profile)) != nil)
        #endif
    }

    @Test func `cancelling ends a task that has begun`() async throws {
        let photo = Data(try await jpeg(width: 200, height: 160))
        let fitting = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await PictureFitter().fit(photo, to: PictureLimit(maximumBytes: 100_000, maximumEdge: 50))
        }
        await #expect(throws: CancellationError.self) { try await fitting.value }
    }

    @Test(arguments: [(4001, 17, 100), (17, 4001, 300), (803, 401, 100), (1000, 3, 90)])
    func `a picture that its decoder shrinks keeps its shape`(width: Int, height: Int, edge: Int) async throws {
        let photo = try await jpeg(width: width, height: height)
        let (picture, _) = try await fitted(photo, to: PictureLimit(maximumBytes: 100_000, maximumEdge: edge))
        #expect(picture.size == PictureSize(width: width, height: height).scaled(toEdge: edge))
    }

    #if !canImport(ImageIO)
    // ImageIO's pixels are not at hand without CoreGraphics. These look into those of the libraries.

    /// The colors in the middle of the four quarters.
    private func quarters(_ bytes: [UInt8], edge: Int = 32) throws -> (size: PictureSize, colors: [[UInt8]]) {
        let source = PictureSource.bytes(Data(bytes))
        var head = try PictureHead(reading: source.reader())
        if head.storedSize == nil { head = try LibraryCodec().complete(head, of: source) }
        let opened = try LibraryCodec().open(source, head: head, edge: edge, maximumBytes: 1_000_000)
        let pixels = try #require(opened as? LibraryPicture).original
        let (width, height) = (pixels.size.width, pixels.size.height)
        let colors = [(1, 1), (3, 1), (1, 3), (3, 3)].map { x, y in
            let place = ((y * height / 4) * width + x * width / 4) * pixels.channels
            return Array(pixels.bytes[place..<(place + pixels.channels)])
        }
        return (pixels.size, colors)
    }

    private func isNear(_ found: [[UInt8]], _ expected: [[UInt8]], within tolerance: Int = 12) -> Bool {
        zip(found, expected).allSatisfy { zip($0, $1).allSatisfy { abs(Int($0) - Int($1)) <= tolerance } }
    }

    /// Which quarter of the stored picture is in each quarter of the upright one.
    private static let order = [
        1: [0, 1, 2, 3], 2: [1, 0, 3, 2], 3: [3, 2, 1, 0], 4: [2, 3, 0, 1], 5: [0, 2, 1, 3], 6: [2, 0, 3, 1],
        7: [3, 1, 2, 0], 8: [1, 3, 0, 2],
    ]

    @Test(arguments: 1...100) func `libjpeg's tables show the quality that it was asked for`(quality: Int) throws {
        for channels in [1, 3] {
            let samples = [UInt8](repeating: 99, count: 64 * channels)
            let pixels = PicturePixels(size: PictureSize(width: 8, height: 8), channels: channels, bytes: samples)
            var picture = LibraryPicture(original: pixels, profile: [])
            let encoded = try picture.encode(PictureFit.Encoding(edge: 8, quality: quality))
            #expect(JPEGQuality.estimate(of: encoded.bytes) == quality)
        }
    }

    @Test(arguments: 1...8)
    func `pixels are turned upright by EXIF`(orientation: Int) async throws {
        let found = try quarters(await jpeg(width: 64, height: 48, orientation: orientation))
        let expected = (Self.order[orientation] ?? []).map { TestPicture.quarters[$0] }
        #expect(isNear(found.colors, expected))
        #expect(found.size == (orientation < 5 ? PictureSize(width: 32, height: 24) : .init(width: 24, height: 32)))
        let same = try quarters(await jpeg(width: 64, height: 48, orientation: orientation), edge: 64)
        #expect(isNear(same.colors, expected))
    }

    @Test(arguments: 1...8)
    func `pixels are turned upright by the boxes of HEIC`(orientation: Int) throws {
        let found = try quarters(Fixtures.heic[orientation] ?? [])
        #expect(isNear(found.colors, (Self.order[orientation] ?? []).map { TestPicture.quarters[$0] }))
        #expect(found.size == (orientation < 5 ? PictureSize(width: 32, height: 24) : .init(width: 24, height: 32)))
    }

    @Test(.enabled(if: LibraryCodec.readsTIFF, "The headers of libtiff are not installed"), arguments: 1...8)
    func `pixels are turned upright by the orientation of a TIFF`(orientation: Int) throws {
        let samples = TestPicture.quarterPixels(width: 64, height: 48)
        let tiff = TestPicture.tiff(width: 64, height: 48, samples: samples, orientation: orientation)
        let found = try quarters(tiff)
        #expect(isNear(found.colors, (Self.order[orientation] ?? []).map { TestPicture.quarters[$0] }))
        #expect(found.size == (orientation < 5 ? PictureSize(width: 32, height: 24) : .init(width: 24, height: 32)))
    }

    /// What ImageMagick writes, by its arguments.
    private static let kindsOfTIFF = [
        "-compress None", "-compress LZW", "-compress Zip -depth 16", "-compress JPEG -quality 95", "-compress RLE",
        "-define tiff:tile-geometry=32x32", "-define tiff:rows-per-strip=150", "-type Palette", "-endian MSB",
        "-interlace Plane",
    ]

    @Test(.enabled(if: LibraryCodec.readsTIFF, "The headers of libtiff are not installed"))
    func `a TIFF has its pixels however it is compressed and divided`() async throws {
        let folder = try TemporaryFolder()
        let samples = TestPicture.quarterPixels(width: 200, height: 150)
        let png = try folder.file("a.png", TestPicture.png(width: 200, height: 150, samples: samples))
        for (number, kind) in Self.kindsOfTIFF.enumerated() {
            let tiff = folder.url.appending(path: "\(number).tif")
            let made = try await Program.run(
                "convert", [png.path] + kind.split(separator: " ").map(String.init) + [tiff.path])
            try #require(made.status == 0, "\(made.messages)")
            let found = try quarters(Array(try Data(contentsOf: tiff)))
            #expect(isNear(found.colors, TestPicture.quarters), "\(kind): \(found.colors)")
            #expect(found.size == PictureSize(width: 32, height: 24))
        }
    }

    @Test(.enabled(if: LibraryCodec.readsTIFF, "The headers of libtiff are not installed"))
    func `a TIFF of several pages passes only as it is, and a damaged one is named`() async {
        let samples = TestPicture.quarterPixels(width: 30, height: 20)
        let tiff = TestPicture.tiff(width: 30, height: 20, samples: samples)
        #expect(await code(tiff, wantsJPEG) == nil)
        #expect(
            await code(TestPicture.tiff(width: 30, height: 20, samples: samples, pages: 2), wantsJPEG) == .animated)
        #expect(await code(Array(tiff.prefix(tiff.count - 50)), wantsJPEG) == .damaged)
        let preview = TestPicture.tiff(width: 30, height: 20, samples: samples, kind: 1)
        #expect(await code(preview, wantsJPEG) == .unsupported)
        #expect(
            await code(TestPicture.tiff(width: 60_000, height: 60_000, samples: []), wantsJPEG) == .tooManyPixels)
    }

    @Test(arguments: [
        ("CMYK", Fixtures.cmykJPEG), ("progressive", Fixtures.progressiveJPEG), ("interlaced", Fixtures.interlacedPNG),
        ("WebP", Fixtures.lossyWebP), ("lossless WebP", Fixtures.losslessWebP),
    ])
    func `other kinds of files have the same pixels`(name: String, bytes: [UInt8]) throws {
        let found = try quarters(bytes)
        #expect(isNear(found.colors, TestPicture.quarters), "\(name): \(found.colors)")
        #expect(found.size == PictureSize(width: 32, height: 24))
    }

    @Test func `what is transparent becomes white`() throws {
        let clear = try quarters(Fixtures.clearWebP)
        #expect(isNear(clear.colors, Array(repeating: [255, 255, 255], count: 4), within: 1))
        // Half transparent black.
        let samples = (0..<64).flatMap { _ in [0, 0, 0, 128] as [UInt8] }
        let png = TestPicture.png(width: 8, height: 8, samples: samples, colorType: 6)
        #expect(isNear(try quarters(png).colors, Array(repeating: [127, 127, 127], count: 4), within: 1))
    }

    @Test func `16 bits become 8`() throws {
        let samples = TestPicture.quarterPixels(width: 16, height: 16).flatMap { [$0, 0x80 as UInt8] }
        let png = TestPicture.png(width: 16, height: 16, samples: samples, depth: 16)
        #expect(isNear(try quarters(png).colors, TestPicture.quarters, within: 2))
    }

    @Test func `what the libraries do not read is named`() async {
        #expect(await code(Fixtures.stillGIF, wantsJPEG) == .unsupported)
        #expect(
            await code(Array("BM".utf8) + [9, 0, 0, 0, 0, 0, 0, 0] + Array(repeating: 1, count: 40), wantsJPEG)
                == .unsupported)
        #expect(await code(Array("a text".utf8), wantsJPEG) == .unsupported)
    }

    /// The profile makes the encoder replace its buffer before it asks for the first time whether to go on.
    @Test func `an encoding that is cancelled frees its buffer once`() async throws {
        let samples = TestPicture.quarterPixels(width: 64, height: 48)
        let encoding = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            let pixels = PicturePixels(size: PictureSize(width: 64, height: 48), channels: 3, bytes: samples)
            var picture = LibraryPicture(original: pixels, profile: Array(repeating: 7, count: 20_000))
            return try picture.encode(PictureFit.Encoding(edge: 64, quality: 82)).bytes
        }
        await #expect(throws: CancellationError.self) { try await encoding.value }
    }

    /// The most memory that this process has had so far, in MiB; see proc_pid_status(5).
    private func peakMemory() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        return try #require(line.split(separator: " ").compactMap { Int($0) }.first) >> 10
    }

    /// A text of 4 MB in 25 KB (RFC 1950 and 1951): one letter, and then as often as needed 258 copies of it.
    @Test func `the texts of a PNG are not inflated`() throws {
        var bits: [UInt8] = [1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1]
        for _ in 0..<15_500 { bits += [1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0] }
        bits += [UInt8](repeating: 0, count: 7 + 8)
        let deflated = stride(from: 0, to: bits.count - 7, by: 8).map { start in
            (0..<8).reduce(0 as UInt8) { $0 | bits[start + $1] << $1 }
        }
        // The checksum of as many letters "a".
        let count = 1 + 15_500 * 258
        let low = (1 + 97 * count) % 65_521
        let high = (count + 97 * (count * (count + 1) / 2 % 65_521)) % 65_521
        let stream = [0x78, 0x01] + deflated + TestPicture.big(high << 16 | low, 4)
        let text = TestPicture.chunk("zTXt", Array("Comment".utf8) + [0, 0] + stream)
        let texts = Array(repeatElement(text, count: 600).joined())
        let samples = TestPicture.quarterPixels(width: 16, height: 16)
        let png = TestPicture.png(width: 16, height: 16, samples: samples, chunks: texts)
        let before = try peakMemory()
        #expect(isNear(try quarters(png).colors, TestPicture.quarters, within: 2))
        // Inflated, they have 2.4 GB. Other tests run meanwhile.
        #expect(try peakMemory() - before < 1500)
    }

    /// Any bytes give an error or a picture, and never a crash.
    @Test func `changed bytes do no harm`() async throws {
        let jpeg = try await jpeg(width: 60, height: 44, orientation: 6)
        let png = TestPicture.png(
            width: 20, height: 14, samples: TestPicture.quarterPixels(width: 20, height: 14))
        let whole = [
            jpeg, png, Fixtures.progressiveJPEG, Fixtures.cmykJPEG, Fixtures.lossyWebP, Fixtures.losslessWebP,
            Fixtures.clearWebP, Fixtures.interlacedPNG, Fixtures.heic[5] ?? [],
            TestPicture.tiff(width: 20, height: 14, samples: TestPicture.quarterPixels(width: 20, height: 14)),
        ]
        let limit = PictureLimit(maximumBytes: 50_000, maximumEdge: 16, acceptedTypes: [], maximumPixels: 100_000)
        var random = SeededGenerator(seed: 23)
        for bytes in whole {
            for _ in 0..<200 {
                var changed = bytes
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    changed[Int.random(in: changed.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                do {
                    let (picture, _) = try await fitted(changed, to: limit)
                    #expect((picture.size?.longerEdge ?? 0) <= 16)
                } catch {
                    #expect(error is PictureFitError, "\(error)")
                }
            }
        }
    }
    #endif
}
