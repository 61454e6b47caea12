/// TIFF and DNG files with secrets in every place that is known to hold some.
enum TIFF {
    typealias Entry = EXIF.Entry

    static let planted: [PlantedFile] = [
        PlantedFile(name: "TIFF, little-endian", bytes: TIFF.file(isLittleEndian: true)),
        PlantedFile(name: "TIFF, big-endian", bytes: TIFF.file(isLittleEndian: false)),
        PlantedFile(name: "DNG", bytes: TIFF.file(isLittleEndian: true, isDNG: true)),
    ]

    /// The entries that describe one row of grey pixels.
    static func layout(_ exif: EXIF, _ pixels: Range<Int>, compression: Int = 1, color: Int = 1) -> [Entry] {
        [
            exif.long(0x0100, pixels.count), exif.long(0x0101, 1), exif.short(0x0102, 8),
            exif.short(0x0103, compression), exif.short(0x0106, color), exif.long(0x0111, pixels.lowerBound),
            exif.short(0x0115, 1), exif.long(0x0116, 1), exif.long(0x0117, pixels.count),
        ]
    }

    private static func bytes(_ tag: Int, type: Int = 7, _ value: [UInt8]) -> Entry {
        Entry(tag: tag, type: type, count: value.count, value: value)
    }

    static func gps(_ exif: EXIF) -> [Entry] {
        let rational = EXIF.position.flatMap { exif.number(Int($0), 4) + exif.number(1, 4) }
        return [
            exif.text(1, "N"), Entry(tag: 2, type: 5, count: 3, value: rational), exif.text(3, "E"),
            Entry(tag: 4, type: 5, count: 3, value: rational), exif.text(0x1D, "2026:SECRET"),
        ]
    }

    private static func entries(_ exif: EXIF, isDNG: Bool, offset: (Int) -> Int, preview: Int) -> [[Entry]] {
        let iptc: [UInt8] = [0x1C, 2, 90, 0, 6] + Array("SECRET".utf8) + [0x1C, 2, 5, 0, 4] + Array("KEPT".utf8)
        let dng = [
            bytes(0xC612, type: 1, [1, 4, 0, 0]), exif.text(0xC614, "Apple iPhone"), exif.text(0xC62F, "SECRET-serial"),
            bytes(0xC634, Array("Adobe\0MakN SECRET position".utf8)),
        ]
        // Little-endian, the records are written as numbers of four bytes, whose bytes have changed places.
        let padded = iptc + [UInt8](repeating: 0, count: 3 - (iptc.count + 3) % 4)
        let records = exif.isLittleEndian ? padded.indices.map { padded[$0 ^ 3] } : padded
        let pixels = offset(0)..<(offset(0) + PlantedFile.pixels.count)
        let page =
            layout(exif, pixels, color: isDNG ? 32803 : 1) + [
                exif.text(0x010E, "KEPT description"), exif.short(0x0112, 6), exif.text(0x013B, "SECRET artist"),
                exif.long(0x014A, offset(3)), bytes(0x02BC, type: 1, Array(XMP.packet.utf8)),
                Entry(tag: 0x83BB, type: 4, count: records.count / 4, value: records),
                bytes(0x8649, type: 1, JPEG.photoshop), exif.long(0x8769, offset(4)),
                bytes(0x8773, Array("PROFILE".utf8)), exif.long(0x8825, offset(5)),
            ] + (isDNG ? dng : [])
        let camera = [
            bytes(0x9000, Array("0232".utf8)), exif.text(0x9286, "KEPT comment"),
            bytes(0x927C, Array("Apple iOS\0\0\u{1}MM SECRET 123 maker".utf8)), exif.text(0xA430, "SECRET owner"),
        ]
        let small = layout(exif, offset(1)..<(offset(1) + preview), compression: 7, color: 6)
        let second = layout(exif, offset(7)..<(offset(7) + 5)) + [exif.text(0x9C9D, "SECRET author")]
        return [page, small, camera, gps(exif), second]
    }

    /// Pixels and their directories one behind the other: a page with a preview, EXIF and a position, and another page.
    static func file(isLittleEndian: Bool, isDNG: Bool = false) -> [UInt8] {
        let exif = EXIF(isLittleEndian: isLittleEndian)
        let preview = [0xFF, 0xD8] + JPEG.segments(exif: EXIF().bytes) + JPEG.picture([7, 7, 7]) + JPEG.end
        func even(_ bytes: [UInt8]) -> [UInt8] { bytes.count % 2 == 0 ? bytes : bytes + [0] }
        func pieces(_ offsets: [Int]) -> [[UInt8]] {
            let offset = { (index: Int) in offsets[index] }
            let directories = entries(exif, isDNG: isDNG, offset: offset, preview: preview.count)
            func directory(_ index: Int, _ place: Int, next: Int = 0) -> [UInt8] {
                let sorted = directories[index].sorted { $0.tag < $1.tag }
                return even(exif.directory(sorted, at: offsets[place], next: next))
            }
            return [
                even(PlantedFile.pixels), even(preview) + Array("SECRET remains".utf8),
                directory(0, 2, next: offsets[6]), directory(1, 3), directory(2, 4), directory(3, 5), directory(4, 6),
                [5, 4, 3, 2, 1],
            ]
        }
        var offsets = [Int](repeating: 0, count: 8)
        // The sizes do not depend on the offsets.
        var end = 8
        for (index, piece) in pieces(offsets).enumerated() {
            offsets[index] = end
            end += piece.count
        }
        let header = Array((isLittleEndian ? "II" : "MM").utf8) + exif.number(42, 2) + exif.number(offsets[2], 4)
        return header + pieces(offsets).flatMap(\.self)
    }
}
