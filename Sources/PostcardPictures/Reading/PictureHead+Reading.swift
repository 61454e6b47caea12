import PostcardForm
import PostcardPictureFormats

/// Reads the heads of the formats that are sent most. They are read here and not by the codecs, so that a picture that
/// fits is recognized without any, and so that a picture's size is checked before a codec reserves memory for it.
extension PictureHead {
    /// - Throws: ``PictureFitError`` if the file cannot be read, or if it ends within its head.
    /// - Returns: A head without a size for a type that is not read here, such as HEIC.
    init(reading bytes: PictureBytes) throws(PictureFitError) {
        self.init(bytes: bytes.count)
        type = MediaType.forFirstBytes(try bytes.bytes(at: 0, count: MediaType.firstBytesCount))
        switch type {
        case .jpeg?: try readJPEG(bytes)
        case .png?: try readPNG(bytes)
        case .webP?: try readWebP(bytes)
        case .gif?: try readGIF(bytes)
        default: isAnimated = try Self.isSequence(bytes)
        }
    }

    /// A file that was made to be slow has more pieces than any picture.
    private static let mostPieces = 200_000

    private static func cutOff(_ what: String) -> PictureFitError { .damaged("the file ends within \(what)") }

    /// ITU-T T.81 Annex B.
    private mutating func readJPEG(_ bytes: PictureBytes) throws(PictureFitError) {
        var offset: Int64 = 2
        var isOriented = false
        for _ in 0..<Self.mostPieces {
            guard let mark = try bytes.number(at: offset, bytes: 2) else { throw Self.cutOff("its head") }
            // What some cameras write between segments. Decoders skip it too.
            guard mark > 0xFF00 else {
                offset += 1
                continue
            }
            let marker = mark & 0xFF
            // Bytes that fill, and markers without a segment.
            if marker == 0xFF {
                offset += 1
                continue
            }
            if marker == 0x01 || (0xD0...0xD7).contains(marker) {
                offset += 2
                continue
            }
            // The pixels begin, or the picture ends.
            if marker == 0xDA || marker == 0xD9 { break }
            guard let count = try bytes.number(at: offset + 2, bytes: 2), count >= 2 else {
                throw Self.cutOff("its head")
            }
            if (0xC0...0xCF).contains(marker), marker != 0xC4, marker != 0xC8, marker != 0xCC, storedSize == nil {
                guard let height = try bytes.number(at: offset + 5, bytes: 2),
                    let width = try bytes.number(at: offset + 7, bytes: 2)
                else { throw Self.cutOff("its head") }
                storedSize = PictureSize(width: Int(clamping: width), height: Int(clamping: height))
            } else if marker == 0xE1, !isOriented {
                let segment = try bytes.bytes(at: offset + 4, count: Int(clamping: count - 2))
                if segment.starts(with: Self.exifMark) {
                    isOriented = setOrientation(Array(segment.dropFirst(Self.exifMark.count)))
                }
            }
            offset += 2 + count
        }
        guard storedSize != nil else { throw .damaged("it has no size") }
    }

    private static let exifMark = Array("Exif\0\0".utf8)

    private mutating func setOrientation(_ exif: [UInt8]) -> Bool {
        let number = TIFFBlock(exif)?.orientation
        guard let found = number.flatMap({ PictureOrientation(rawValue: Int(clamping: $0)) }) else { return false }
        orientation = found
        return true
    }

    /// PNG (third edition) §5.3 and §11.
    private mutating func readPNG(_ bytes: PictureBytes) throws(PictureFitError) {
        guard let width = try bytes.number(at: 16, bytes: 4), let height = try bytes.number(at: 20, bytes: 4) else {
            throw Self.cutOff("its head")
        }
        storedSize = PictureSize(width: Int(clamping: width), height: Int(clamping: height))
        var offset: Int64 = 8
        for _ in 0..<Self.mostPieces {
            guard let count = try bytes.number(at: offset, bytes: 4) else { return }
            switch String(decoding: try bytes.bytes(at: offset + 4, count: 4), as: UTF8.self) {
            case "acTL": isAnimated = true
            case "eXIf" where count <= Self.mostEXIFBytes:
                _ = setOrientation(Array(try bytes.bytes(at: offset + 8, count: Int(clamping: count))))
            case "IEND": return
            default: break
            }
            offset += 12 + count
        }
    }

