import PostcardForm

/// What is known about a picture from its first bytes, without decoding it.
struct PictureHead: Equatable {
    /// The picture's format, by its bytes and not by its name.
    var type: MediaType?
    /// The size of the pixels as they are stored; `nil` if only the codec can tell.
    var storedSize: PictureSize?
    /// How the stored pixels have to be turned.
    var orientation = PictureOrientation.upright
    var isAnimated = false
    /// The number of the file's bytes.
    var bytes: Int64

    /// The size as it is shown.
    var size: PictureSize? { storedSize.map { orientation.size(of: $0) } }

    /// Whether the type and the bytes are within a limit.
    func fits(_ limit: PictureLimit) -> Bool {
        guard let type else { return false }
        return limit.acceptedTypes.union([.jpeg]).contains(type) && bytes <= limit.maximumBytes
    }
}

/// What is done with a picture.
enum PicturePlan: Equatable {
    /// The picture is sent as it is.
    case original
    /// The picture is encoded as a search decides.
    case encode(PictureFit)
    /// The picture cannot be made to fit.
    case refuse(PictureFitError.Code)

    /// - Parameters:
    ///   - head: What is known about the picture, with its size.
    ///   - limit: What it must fit into.
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
            // A JPEG never gets larger than it was, or than these few bytes. Other types compress other pictures
            // better, and have no such bound.
            let most = head.type == .jpeg ? max(head.bytes, Self.fewBytes) : .max
            let bytes = min(limit.maximumBytes, most)
            self = .encode(PictureFit(edge: min(size.longerEdge, maximumEdge), maximumBytes: bytes))
        }
    }

    /// The size up to which a JPEG need not get smaller when it is scaled, in bytes. Without this exception, a JPEG
    /// with little more than headers could not be scaled at all: a new one may have longer headers.
    private static let fewBytes: Int64 = 4096

    /// The longest edge that libjpeg decodes and encodes. A row of more would also take much memory.
    static let longestEdge = 65_500

    /// The factor by which a decoder shrinks a picture, so that it holds no more pixels than it has to: 8, 4, 2 or 1.
    ///
    /// - Parameters:
    ///   - stored: The longer edge of the picture.
    ///   - edge: The longer edge that is needed.
    static func subsampling(from stored: Int, to edge: Int) -> Int {
        [8, 4, 2].first { stored / $0 >= edge } ?? 1
    }

    /// Whether a color profile is kept: not one for other colors than the pixels have now, and not one that takes much
    /// of the limit.
    ///
    /// - Parameters:
    ///   - profile: An ICC profile (ICC.1 §7.2), or its beginning.
    ///   - count: The number of its bytes.
    ///   - isGrey: Whether the pixels are grey, not RGB.
    ///   - maximumBytes: The maximum size of the picture, in bytes.
    static func keepsProfile(
        _ profile: some Collection<UInt8>, count: Int, isGrey: Bool, maximumBytes: Int64
    ) -> Bool {
        guard profile.count >= 40, count > 0, Int64(count) <= maximumBytes / 4 else { return false }
        return profile.dropFirst(16).prefix(4).elementsEqual((isGrey ? "GRAY" : "RGB ").utf8)
    }
}

/// How stored pixels have to be turned to be upright, as EXIF numbers it (Exif 3.0 §4.6.5, Orientation).
enum PictureOrientation: Int, CaseIterable {
    case upright = 1
    case mirrored, upsideDown, mirroredUpsideDown
    case mirroredAndTurnedLeft, turnedLeft, mirroredAndTurnedRight, turnedRight

    /// Whether width and height change places.
    var swapsEdges: Bool { rawValue >= 5 }

    func size(of stored: PictureSize) -> PictureSize {
        swapsEdges ? PictureSize(width: stored.height, height: stored.width) : stored
    }

    /// The place of a stored pixel in the upright picture.
    ///
    /// - Parameter stored: The size of the stored pixels.
    /// - Returns: The place of the first stored pixel in the upright picture, counted in pixels, and the steps to the
    ///   place of the next stored pixel and of the next stored row.
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
