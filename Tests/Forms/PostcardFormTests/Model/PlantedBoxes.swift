/// Files of boxes with secrets in them.
func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
    (content.count + 8).bytes(4) + type.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } + content
}

enum HEIC {
    private static let exif = [0, 0, 0, 6] + JPEG.exifMark + EXIF().bytes
    private static let xmp = Array(XMP.packet.utf8)

    /// - Parameter method: Where its metadata is: in the file, in the directory, or in another item.
    static func file(method: Int) -> [UInt8] {
        let fileType = box("ftyp", Array("heic\0\0\0\0mif1heic".utf8))
        func entry(_ number: Int, _ type: String) -> [UInt8] {
            box("infe", [2, 0, 0, 0] + number.bytes(2) + [0, 0] + Array(type.utf8) + [0])
        }
        let entries =
            entry(1, "hvc1") + entry(2, "Exif") + entry(3, "mime\0application/rdf+xml") + entry(4, "data")
        let information = box("iinf", [0, 0, 0, 0, 0, 4] + entries)
        let references = box(
            "iref", [0, 0, 0, 0] + box("iloc", [0, 2, 0, 1, 0, 4]) + box("iloc", [0, 3, 0, 1, 0, 4]))
        let half = xmp.count / 2
        /// Version 1: numbers of four bytes, and four for the number of an item in an item.
        func location(_ number: Int, _ method: Int, _ extents: [(offset: Int, length: Int)]) -> [UInt8] {
            number.bytes(2) + method.bytes(2) + [0, 0] + extents.count.bytes(2)
                + extents.flatMap { 1.bytes(4) + $0.offset.bytes(4) + $0.length.bytes(4) }
        }
        func locations(_ base: Int, _ pixels: Int) -> [UInt8] {
            // The second half of the XMP comes before the first.
            let items: [[UInt8]] = [
                location(1, 0, [(pixels, PlantedFile.pixels.count)]), location(2, method, [(base, exif.count)]),
                location(
                    3, method,
                    [(base + exif.count + xmp.count - half, half), (base + exif.count, xmp.count - half)]),
                location(4, 0, [(pixels + PlantedFile.pixels.count, exif.count + xmp.count)]),
            ]
            return box("iloc", [1, 0, 0, 0, 0x44, 0x04, 0, 4] + items.joined())
        }
        let metadata = exif + xmp[half...] + xmp[..<half]
        let inDirectory = method == 1 ? box("idat", metadata) : []
        func meta(_ base: Int, _ pixels: Int) -> [UInt8] {
            box(
                "meta",
                [0, 0, 0, 0] + box("hdlr", [UInt8](repeating: 0, count: 8) + Array("pict".utf8) + [0, 0, 0, 0])
                    + information + locations(base, pixels) + references + inDirectory)
        }
        let pixels = fileType.count + meta(0, 0).count + 8
        let base = method == 0 ? pixels + PlantedFile.pixels.count : 0
        return fileType + meta(base, pixels) + box("mdat", PlantedFile.pixels + (method == 1 ? [] : metadata))
            + box("sefd", Array("SECRET".utf8)) + box("free", Array("SECRET".utf8))
    }
}

enum Movie {
    static let xmpUUID: [UInt8] = [
        0xBE, 0x7A, 0xCF, 0xCB, 0x97, 0xA9, 0x42, 0xE8, 0x9C, 0x71, 0x99, 0x94, 0x91, 0xE3, 0xAF, 0xAC,
    ]

    private static func handler(_ type: String) -> [UInt8] {
        box("hdlr", [UInt8](repeating: 0, count: 8) + Array(type.utf8) + [UInt8](repeating: 0, count: 13))
    }

    private static func text(_ type: String, _ text: String) -> [UInt8] {
        box(type, text.utf8.count.bytes(2) + [0x15, 0xC7] + Array(text.utf8))
    }

    private static func data(_ type: String, _ text: String) -> [UInt8] {
        box(type, box("data", [0, 0, 0, 1, 0, 0, 0, 0] + Array(text.utf8)))
    }