    private static let mostEXIFBytes: Int64 = 1 << 20

    /// RFC 9649 §2.
    private mutating func readWebP(_ bytes: PictureBytes) throws(PictureFitError) {
        func little(_ offset: Int64, _ count: Int) throws(PictureFitError) -> Int {
            guard let number = try bytes.number(at: offset, bytes: count, isLittleEndian: true) else {
                throw Self.cutOff("its head")
            }
            return Int(clamping: number)
        }
        var offset: Int64 = 12
        for _ in 0..<Self.mostPieces {
            guard let count = try bytes.number(at: offset + 4, bytes: 4, isLittleEndian: true) else { break }
            let data = offset + 8
            switch String(decoding: try bytes.bytes(at: offset, count: 4), as: UTF8.self) {
            case "VP8X":
                isAnimated = try little(data, 1) & 2 != 0
                storedSize = PictureSize(width: try little(data + 4, 3) + 1, height: try little(data + 7, 3) + 1)
            case "VP8 " where storedSize == nil:
                let (width, height) = (try little(data + 6, 2), try little(data + 8, 2))
                storedSize = PictureSize(width: width & 0x3FFF, height: height & 0x3FFF)
            case "VP8L" where storedSize == nil:
                let (low, high) = (try little(data + 1, 2), try little(data + 3, 2))
                storedSize = PictureSize(
                    width: low & 0x3FFF + 1, height: ((low >> 14) | (high & 0xFFF) << 2) + 1)
            case "EXIF" where count <= Self.mostEXIFBytes:
                var exif = Array(try bytes.bytes(at: data, count: Int(clamping: count)))
                // Some programs write the mark of a JPEG's segment before it.
                if exif.starts(with: Self.exifMark) { exif.removeFirst(Self.exifMark.count) }
                _ = setOrientation(exif)
            default: break
            }
            offset = data + count + count % 2
        }
        guard storedSize != nil else { throw Self.cutOff("its head") }
    }

    /// GIF89a §17 to §27.
    private mutating func readGIF(_ bytes: PictureBytes) throws(PictureFitError) {
        guard let width = try bytes.number(at: 6, bytes: 2, isLittleEndian: true),
            let height = try bytes.number(at: 8, bytes: 2, isLittleEndian: true),
            let flags = try bytes.number(at: 10, bytes: 1)
        else { throw Self.cutOff("its head") }
        storedSize = PictureSize(width: Int(clamping: width), height: Int(clamping: height))
        func tableBytes(_ flags: Int64) -> Int64 { flags & 0x80 == 0 ? 0 : 3 << (flags & 7 + 1) }
        var offset = 13 + tableBytes(flags)
        var frames = 0
        var pieces = 0
        while pieces < Self.mostPieces {
            pieces += 1
            switch try bytes.number(at: offset, bytes: 1) {
            case 0x21: offset += 2
            case 0x2C:
                frames += 1
                isAnimated = frames > 1
                guard !isAnimated, let flags = try bytes.number(at: offset + 9, bytes: 1) else { return }
                offset += 11 + tableBytes(flags)
            default: return
            }
            // Blocks of up to 255 bytes, and an empty one at the end.
            while pieces < Self.mostPieces, let count = try bytes.number(at: offset, bytes: 1) {
                pieces += 1
                offset += 1 + count
                if count == 0 { break }
            }
        }
    }

    /// Whether an HEIF file is a sequence of pictures, by its brand (ISO/IEC 23008-12 §10).
    private static func isSequence(_ bytes: PictureBytes) throws(PictureFitError) -> Bool {
        guard try bytes.bytes(at: 4, count: 4).elementsEqual("ftyp".utf8) else { return false }
        let brand = String(decoding: try bytes.bytes(at: 8, count: 4), as: UTF8.self)
        return ["hevc", "hevx", "hevm", "hevs", "msf1", "avis"].contains(brand)
    }
}
