/// Pictures and videos with secrets in every place that is known to hold some, built by hand.
///
/// A text that has to go holds "SECRET", one that may stay holds "KEPT", and the numbers of a position are
/// 0x5EC0DE51 and similar ones. The pixels are arbitrary bytes, which must be the same afterwards.
struct PlantedFile {
    let name: String
    let bytes: [UInt8]
    /// The bytes in place of the pixels, which occur once.
    var pixels: [UInt8] = PlantedFile.pixels

    static let pixels: [UInt8] = [0x12, 0x34, 0xFF, 0x00, 0x56] + (0..<40).map { UInt8($0 * 5 % 251) }

    static let all: [PlantedFile] =
        [
            PlantedFile(name: "JPEG, little-endian", bytes: JPEG.file(exif: EXIF(isLittleEndian: true).bytes)),
            PlantedFile(name: "JPEG, big-endian", bytes: JPEG.file(exif: EXIF(isLittleEndian: false).bytes)),
            PlantedFile(name: "JPEG with a video behind it", bytes: JPEG.file() + Movie.file(pixels: [9, 9, 9])),
            PlantedFile(name: "JPEG with bytes behind it", bytes: JPEG.file() + Array("SECRET".utf8)),
            PlantedFile(name: "JPEG with a second picture", bytes: JPEG.fileWithSecondPicture()),
            PlantedFile(name: "JPEG with a picture that only its XMP names", bytes: JPEG.fileWithAnnouncedPicture()),
            PlantedFile(name: "JPEG with pictures that nothing names", bytes: JPEG.file() + JPEG.file() + JPEG.file()),
            PlantedFile(
                name: "JPEG with a video behind other bytes",
                bytes: JPEG.file() + Array("SECRET".utf8) + Movie.file(pixels: [9, 9, 9]) + Array("SECRET".utf8)),
            PlantedFile(
                name: "JPEG with Samsung's trailer",
                bytes: JPEG.file() + Samsung.trailer(Movie.file(pixels: [9, 9, 9]))),
            PlantedFile(name: "JPEG with Apple's note", bytes: JPEG.file(exif: EXIF(makerNote: AppleNote.bytes).bytes)),
            PlantedFile(name: "PNG", bytes: PNG.file),
            PlantedFile(name: "WebP", bytes: webP),
            PlantedFile(name: "GIF", bytes: gif),
            PlantedFile(name: "HEIC, items in the file", bytes: HEIC.file(method: 0)),
            PlantedFile(name: "HEIC, items in the directory", bytes: HEIC.file(method: 1)),
            PlantedFile(name: "HEIC, items in items", bytes: HEIC.file(method: 2)),
            PlantedFile(
                name: "HEIC with a video in it",
                bytes: HEIC.file(method: 0) + box("mpvd", Movie.file(pixels: [9, 9, 9]))),
            PlantedFile(
                name: "HEIC with a video and Samsung's directory",
                bytes: HEIC.file(method: 0) + box("mpvd", Movie.file(pixels: [9, 9, 9]))
                    + box("sefd", Samsung.trailer([Samsung.country, Samsung.reference, Samsung.version]))),
            PlantedFile(
                name: "HEIC with a video behind it", bytes: HEIC.file(method: 0) + Movie.file(pixels: [9, 9, 9])),
            PlantedFile(name: "MP4", bytes: Movie.file()),
            PlantedFile(name: "MP4 with bytes behind it", bytes: Movie.file() + Array("\0\0SECRET".utf8)),
            PlantedFile(name: "QuickTime", bytes: Movie.file(brand: "qt  ")),
        ] + TIFF.planted

    static func has(_ bytes: [UInt8], _ text: String) -> Bool {
        let narrow = Array(text.utf8)
        return [narrow, narrow.flatMap { [$0, 0] }].contains { bytes.firstRange(of: $0) != nil }
    }

    /// What is left of the secrets.
    static func secrets(in bytes: [UInt8]) -> [String] {
        var found = ["SECRET", "37.55", "+37"].filter { has(bytes, $0) }
        for number in EXIF.position where bytes.firstRange(of: number.bigEndian) != nil { found.append("\(number)") }
        for number in EXIF.position where bytes.firstRange(of: number.littleEndian) != nil { found.append("\(number)") }
        return found
    }
}

extension UInt32 {
    var bigEndian: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: self >> (24 - 8 * $0)) } }
    var littleEndian: [UInt8] { bigEndian.reversed() }
}

extension Int {
    func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: self >> (8 * (count - 1 - $0))) }
    }
}

// MARK: - EXIF

struct EXIF {
    var isLittleEndian = true
    var thumbnail: [UInt8]? = JPEG.thumbnail
    var makerNote = Array("Maker\0 serial number SECRET 123".utf8.prefix(30))

