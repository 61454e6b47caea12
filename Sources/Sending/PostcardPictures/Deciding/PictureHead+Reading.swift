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
        var isOriented = false
        try walk(.jpeg, bytes) { unit throws(PictureFitError) in
            switch unit.kind {
            case .segment(0xDA):
                // The pixels begin.
                return nil
            case .segment(let marker)
            where (0xC0...0xCF).contains(marker) && ![0xC4, 0xC8, 0xCC].contains(marker) && storedSize == nil:
                let start = unit.content.lowerBound
                guard let height = try bytes.number(at: start + 1, bytes: 2),
                    let width = try bytes.number(at: start + 3, bytes: 2)
                else { throw Self.cutOff("its head") }
                storedSize = PictureSize(width: Int(clamping: width), height: Int(clamping: height))
            case .segment(0xE1) where !isOriented:
                isOriented = try setOrientation(unit, .jpeg, bytes)
            default: break
            }
            return unit.next
        }
        guard storedSize != nil else { throw .damaged("it has no size") }
    }

    /// PNG (third edition) §5.3 and §11.
    private mutating func readPNG(_ bytes: PictureBytes) throws(PictureFitError) {
        guard let width = try bytes.number(at: 16, bytes: 4), let height = try bytes.number(at: 20, bytes: 4) else {
            throw Self.cutOff("its head")
        }
        storedSize = PictureSize(width: Int(clamping: width), height: Int(clamping: height))
        try walk(.png, bytes) { unit throws(PictureFitError) in
            switch unit.kind {
            case .named("acTL"): isAnimated = true
            case .named("eXIf"): _ = try setOrientation(unit, .png, bytes)
            default: break
            }
            return unit.next
        }
    }

    /// RFC 9649 §2.
    private mutating func readWebP(_ bytes: PictureBytes) throws(PictureFitError) {
        func little(_ offset: Int64, _ count: Int) throws(PictureFitError) -> Int {
            guard let number = try bytes.number(at: offset, bytes: count, isLittleEndian: true) else {
                throw Self.cutOff("its head")
            }
            return Int(clamping: number)
        }
        try walk(.webP, bytes) { unit throws(PictureFitError) in
            let data = unit.content.lowerBound
            switch unit.kind {
            case .named("VP8X"):
                isAnimated = try little(data, 1) & 2 != 0
                storedSize = PictureSize(width: try little(data + 4, 3) + 1, height: try little(data + 7, 3) + 1)
            case .named("VP8 ") where storedSize == nil:
                let (width, height) = (try little(data + 6, 2), try little(data + 8, 2))
                storedSize = PictureSize(width: width & 0x3FFF, height: height & 0x3FFF)
            case .named("VP8L") where storedSize == nil:
                let (low, high) = (try little(data + 1, 2), try little(data + 3, 2))
                storedSize = PictureSize(
                    width: low & 0x3FFF + 1, height: ((low >> 14) | (high & 0xFFF) << 2) + 1)
            case .named("EXIF"): _ = try setOrientation(unit, .webP, bytes)
            default: break
            }
            return unit.next
        }
        guard storedSize != nil else { throw Self.cutOff("its head") }
    }

    /// GIF89a §17 to §27.
    private mutating func readGIF(_ bytes: PictureBytes) throws(PictureFitError) {
        guard let width = try bytes.number(at: 6, bytes: 2, isLittleEndian: true),
            let height = try bytes.number(at: 8, bytes: 2, isLittleEndian: true)
        else { throw Self.cutOff("its head") }
        storedSize = PictureSize(width: Int(clamping: width), height: Int(clamping: height))
        var frames = 0
        var pieces = 0
        try walk(.gif, bytes) { unit throws(PictureFitError) in
            if unit.kind == .block(0x2C) { frames += 1 }
            isAnimated = frames > 1
            guard !isAnimated else { return nil }
            // Pieces of up to 255 bytes, and an empty one at the end.
            var offset = unit.next
            while pieces < Self.mostPieces, let count = try bytes.number(at: offset, bytes: 1) {
                pieces += 1
                offset += 1 + count
                if count == 0 { break }
            }
            return pieces < Self.mostPieces ? offset : nil
        }
    }

    /// Calls a function for each piece of the file up to its last one, or up to one that is damaged.
    ///
    /// - Parameter visit: Returns the offset of the next piece, or `nil` if nothing else is of interest.
    private func walk(
        _ container: PictureContainer, _ bytes: PictureBytes,
        _ visit: (PictureUnit) throws(PictureFitError) -> Int64?
    ) throws(PictureFitError) {
        let start = try bytes.bytes(at: 0, count: PictureContainer.signatureBytes)
        var offset = container.firstOffset(start)
        for _ in 0..<Self.mostPieces {
            let header = try bytes.bytes(at: offset, count: Self.headerBytes)
            guard case .unit(let unit) = container.unit(header, at: offset) else {
                // Of other formats, what is known of a head is in its first pieces.
                if container == .jpeg { throw Self.cutOff("its head") }
                return
            }
            guard !unit.isLast, let next = try visit(unit) else { return }
            offset = next
        }
    }

    /// More than any header has: of bytes that belong to no piece, as many are skipped at once.
    private static let headerBytes = 64

    private mutating func setOrientation(
        _ unit: PictureUnit, _ container: PictureContainer, _ bytes: PictureBytes
    ) throws(PictureFitError) -> Bool {
        let length = unit.content.upperBound - unit.content.lowerBound
        guard length <= Self.mostEXIFBytes else { return false }
        let exif = try bytes.bytes(at: unit.content.lowerBound, count: Int(clamping: length))
        guard let prefix = container.exifPrefix(of: exif),
            let number = TIFFBlock(Array(exif.dropFirst(prefix)))?.orientation,
            let found = PictureOrientation(rawValue: Int(clamping: number))
        else { return false }
        orientation = found
        return true
    }

    private static let mostEXIFBytes: Int64 = 1 << 20

    /// Whether an HEIF file is a sequence of pictures, by its brand (ISO/IEC 23008-12 §10).
    private static func isSequence(_ bytes: PictureBytes) throws(PictureFitError) -> Bool {
        guard try bytes.bytes(at: 4, count: 4).elementsEqual("ftyp".utf8) else { return false }
        let brand = String(decoding: try bytes.bytes(at: 8, count: 4), as: UTF8.self)
        return ["hevc", "hevx", "hevm", "hevs", "msf1", "avis"].contains(brand)
    }
}
