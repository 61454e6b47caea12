import PostcardForm
import PostcardPictureFormats

/// The properties of a picture that can be read from its first bytes, without decoding.
struct PictureHead: Equatable {
    /// The picture's format according to its bytes, not its filename.
    var type: MediaType?
    /// The size of the stored pixels; `nil` if only the codec can read it.
    var storedSize: PictureSize?
    /// The rotation that makes the stored pixels upright.
    var orientation = PictureOrientation.upright
    var isAnimated = false
    /// The size of the file, in bytes.
    var bytes: Int64

    /// The size of the upright picture.
    var size: PictureSize? { storedSize.map { orientation.size(of: $0) } }

    /// Whether the type and the number of bytes are within a limit.
    func fits(_ limit: PictureLimit) -> Bool {
        guard let type else { return false }
        return limit.acceptedTypes.union([.jpeg]).contains(type) && bytes <= limit.maximumBytes
    }
}

/// The way in which a picture is made to fit a limit.
enum PicturePlan: Equatable {
    /// The picture is sent unchanged.
    case original
    /// The picture is encoded. The search finds the edge and the quality.
    case encode(PictureFit)
    /// The picture cannot be made to fit.
    case refuse(PictureFitError.Code)

    /// Decides how a picture is made to fit a limit.
    ///
    /// - Parameters:
    ///   - head: The known properties of the picture.
    ///   - limit: The limit that the picture must fit.
    init(for head: PictureHead, size: PictureSize, limit: PictureLimit) {
        let maximumEdge = max(limit.maximumEdge, 1)
        if head.fits(limit), size.longerEdge <= maximumEdge {
            self = .original
        } else if size.width < 1 || size.height < 1 {
            self = .refuse(.damaged)
        } else if head.isAnimated {
            self = .refuse(.animated)
        } else if size.pixels > limit.maximumPixels || size.longerEdge > Self.longestEdge {
            self = .refuse(.tooManyPixels)
        } else {
            // A new JPEG must not be larger than an original JPEG, unless the original has only a few bytes. Other
            // types may compress a picture better than JPEG, so they have no such bound.
            let most = head.type == .jpeg ? max(head.bytes, Self.fewBytes) : .max
            let bytes = min(limit.maximumBytes, most)
            self = .encode(PictureFit(edge: min(size.longerEdge, maximumEdge), maximumBytes: bytes))
        }
    }

    /// The number of bytes that a new JPEG may always have, even if its original is smaller. A tiny JPEG may become
    /// larger when it is scaled, because a new JPEG may have longer headers.
    private static let fewBytes: Int64 = 4096

    /// The longest edge that libjpeg decodes and encodes. A longer row would also need much memory.
    static let longestEdge = 65_500

    /// The factor by which a decoder shrinks a picture so that it decodes no more pixels than needed: 8, 4, 2 or 1.
    ///
    /// - Parameters:
    ///   - stored: The longer edge of the stored picture, in pixels.
    ///   - edge: The longer edge that is needed, in pixels.
    static func subsampling(from stored: Int, to edge: Int) -> Int {
        [8, 4, 2].first { stored / $0 >= edge } ?? 1
    }

    /// Whether a color profile is kept. A profile for another color model than that of the pixels is dropped, and so is
    /// a profile that takes up much of the limit.
    ///
    /// - Parameters:
    ///   - profile: An ICC profile (ICC.1 §7.2), or its beginning.
    ///   - count: The number of the profile's bytes.
    ///   - isGrey: Whether the pixels are gray, not RGB.
    ///   - maximumBytes: The maximum size of the picture, in bytes.
    static func keepsProfile(
        _ profile: some Collection<UInt8>, count: Int, isGrey: Bool, maximumBytes: Int64
    ) -> Bool {
        guard profile.count >= 40, count > 0, Int64(count) <= maximumBytes / 4 else { return false }
        return profile.dropFirst(16).prefix(4).elementsEqual((isGrey ? "GRAY" : "RGB ").utf8)
    }
}

/// The rotation and mirroring that make stored pixels upright. The raw values are those of Exif 3.0, §4.6.5.
enum PictureOrientation: Int, CaseIterable {
    case upright = 1
    case mirrored, upsideDown, mirroredUpsideDown
    case mirroredAndTurnedLeft, turnedLeft, mirroredAndTurnedRight, turnedRight