    static let position: [UInt32] = [0x5EC0_DE51, 0x5EC0_DE52, 0x5EC0_DE53]

    struct Entry {
        let tag: Int
        let type: Int
        let count: Int
        let value: [UInt8]
    }

    func number(_ value: Int, _ count: Int) -> [UInt8] {
        let bytes = value.bytes(count)
        return isLittleEndian ? bytes.reversed() : bytes
    }

    func text(_ tag: Int, _ text: String) -> Entry {
        Entry(tag: tag, type: 2, count: text.utf8.count + 1, value: Array(text.utf8) + [0])
    }

    func long(_ tag: Int, _ value: Int) -> Entry { Entry(tag: tag, type: 4, count: 1, value: number(value, 4)) }

    func short(_ tag: Int, _ value: Int) -> Entry { Entry(tag: tag, type: 3, count: 1, value: number(value, 2)) }

    func directory(_ entries: [Entry], at offset: Int, next: Int = 0) -> [UInt8] {
        var table = number(entries.count, 2)
        var values: [UInt8] = []
        let start = offset + 2 + 12 * entries.count + 4
        for entry in entries {
            table += number(entry.tag, 2) + number(entry.type, 2) + number(entry.count, 4)
            if entry.value.count <= 4 {
                table += entry.value + [UInt8](repeating: 0, count: 4 - entry.value.count)
            } else {
                table += number(start + values.count, 4)
                values += entry.value
            }
        }
        return table + number(next, 4) + values
    }

    var header: [UInt8] { Array((isLittleEndian ? "II" : "MM").utf8) + number(42, 2) + number(8, 4) }

    /// Directories one behind the other; each knows where the next one begins once it has been built.
    var bytes: [UInt8] {
        let rational = Self.position.flatMap { number(Int($0), 4) + number(1, 4) }
        let gps = [
            text(1, "N"), Entry(tag: 2, type: 5, count: 3, value: rational), text(3, "E"),
            Entry(tag: 4, type: 5, count: 3, value: rational), text(0x1D, "2026:SECRET"),
        ]
        let exif = [
            Entry(tag: 0x9000, type: 7, count: 4, value: Array("0232".utf8)), text(0x9286, "KEPT comment"),
            Entry(tag: 0x927C, type: 7, count: makerNote.count, value: makerNote),
            text(0xA430, "SECRET owner"), text(0xA431, "SECRET-123"), text(0xA434, "KEPT lens"),
            text(0xA435, "SECRET-456"),
        ]
        let xmp = Array(XMP.packet.utf8)
        func main(_ exif: Int, _ gps: Int, _ next: Int) -> [UInt8] {
            directory(
                [
                    text(0x010F, "KEPT maker"), short(0x0112, 6), text(0x013B, "SECRET artist"),
                    Entry(tag: 0x02BC, type: 1, count: xmp.count, value: xmp), text(0x8298, "KEPT copyright"),
                    long(0x8769, exif), long(0x8825, gps),
                ], at: 8, next: next)
        }
        let exifOffset = 8 + main(0, 0, 0).count
        let gpsOffset = exifOffset + directory(exif, at: exifOffset).count
        let nextOffset = gpsOffset + directory(gps, at: gpsOffset).count
        func second(_ offset: Int) -> [UInt8] {
            directory([long(0x0201, offset), long(0x0202, thumbnail?.count ?? 0)], at: nextOffset)
        }
        let thumbnailOffset = nextOffset + second(0).count
        let start = header + main(exifOffset, gpsOffset, thumbnail == nil ? 0 : nextOffset)
        let directories = directory(exif, at: exifOffset) + directory(gps, at: gpsOffset)
        guard let thumbnail else { return start + directories + Array("SECRET remains".utf8) }
        return start + directories + second(thumbnailOffset) + thumbnail + Array("SECRET remains".utf8)
    }
}

enum XMP {
    static let packet = """
        <?xpacket begin="\u{FEFF}" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF \
        xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description exif:GPSLatitude="37.55,SECRET" \
        photoshop:City='SECRET' xmp:CreatorTool="KEPT tool"><dc:creator><rdf:Seq><rdf:li>SECRET</rdf:li></rdf:Seq>\
        </dc:creator><dc:title><rdf:Alt><rdf:li xml:lang="x-default">KEPT title</rdf:li></rdf:Alt></dc:title>\
        <Iptc4xmpExt:LocationShown><rdf:Bag><rdf:li Iptc4xmpExt:Sublocation="SECRET"/></rdf:Bag>\
        </Iptc4xmpExt:LocationShown><aux:SerialNumber>SECRET</aux:SerialNumber></rdf:Description></rdf:RDF>\
        </x:xmpmeta>      <?xpacket end="w"?>
        """
}