    private static func keys(isQuickTime: Bool) -> [UInt8] {
        let names = [
            "com.apple.quicktime.location.ISO6709", "com.apple.quicktime.make", "com.apple.quicktime.author",
            "com.apple.quicktime.software",
        ]
        let list = names.flatMap { box("mdta", Array($0.utf8)) }
        func item(_ number: UInt8, _ text: String) -> [UInt8] { data("\0\0\0\(UnicodeScalar(number))", text) }
        let content =
            handler("mdta") + box("keys", [0, 0, 0, 0, 0, 0, 0, 4] + list)
            + box(
                "ilst",
                item(1, "+37.5512+126.9876/SECRET") + item(2, "KEPT make") + item(3, "SECRET author")
                    + item(4, "KEPT software"))
        return box("meta", (isQuickTime ? [] : [0, 0, 0, 0]) + content)
    }

    private static func userData(isQuickTime: Bool) -> [UInt8] {
        let iTunes = box(
            "meta",
            [0, 0, 0, 0] + handler("mdir")
                + box("ilst", data("\u{A9}nam", "KEPT name") + data("\u{A9}ART", "SECRET") + data("apID", "SECRET")))
        let list =
            text("\u{A9}xyz", "+37.5512+126.9876/") + text("\u{A9}mod", "KEPT model")
            + box("loci", [0, 0, 0, 0, 0x15, 0xC7] + Array("SECRET\0".utf8) + [0, 0x5E, 0xC0, 0xDE, 0x51])
            + box("GPMF", Array("SECRET".utf8)) + box("XMP_", Array(XMP.packet.utf8)) + iTunes
        // A list in QuickTime ends with a zero.
        return box("udta", list + (isQuickTime ? [0, 0, 0, 0] : []))
    }

    /// A track with samples of one length.
    private static func track(_ type: String, entry: String, _ chunks: [Int], length: Int) -> [UInt8] {
        let zeros = [UInt8](repeating: 0, count: 8)
        let table =
            box("stsd", [0, 0, 0, 0, 0, 0, 0, 1] + box(entry, zeros))
            + box("stsz", [0, 0, 0, 0] + length.bytes(4) + chunks.count.bytes(4))
            + box("stsc", [0, 0, 0, 0] + 1.bytes(4) + 1.bytes(4) + 1.bytes(4) + 1.bytes(4))
            + box("stco", [0, 0, 0, 0] + chunks.count.bytes(4) + chunks.flatMap { $0.bytes(4) })
        let unknown = box("abcd", Array("SECRET".utf8))
        let media = box("mdia", unknown + handler(type) + box("minf", unknown + box("stbl", table)))
        return box("trak", unknown + media)
    }

    /// A video with one track of a type.
    static func file(withTrack type: String, _ text: String) -> [UInt8] {
        let fileType = box("ftyp", Array("isom\0\0\0\0isom".utf8))
        let track = track(type, entry: "abcd", [fileType.count + 8], length: text.utf8.count)
        return fileType + box("mdat", Array(text.utf8)) + box("moov", track)
    }

    static func file(brand: String = "isom", pixels: [UInt8] = PlantedFile.pixels) -> [UInt8] {
        let isQuickTime = brand == "qt  "
        let fileType = box("ftyp", Array("\(brand)\0\0\0\0\(brand)".utf8))
        let sample = Array("GPS 37.55 SECRET".utf8)
        let subtitle = Array("GPS (127.0245, 37.5326) SECRET".utf8)
        // A track of positions, whose second chunk is behind the picture, and one of subtitles.
        let data = box("mdat", sample + pixels + sample + subtitle)
        let header = box("mvhd", [0, 0, 0, 0] + Array("TIMETIME".utf8) + [UInt8](repeating: 0, count: 88))
        let first = fileType.count + 8
        let movie = box(
            "moov",
            header
                + track("meta", entry: "gpmd", [first, first + sample.count + pixels.count], length: sample.count)
                + track("text", entry: "tx3g", [first + 2 * sample.count + pixels.count], length: subtitle.count)
                + box("gps ", Array("SECRET".utf8))
                + userData(isQuickTime: isQuickTime) + keys(isQuickTime: isQuickTime)
                + box("uuid", xmpUUID + Array(XMP.packet.utf8)))
        return fileType + data + movie + box("uuid", [UInt8](repeating: 7, count: 16) + Array("SECRET".utf8))
    }
}