    /// Whether the orientation swaps width and height.
    var swapsEdges: Bool { rawValue >= 5 }

    func size(of stored: PictureSize) -> PictureSize {
        swapsEdges ? PictureSize(width: stored.height, height: stored.width) : stored
    }

    /// The positions of stored pixels in the upright picture.
    ///
    /// - Parameter stored: The size of the stored pixels.
    /// - Returns: The index of the first stored pixel in the upright picture, and the steps from there to the next
    ///   stored pixel and to the next stored row, counted in pixels.
    func steps(in stored: PictureSize) -> (first: Int, pixel: Int, row: Int) {
        let (width, height) = (stored.width, stored.height)
        return switch self {
        case .upright: (0, 1, width)
        case .mirrored: (width - 1, -1, width)
        case .upsideDown: (width * height - 1, -1, -width)
        case .mirroredUpsideDown: (width * (height - 1), 1, -width)
        case .mirroredAndTurnedLeft: (0, height, 1)
        case .turnedLeft: (height - 1, height, -1)
        case .mirroredAndTurnedRight: (width * height - 1, -height, -1)
        case .turnedRight: (height * (width - 1), -height, 1)
        }
    }
}

/// Reads the headers of the most common formats without a codec. A picture that already fits needs no codec, and the
/// size of a picture is checked before a codec reserves memory for it.
extension PictureHead {
    /// Reads the header of a picture.
    ///
    /// - Throws: ``PictureFitError`` if the file cannot be read, or if it ends within its header.
    /// - Returns: The properties of the picture. The size is `nil` if only the codec can read it, as for HEIC.
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

    /// The maximum number of segments or chunks to read. Only a file that was made to be slow has more.
    private static let mostPieces = 200_000

    private static func cutOff(_ what: String) -> PictureFitError { .damaged("the file ends within \(what)") }

    /// Reads a JPEG (ITU-T T.81 Annex B).
    private mutating func readJPEG(_ bytes: PictureBytes) throws(PictureFitError) {
        var isOriented = false
        try walk(.jpeg, bytes) { unit throws(PictureFitError) in
            switch unit.kind {
            case .segment(0xDA):
                // The pixels begin at this segment.
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

    /// Reads a PNG (third edition, §5.3 and §11).
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

    /// Reads a WebP (RFC 9649 §2).
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

    /// Reads a GIF (GIF89a §17 to §27).
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
            // The data is in blocks of up to 255 bytes, followed by an empty block.
            var offset = unit.next
            while pieces < Self.mostPieces, let count = try bytes.number(at: offset, bytes: 1) {
                pieces += 1
                offset += 1 + count
                if count == 0 { break }
            }
            return pieces < Self.mostPieces ? offset : nil
        }
    }

    /// Calls a function for each segment, chunk or block of the file, up to the last or a damaged one.
    ///
    /// - Parameter visit: Returns the offset of the next segment, chunk or block, or `nil` to stop.
    private func walk(
        _ container: PictureContainer, _ bytes: PictureBytes,
        _ visit: (PictureUnit) throws(PictureFitError) -> Int64?
    ) throws(PictureFitError) {
        let start = try bytes.bytes(at: 0, count: PictureContainer.signatureBytes)
        var offset = container.firstOffset(start)
        for _ in 0..<Self.mostPieces {
            let header = try bytes.bytes(at: offset, count: Self.headerBytes)
            guard case .unit(let unit) = container.unit(header, at: offset) else {
                // In other formats, the size is in the first chunks, so the walk may end here.
                if container == .jpeg { throw Self.cutOff("its head") }
                return
            }
            guard !unit.isLast, let next = try visit(unit) else { return }
            offset = next
        }
    }

    /// The number of bytes to read for the header of a segment or chunk, which is more than any header has. Bytes
    /// between segments are skipped in steps of this size.
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

    /// Whether an HEIF file is a sequence of pictures, according to its brand (ISO/IEC 23008-12 §10).
    private static func isSequence(_ bytes: PictureBytes) throws(PictureFitError) -> Bool {
        guard try bytes.bytes(at: 4, count: 4).elementsEqual("ftyp".utf8) else { return false }
        let brand = String(decoding: try bytes.bytes(at: 8, count: 4), as: UTF8.self)
        return ["hevc", "hevx", "hevm", "hevs", "msf1", "avis"].contains(brand)
    }
}