// MARK: - JPEG

enum JPEG {
    static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        [0xFF, marker] + (content.count + 2).bytes(2) + content
    }

    static let exifMark = Array("Exif\0\0".utf8)
    static let end: [UInt8] = [0xFF, 0xD9]

    /// Tables, frame and scan with the pixels.
    static func picture(_ pixels: [UInt8] = PlantedFile.pixels) -> [UInt8] {
        segment(0xDB, [UInt8](repeating: 1, count: 65)) + segment(0xC0, [8, 0, 1, 0, 1, 1, 1, 0x11, 0])
            + segment(0xDA, [1, 1, 0, 0, 63, 0]) + pixels
    }

    static let thumbnail: [UInt8] =
        [0xFF, 0xD8] + segment(0xE1, exifMark + EXIF(thumbnail: nil).bytes) + picture([7, 7, 7]) + end

    static let photoshop: [UInt8] = {
        func dataset(_ number: UInt8, _ text: String) -> [UInt8] {
            [0x1C, 2, number] + text.utf8.count.bytes(2) + Array(text.utf8)
        }
        let records =
            dataset(5, "KEPT title") + dataset(80, "SECRET by-line") + dataset(90, "SECRET city")
            + dataset(101, "SECRET country") + dataset(116, "KEPT copyright")
        func resource(_ identifier: Int, _ data: [UInt8]) -> [UInt8] {
            Array("8BIM".utf8) + identifier.bytes(2) + [0, 0] + data.count.bytes(4) + data
                + [UInt8](repeating: 0, count: data.count % 2)
        }
        return resource(0x0404, records) + resource(0x0425, Array("SECRET a digest.".utf8))
            + resource(0x0422, EXIF(thumbnail: nil).bytes) + resource(0x0424, Array(XMP.packet.utf8))
    }()

    static let xmpMark = Array("http://ns.adobe.com/xap/1.0/\0".utf8)

    static func segments(exif: [UInt8]) -> [UInt8] {
        // XMP in two segments, cut inside a name.
        let long = Array(XMP.packet.utf8)
        let cut = 230
        func piece(_ range: Range<Int>) -> [UInt8] {
            let head = Array("http://ns.adobe.com/xmp/extension/\0".utf8)
            let identifier = [UInt8](repeating: UInt8(ascii: "A"), count: 32)
            return segment(0xE1, head + identifier + long.count.bytes(4) + range.lowerBound.bytes(4) + long[range])
        }
        let profile = segment(0xE2, Array("ICC_PROFILE\0\u{1}\u{1}PROFILE".utf8))
        let others =
            segment(0xE3, Array("Vendor SECRET".utf8)) + segment(0xE2, Array("FPXR\0SECRET".utf8))
            + segment(0xEB, Array("JP SECRET".utf8)) + segment(0xEE, Array("Adobe\0d\0\0\0\0\u{1}".utf8))
        let half = photoshop.count / 2
        let mark = Array("Photoshop 3.0\0".utf8)
        return segment(0xE0, Array("JFIF\0".utf8) + [1, 1, 0, 0, 1, 0, 1, 0, 0]) + segment(0xE1, exifMark + exif)
            + segment(0xE1, xmpMark + Array(XMP.packet.utf8)) + piece(cut..<long.count) + piece(0..<cut) + profile
            + others + segment(0xED, mark + photoshop[..<half]) + segment(0xED, mark + photoshop[half...])
            + segment(0xFE, Array("KEPT comment".utf8))
    }

    static func file(exif: [UInt8] = EXIF().bytes) -> [UInt8] {
        [0xFF, 0xD8] + segments(exif: exif) + picture() + end
    }

    /// Two pictures without a directory, as of a depth map behind its photo.
    static func fileWithAnnouncedPicture() -> [UInt8] {
        let packet = XMP.packet.replacing("xmp:CreatorTool", with: "Item:Length=\"99\" xmp:CreatorTool")
        let profile = segment(0xE2, Array("ICC_PROFILE\0\u{1}\u{1}PROFILE".utf8))
        return [0xFF, 0xD8] + segment(0xE1, xmpMark + Array(packet.utf8)) + profile + picture() + end + file()
    }

    /// Two pictures, with bytes that no one names between them.
    static func fileWithSecondPicture() -> [UInt8] {
        let exif = EXIF(isLittleEndian: false)
        let second = [0xFF, 0xD8] + segments(exif: EXIF().bytes) + picture([8, 8, 8]) + end
        let gap = Array("SECRET gap".utf8)
        func directory(_ size: Int, _ offset: Int) -> [UInt8] {
            let entries = [0x30000, size, 0, 0, 0, second.count, offset, 0].flatMap { $0.bytes(4) }
            return segment(
                0xE2,
                Array("MPF\0".utf8) + exif.header
                    + exif.directory([EXIF.Entry(tag: 0xB002, type: 7, count: 32, value: entries)], at: 8))
        }
        let before = [0xFF, 0xD8] + segments(exif: EXIF().bytes)
        let length = before.count + directory(0, 0).count + picture().count + 2
        let offset = length + gap.count - (before.count + 8)
        return before + directory(length, offset) + picture() + end + gap + second
    }
}

