import Foundation
import PostcardForm
import PostcardPictureFormats
import PostcardTestSupport
import Testing

@testable import PostcardPictures

/// Encoders whose numbers are not libjpeg's.
@Suite struct QualityScaleTests {
    /// What a number from 0 to 1 means to an encoder.
    struct Encoder: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let quality: @Sendable (Double) -> Int?

        init(_ about: String, _ quality: @escaping @Sendable (Double) -> Int?) {
            testDescription = about
            self.quality = quality
        }
    }

    static let encoders = [
        Encoder("libjpeg's own scale") { Int(($0 * 100).rounded()) },
        Encoder("one that begins high") { Int(60 + 38 * $0) },
        Encoder("one that is fine at the top only") { Int(100 * $0 * $0 * $0) },
        Encoder("one with steps of 5") { 5 * Int(20 * $0) },
    ]

    @Test(arguments: encoders)
    func `a quality is at least the one asked for, and the least that the encoder has`(encoder: Encoder) throws {
        var scale = QualityScale()
        for quality in PictureFit.qualities {
            let number = scale.number(for: quality, measuring: encoder.quality)
            let all = (0...100).compactMap { encoder.quality(Double($0) / 100) }
            let best = try #require(all.filter { $0 >= quality }.min())
            #expect(encoder.quality(number) == best, "\(quality)")
        }
    }

    @Test func `each number is measured once, and few are`() {
        var scale = QualityScale()
        var measured: [Double] = []
        for quality in [82, 50, 66, 82, 50] {
            _ = scale.number(for: quality) { number in
                measured.append(number)
                return Int(100 * number)
            }
        }
        #expect(Set(measured).count == measured.count && measured.count < 20)
    }

    @Test func `tables that cannot be read leave a hundredth of the quality, and an encoder that never gets there 1`() {
        var (unknown, low) = (QualityScale(), QualityScale())
        #expect(unknown.number(for: 66) { _ in nil } == 0.66)
        #expect(low.number(for: 66) { _ in 40 } == 1)
    }

    // MARK: - The search with such an encoder

    /// The fitter sees qualities as libjpeg counts them; the pictures are as large as their real tables make them.
    private struct OtherCodec: PictureCodec, DecodedPicture {
        let fixedBytes: Int64 = 0
        let encoder: Encoder
        private var scale = QualityScale()

        init(encoder: Encoder) {
            self.encoder = encoder
        }

        func complete(_ head: PictureHead, of source: PictureSource) throws -> PictureHead { head }

        func open(
            _ source: PictureSource, head: PictureHead, edge: Int, maximumBytes: Int64
        ) throws -> any DecodedPicture { self }

        mutating func encode(_ encoding: PictureFit.Encoding) throws -> EncodedPicture {
            let number = scale.number(for: encoding.quality, measuring: encoder.quality)
            let tables = JPEGQuality.tables(quality: max(encoder.quality(number) ?? 1, 1))
            let order = JPEGQuality.zigZag
            let head = FlatJPEG.bytes(
                width: 16, height: 16, luminance: order.map { tables.luminance[$0] },
                chrominance: order.map { tables.chrominance[$0] })
            let step = Double(tables.luminance.reduce(0, +))
            let bytes = head + [UInt8](repeating: 0, count: Int(Double(encoding.edge) * 30_000 / step))
            let size = PictureSize(width: encoding.edge, height: encoding.edge)
            return EncodedPicture(bytes: Data(bytes), size: size)
        }
    }

    @Test(arguments: encoders)
    func `a fitted picture has the quality that its tables show, whatever the encoder was told`(
        encoder: Encoder
    ) async throws {
        let photo = Data(TestPicture.jpegHead(width: 2000, height: 2000, bytes: 200_000))
        let fitter = PictureFitter(codec: OtherCodec(encoder: encoder))
        for limit: Int64 in [60_000, 40_000, 30_000, 20_000] {
            let picture = try await fitter.fit(photo, to: PictureLimit(maximumBytes: limit, maximumEdge: 1999))
            guard case .bytes(let bytes) = picture.content else {
                Issue.record("not bytes")
                return
            }
            let quality = try #require(picture.quality)
            #expect(JPEGQuality.estimate(of: bytes) == quality)
            #expect((50...86).contains(quality) && picture.bytes <= limit)
        }
    }

    // MARK: - Another program's opinion

    /// The default table of mozjpeg's program, before the quality scales it.
    private static let mozjpeg = [
        16, 16, 16, 18, 25, 37, 56, 85, 16, 17, 20, 27, 34, 40, 53, 75, 16, 20, 24, 31, 43, 62, 91, 135, 18, 27, 31, 40,
        53, 74, 106, 156, 25, 34, 43, 53, 69, 94, 131, 189, 37, 40, 62, 74, 94, 124, 169, 238, 56, 53, 91, 106, 131,
        169,
        226, 311, 85, 75, 135, 156, 189, 238, 311, 418,
    ]

    /// Tables of five kinds: libjpeg's, mozjpeg's, those of an encoder for which all steps are more alike, as Apple's are,
    /// flat ones, as some cameras have, and disturbed ones.
    private static func tables(
        _ index: Int, _ random: inout SeededGenerator
    ) -> (luminance: [Int], chrominance: [Int]?) {
        let quality = index / 5 % 50 + 50
        let (luminance, chrominance) = JPEGQuality.tables(quality: quality)
        func changed(_ table: [Int]) -> [Int] {
            switch index % 5 {
            case 0: table
            case 1: mozjpeg.map { min(max(($0 * (200 - 2 * quality) + 50) / 100, 1), 255) }
            case 2: table.map { min(max(Int(4 * Double($0).squareRoot()) - 3, 1), 255) }
            case 3: [Int](repeating: max(table.reduce(0, +) / 64, 1), count: 64)
            default: table.map { max($0 + Int.random(in: -1...2, using: &random), 1) }
            }
        }
        return (changed(luminance), index / 5 % 5 == 0 ? nil : changed(chrominance))
    }

    @Test func `ImageMagick finds the same quality`() async throws {
        try Tool.require("identify")
        let folder = try TemporaryFolder()
        var random = SeededGenerator(seed: 4)
        var (files, estimates): ([String], [Int]) = ([], [])
        for index in 0..<250 {
            let tables = Self.tables(index, &random)
            let order = JPEGQuality.zigZag
            let bytes = FlatJPEG.bytes(
                width: 16, height: 16, luminance: order.map { tables.luminance[$0] },
                chrominance: tables.chrominance.map { table in order.map { table[$0] } })
            files.append(try folder.file("\(index).jpg", bytes).path)
            estimates.append(try #require(JPEGQuality.estimate(of: bytes)))
        }
        let ending = try await Program.run("identify", ["-format", "%Q\n"] + files)
        let found = ending.text.split(separator: "\n").compactMap { Int($0) }
        #expect(found.count == 250, "\(ending.messages)")
        // Below 51 ImageMagick has an opinion of libjpeg's own tables only.
        let compared = zip(estimates, found).enumerated().filter { $0.element.0 > 50 }
        #expect(compared.count >= 200)
        for (index, (estimate, other)) in compared {
            #expect(abs(estimate - other) <= 2, "picture \(index): \(estimate), and ImageMagick says \(other)")
        }
    }
}
