import Testing

@testable import PostcardPictureFormats

@Suite struct ArrivingPictureTests {
    /// A picture, where its format ends, and where the TIFF structure of its EXIF is.
    struct Sample: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
        let end: Int?
        let exif: Int?

        init(_ name: String, _ bytes: [UInt8], end: Int?, exif: Int? = nil) {
            (testDescription, self.bytes, self.end, self.exif) = (name, bytes, end, exif)
        }
    }

    private static let tiff: [UInt8] = Array("II*\0".utf8) + [8, 0, 0, 0, 0, 0]
    private static let app1: [UInt8] = [0xFF, 0xE1, 0, 18] + Array("Exif\0\0".utf8) + tiff
    private static let scan: [UInt8] = [0xFF, 0xDA, 0, 3, 1]

    private static func jpeg(_ pieces: [UInt8]...) -> [UInt8] { [0xFF, 0xD8] + pieces.flatMap(\.self) + [0xFF, 0xD9] }

    private static func png(_ chunks: [UInt8]...) -> [UInt8] {
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunks.flatMap(\.self)
    }

    private static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
        [0, 0, 0, UInt8(content.count)] + Array(type.utf8) + content + [1, 2, 3, 4]
    }

    private static func webP(size: UInt8, _ chunks: [UInt8]) -> [UInt8] {
        Array("RIFF".utf8) + [size, 0, 0, 0] + Array("WEBP".utf8) + chunks
    }

    static let samples: [Sample] = [
        Sample("a JPEG", jpeg(app1, scan, [1, 0xFF, 0, 2]) + [13, 10], end: 33, exif: 12),
        Sample("the shortest JPEG", jpeg(), end: 4),
        // Decoders skip bytes between segments, whatever they are.
        Sample(
            "a JPEG with bytes between its segments",
            jpeg([0xFF, 0xE0, 0, 2, 7, 7, 0xFF, 0, 7, 0xFF, 0xFF], app1, scan), end: 40, exif: 23),
        // An FF before the FF of a stuffed byte only fills.
        Sample(
            "a JPEG with bytes that fill in its pixels", jpeg(app1, scan, [0xFF, 0xFF, 0, 0xFF, 0xD7]), end: 34,
            exif: 12),
        Sample("a JPEG in two scans", jpeg(app1, scan, [5, 0xFF, 0xC4, 0, 2], scan, [6]), end: 40, exif: 12),
        Sample("a JPEG whose segment is too short", jpeg([0xFF, 0xE0, 0, 1]), end: nil),
        Sample(
            "a PNG", png(chunk("IHDR", [1]), chunk("eXIf", tiff), chunk("IEND", []), [10]), end: 55, exif: 29),
        Sample(
            "a PNG with the mark of a JPEG's EXIF",
            png(chunk("eXIf", Array("Exif\0\0".utf8) + tiff), chunk("IEND", [])), end: 48, exif: 22),
        Sample("a PNG with a chunk of 2 GiB", png([0x80, 0, 0, 0], Array("IHDR".utf8), [1]), end: nil),
        Sample("a WebP", webP(size: 22, Array("EXIF".utf8) + [10, 0, 0, 0] + tiff) + [10], end: 30, exif: 20),
        // A size that is odd has no byte behind it that makes it even.
        Sample("a WebP of an odd size", webP(size: 13, Array("ALPH".utf8) + [1, 0, 0, 0, 5]), end: 21),
        Sample("a text", Array("Hello, this is a text".utf8), end: nil),
    ]

    @Test(arguments: samples) func `its end and its EXIF are found, in chunks of any size`(sample: Sample) {
        for size in 1...sample.bytes.count {
            var picture = ArrivingPicture()
            for start in stride(from: 0, to: sample.bytes.count, by: size) {
                sample.bytes[start..<min(start + size, sample.bytes.count)].withUnsafeBytes { picture.read($0) }
            }
            #expect(picture.end == sample.end.map(Int64.init), "chunks of \(size)")
            #expect(picture.exif == (sample.exif == nil ? [] : Self.tiff), "chunks of \(size)")
            #expect(picture.exifOffset == Int64(sample.exif ?? 0), "chunks of \(size)")
            #expect(!picture.isCut(at: Int64(sample.bytes.count)), "chunks of \(size)")
        }
    }

    @Test(arguments: samples.filter { $0.end != nil }) func `every beginning of a picture is cut`(sample: Sample) {
        // Before these bytes it is not known what the file is.
        let recognized = sample.bytes[0] == 0xFF ? 3 : sample.bytes[0] == 0x89 ? 8 : 12
        for count in 0..<(sample.end ?? 0) {
            var picture = ArrivingPicture()
            sample.bytes[..<count].withUnsafeBytes { picture.read($0) }
            #expect(picture.isCut(at: Int64(count)) == (count >= recognized), "\(count) bytes")
        }
    }
}