// MARK: - PNG, WebP, GIF

enum PNG {
    static func checksum(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(0xFFFF_FFFF) { register, byte in
            (0..<8).reduce(register ^ UInt32(byte)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1
            }
        }
    }

    static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
        let body = Array(type.utf8) + content
        return content.count.bytes(4) + body + checksum(body).bigEndian
    }

    static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    static let file: [UInt8] = {
        let start = chunk("IHDR", [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]) + chunk("iCCP", Array("p\0\0PROFILE".utf8))
        let texts =
            chunk("tEXt", Array("Author\0SECRET".utf8)) + chunk("tEXt", Array("exif:GPSInfo\0SECRET".utf8))
            + chunk("tEXt", Array("Author\0X".utf8)) + chunk("zTXt", Array("Comment\0\0SECRET".utf8))
            + chunk("tEXt", Array("Title\0KEPT title".utf8)) + chunk("iTXt", Array("Location\0\0\0ko\0\0SECRET".utf8))
            + chunk("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0\(XMP.packet)".utf8))
            + chunk("tEXt", Array("Raw profile type exif\0SECRET".utf8)) + chunk("caBX", Array("SECRET".utf8))
        // Many pieces of the picture, all of one size but the last, and one of the same size behind them.
        let picture = (0..<100).flatMap { chunk("IDAT", [UInt8($0), 1, 2, 3, 4, 5]) }
        let end =
            chunk("IDAT", PlantedFile.pixels) + chunk("eXIf", EXIF().bytes) + chunk("tEXt", Array("gps\0SECRET".utf8))
        return signature + start + texts + picture + end + chunk("IEND", []) + Array("SECRET".utf8)
    }()

    /// The chunks of a file, whose checksums have to be right.
    static func chunks(of file: [UInt8]) -> [(type: String, content: [UInt8])]? {
        var chunks: [(type: String, content: [UInt8])] = []
        var rest = file.dropFirst(8)
        while rest.count >= 12, chunks.last?.type != "IEND" {
            let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard count <= rest.count - 12 else { return nil }
            let body = Array(rest.dropFirst(4).prefix(4 + count))
            guard Array(rest.dropFirst(8 + count).prefix(4)) == checksum(body).bigEndian else { return nil }
            chunks.append((String(decoding: body[..<4], as: UTF8.self), Array(body[4...])))
            rest = rest.dropFirst(12 + count)
        }
        return chunks
    }
}

extension PlantedFile {
    static let webP: [UInt8] = {
        func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
            Array(type.utf8) + content.count.bytes(4).reversed() + content
                + [UInt8](repeating: 0, count: content.count % 2)
        }
        let chunks =
            chunk("VP8X", [12, 0, 0, 0, 0, 0, 0, 0, 0, 0]) + chunk("ICCP", Array("PROFILE".utf8))
            + chunk("VP8 ", pixels)
            + chunk("EXIF", EXIF().bytes) + chunk("XMP ", Array(XMP.packet.utf8)) + chunk("VEND", Array("SECRET".utf8))
        return Array("RIFF".utf8) + (chunks.count + 4).bytes(4).reversed() + Array("WEBP".utf8) + chunks
            + Array("SECRET".utf8)
    }()

    static let gif: [UInt8] = {
        func pieces(_ bytes: [UInt8]) -> [UInt8] { [UInt8(bytes.count)] + bytes + [0] }
        let start = Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0, 1, 2, 3, 4, 5, 6]
        let loop = [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + pieces([1, 0, 0])
        let trailer: [UInt8] = [1] + (0...255).map { UInt8(255 - $0) } + [0]
        let xmp = [0x21, 0xFF, 11] + Array("XMP DataXMP".utf8) + Array(XMP.packet.utf8.filter { $0 < 0x80 }) + trailer
        let vendor = [0x21, 0xFF, 11] + Array("VENDORAPP10".utf8) + pieces(Array("SECRET".utf8))
        let comment = [0x21, 0xFE] + pieces(Array("KEPT comment".utf8))
        let picture = [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2] + pieces(pixels)
        return start + loop + xmp + vendor + comment + picture + [0x3B] + Array("SECRET".utf8)
    }()
}
