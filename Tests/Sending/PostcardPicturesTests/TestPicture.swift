import Foundation

@testable import PostcardPictures

/// Pictures made for tests.
enum TestPicture {
    /// The colors of the four quarters, row by row.
    static let quarters: [[UInt8]] = [[200, 30, 30], [30, 160, 40], [40, 60, 200], [230, 220, 60]]

    /// RGB pixels of the four quarters.
    static func quarterPixels(width: Int, height: Int) -> [UInt8] {
        (0..<height).flatMap { y in
            (0..<width).flatMap { x in quarters[(y * 2 >= height ? 2 : 0) + (x * 2 >= width ? 1 : 0)] }
        }
    }

    /// The head of a JPEG, and zeros for the rest. It can be measured and not decoded.
    static func jpegHead(width: Int, height: Int, orientation: Int? = nil, bytes: Int = 0) -> [UInt8] {
        let frame = [0xFF, 0xC0, 0, 17, 8] + big(height, 2) + big(width, 2) + [3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]
        let head = [0xFF, 0xD8] + (orientation.map(exifSegment) ?? []) + frame + [0xFF, 0xDA, 0, 2]
        return head + [UInt8](repeating: 0, count: max(bytes - head.count, 0))
    }

    static func exifSegment(orientation: Int) -> [UInt8] {
        let exif = Array("Exif\0\0".utf8) + tiff(orientation: orientation)
        return [0xFF, 0xE1] + big(exif.count + 2, 2) + exif
    }

    static func tiff(orientation: Int) -> [UInt8] {
        Array("MM".utf8) + [0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1] + big(orientation, 2)
            + [0, 0, 0, 0, 0, 0]
    }

    /// A TIFF without compression, in strips of several rows (TIFF 6.0 §2 and §6).
    ///
    /// - Parameters:
    ///   - samples: RGB, the bytes of the rows, one after another.
    ///   - pages: The number of equal pages.
    ///   - kind: The tag NewSubfileType, such as 1 for a smaller copy of another picture.
    static func tiff(
        width: Int, height: Int, samples: [UInt8], orientation: Int = 1, rowsPerStrip: Int = 7, pages: Int = 1,
        kind: Int = 0
    ) -> [UInt8] {
        func little(_ number: Int, _ count: Int) -> [UInt8] { big(number, count).reversed() }
        let strips = (height + rowsPerStrip - 1) / rowsPerStrip
        let stride = width * 3
        var file: [UInt8] = Array("II".utf8) + little(42, 2)
        for page in 0..<pages {
            let start = file.count + 4
            // The pixels, the depth of each channel, the places and the sizes of the strips, and then the directory.
            let depths = start + samples.count + samples.count % 2
            let places = depths + 6
            let directory = places + strips * 8
            file += little(directory, 4) + samples + [UInt8](repeating: 0, count: samples.count % 2)
            file += [8, 0, 8, 0, 8, 0]
            for strip in 0..<strips { file += little(start + strip * rowsPerStrip * stride, 4) }
            for strip in 0..<strips { file += little(min(rowsPerStrip, height - strip * rowsPerStrip) * stride, 4) }
            let entries: [(tag: Int, type: Int, count: Int, value: Int)] = [
                (254, 4, 1, kind), (256, 4, 1, width), (257, 4, 1, height), (258, 3, 3, depths), (259, 3, 1, 1),
                (262, 3, 1, 2),
                (273, 4, strips, strips == 1 ? start : places), (274, 3, 1, orientation), (277, 3, 1, 3),
                (278, 4, 1, rowsPerStrip),
                (279, 4, strips, strips == 1 ? samples.count : places + strips * 4), (284, 3, 1, 1),
            ]
            file += little(entries.count, 2)
            for entry in entries {
                file += little(entry.tag, 2) + little(entry.type, 2) + little(entry.count, 4) + little(entry.value, 4)
            }
            if page + 1 == pages { file += [0, 0, 0, 0] }
        }
        return file
    }

    /// A PNG without compression (RFC 1950 and 1951, stored blocks).
    ///
    /// - Parameters:
    ///   - samples: The bytes of the rows, one after another.
    ///   - colorType: 0 for grey, 2 for RGB, 4 for grey and alpha, 6 for RGBA.
    ///   - chunks: Chunks between the head and the pixels.
    static func png(
        width: Int, height: Int, samples: [UInt8], depth: Int = 8, colorType: Int = 2, chunks: [UInt8] = []
    ) -> [UInt8] {
        let stride = samples.count / max(height, 1)
        let rows = (0..<height).flatMap { [0] + samples[($0 * stride)..<(($0 + 1) * stride)] }
        var stream: [UInt8] = [0x78, 0x01]
        var start = 0
        repeat {
            let count = min(rows.count - start, 65_535)
            let isLast: UInt8 = start + count == rows.count ? 1 : 0
            stream += [isLast] + big(count, 2).reversed() + big(count ^ 0xFFFF, 2).reversed()
            stream += rows[start..<(start + count)]
            start += count
        } while start < rows.count
        stream += big(adler(rows), 4)
        let head = big(width, 4) + big(height, 4) + [UInt8(depth), UInt8(colorType), 0, 0, 0]
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunk("IHDR", head) + chunks + chunk("IDAT", stream)
            + chunk("IEND", [])
    }

    static func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        big(data.count, 4) + Array(name.utf8) + data + big(Int(crc(Array(name.utf8) + data)), 4)
    }

    static func webP(_ chunks: [(name: String, data: [UInt8])]) -> [UInt8] {
        let body = chunks.flatMap { name, data in
            Array(name.utf8) + big(data.count, 4).reversed() + data + [UInt8](repeating: 0, count: data.count % 2)
        }
        return Array("RIFF".utf8) + big(body.count + 4, 4).reversed() + Array("WEBP".utf8) + body
    }

    static func big(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    private static func adler(_ bytes: [UInt8]) -> Int {
        let (a, b) = bytes.reduce((1, 0)) { sums, byte in
            let a = (sums.0 + Int(byte)) % 65_521
            return (a, (sums.1 + a) % 65_521)
        }
        return b << 16 | a
    }

    private static let crcTable: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { crc, _ in crc & 1 == 0 ? crc >> 1 : crc >> 1 ^ 0xEDB8_8320 }
    }

    private static func crc(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~0) { crc, byte in crc >> 8 ^ crcTable[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] }
    }
}
