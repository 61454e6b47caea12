import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardPictures

@Suite struct PictureHeadTests {
    private func head(_ bytes: [UInt8]) throws -> PictureHead { try PictureHead(reading: PictureBytes(Data(bytes))) }

    @Test(arguments: 1...8)
    func `size and orientation of a JPEG are read from its segments`(orientation: Int) throws {
        let head = try head(TestPicture.jpegHead(width: 4032, height: 3024, orientation: orientation))
        #expect(head.storedSize == PictureSize(width: 4032, height: 3024))
        #expect(head.orientation.rawValue == orientation)
        #expect(head.size?.width == (orientation < 5 ? 4032 : 3024))
        #expect(head.type == .jpeg && !head.isAnimated)
    }

    @Test(arguments: [0, 9, 255])
    func `an orientation that does not exist is upright`(orientation: Int) throws {
        let bytes = TestPicture.jpegHead(width: 3, height: 2, orientation: orientation)
        #expect(try head(bytes).orientation == .upright)
    }

    @Test func `bytes between the segments of a JPEG are skipped`() throws {
        var bytes = TestPicture.jpegHead(width: 40, height: 30, orientation: 6)
        let place = 2 + TestPicture.exifSegment(orientation: 6).count
        bytes.insert(contentsOf: [0, 0, 0x12, 0xFF, 0], at: place)
        #expect(try head(bytes).size == PictureSize(width: 30, height: 40))
    }

    @Test func `size, animation and orientation of a PNG are read from its chunks`() throws {
        let plain = TestPicture.png(width: 3, height: 2, samples: Array(repeating: 9, count: 18))
        #expect(
            try head(plain)
                == PictureHead(type: .png, storedSize: .init(width: 3, height: 2), bytes: Int64(plain.count)))
        let exif = TestPicture.chunk("eXIf", TestPicture.tiff(orientation: 6))
        let turned = TestPicture.png(width: 3, height: 2, samples: Array(repeating: 9, count: 18), chunks: exif)
        #expect(try head(turned).orientation == .turnedLeft)
        let animation = TestPicture.chunk("acTL", [0, 0, 0, 2, 0, 0, 0, 0])
        let animated = TestPicture.png(width: 3, height: 2, samples: Array(repeating: 9, count: 18), chunks: animation)
        #expect(try head(animated).isAnimated)
    }

    @Test func `size, animation and orientation of a WebP are read from its chunks`() throws {
        let extended = TestPicture.webP([("VP8X", [2, 0, 0, 0, 0xFF, 0x0F, 0, 0x37, 0x01, 0])])
        #expect(try head(extended).storedSize == PictureSize(width: 4096, height: 312))
        #expect(try head(extended).isAnimated)
        let exif = Array("Exif\0\0".utf8) + TestPicture.tiff(orientation: 8)
        let turned = TestPicture.webP([("VP8X", [8, 0, 0, 0, 1, 0, 0, 2, 0, 0]), ("EXIF", exif)])
        #expect(try head(turned).orientation == .turnedRight)
        #expect(try head(turned).size == PictureSize(width: 3, height: 2))
        let lossy = TestPicture.webP([("VP8 ", [0, 0, 0, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xF0, 0x00])])
        #expect(try head(lossy).storedSize == PictureSize(width: 320, height: 240))
        for (name, fixture) in [("lossy", Fixtures.lossyWebP), ("lossless", Fixtures.losslessWebP)] {
            let head = try head(fixture)
            #expect(head.storedSize == PictureSize(width: 64, height: 48) && !head.isAnimated, "\(name)")
        }
        #expect(try head(Fixtures.animatedWebP).isAnimated)
    }

    @Test func `a GIF with a second frame is animated`() throws {
        let still = try head(Fixtures.stillGIF)
        #expect(still.storedSize == PictureSize(width: 64, height: 48) && !still.isAnimated)
        #expect(try head(Fixtures.animatedGIF).isAnimated)
    }

    @Test func `a GIF of very many blocks is not read to its end`() throws {
        let start: [UInt8] = Array("GIF89a".utf8) + [8, 0, 8, 0, 0, 0, 0]
        let frame: [UInt8] = [0x2C, 0, 0, 0, 0, 8, 0, 8, 0, 0, 2]
        func gif(blocks: Int) -> [UInt8] {
            let pixels = [[UInt8]](repeating: [1, 0x44], count: blocks).joined()
            return start + frame + pixels + [0 as UInt8] + frame
        }
        #expect(try head(gif(blocks: 100_000)).isAnimated)
        #expect(try !head(gif(blocks: 300_000)).isAnimated)
    }

    @Test func `the type is read from the bytes, whatever the name`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("photo.png", TestPicture.jpegHead(width: 5, height: 4))
        #expect(try PictureHead(reading: PictureBytes(path: file.path)).type == .jpeg)
        #expect(try head(Array("no picture at all".utf8)).type == nil)
        #expect(try head([]).type == nil)
        #expect(try head(Fixtures.heic[6] ?? []).type == .heic)
        #expect(try head(TestPicture.big(0x1C, 4) + Array("ftypmsf1".utf8)).isAnimated)
    }

    @Test func `a file and bytes in memory are read alike, at any offset`() throws {
        let folder = try TemporaryFolder()
        let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
        let file = try PictureBytes(path: folder.file("a", bytes).path)
        let data = PictureBytes(Data(bytes))
        for (offset, count) in [(0, 32), (65_530, 10), (3, 4), (199_999, 5), (200_000, 1), (-1, 3), (100_000, 90_000)] {
            let (one, other) = (
                try file.bytes(at: Int64(offset), count: count), try data.bytes(at: Int64(offset), count: count)
            )
            #expect(one.elementsEqual(other))
            #expect(one.elementsEqual(bytes.dropFirst(max(offset, 0)).prefix(offset < 0 ? 0 : count)))
        }
    }

    /// Every beginning of a file, and files with changed bytes: an error or a head, and always an end.
    @Test func `damaged heads are errors or heads`() throws {
        let whole = [
            TestPicture.jpegHead(width: 40, height: 30, orientation: 6),
            TestPicture.png(width: 3, height: 2, samples: Array(repeating: 9, count: 18)), Fixtures.lossyWebP,
            Fixtures.animatedWebP, Fixtures.animatedGIF, Fixtures.heic[5] ?? [], Fixtures.progressiveJPEG,
        ]
        var random = SeededGenerator(seed: 11)
        for bytes in whole {
            for count in 0..<bytes.count { _ = try? head(Array(bytes.prefix(count))) }
            for _ in 0..<3000 {
                var changed = bytes
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    let index = Int.random(in: changed.indices, using: &random)
                    changed[index] =
                        [0, 1, 0x7F, 0x80, 0xFF, UInt8.random(in: 0...255, using: &random)]
                        .randomElement(using: &random) ?? 0
                }
                if let found = try? head(changed), let size = found.size {
                    #expect(size.width >= 0 && size.height >= 0)
                }
            }
        }
    }

    @Test func `a JPEG that is cut off within its head is damaged`() throws {
        let whole = TestPicture.jpegHead(width: 40, height: 30, orientation: 6)
        for count in [3, 10, 40, 50] {
            let error = #expect(throws: PictureFitError.self) { try head(Array(whole.prefix(count))) }
            #expect(error?.code == .damaged)
        }
    }
}
