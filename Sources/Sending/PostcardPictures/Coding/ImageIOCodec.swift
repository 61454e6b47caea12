#if canImport(ImageIO)
import CoreGraphics
import Foundation
import ImageIO
import PostcardForm
import PostcardPictureFormats
import Synchronization
import UniformTypeIdentifiers

/// ImageIO: what it decodes is never larger than the picture that is encoded.
struct ImageIOCodec: PictureCodec {
    func complete(_ head: PictureHead, of source: PictureSource) throws -> PictureHead {
        let picture = try OpenedPicture(source, head.type)
        guard
            let properties = CGImageSourceCopyPropertiesAtIndex(picture.source, picture.index, nil) as NSDictionary?,
            let width = properties[kCGImagePropertyPixelWidth] as? Int,
            let height = properties[kCGImagePropertyPixelHeight] as? Int
        else { throw PictureFitError.damaged("it has no size") }
        var head = head
        head.storedSize = PictureSize(width: width, height: height)
        // For HEIC this is what its boxes irot and imir say.
        let orientation = (properties[kCGImagePropertyOrientation] as? Int).flatMap(PictureOrientation.init(rawValue:))
        head.orientation = orientation ?? .upright
        return head
    }

    func open(
        _ source: PictureSource, head: PictureHead, edge: Int, maximumBytes: Int64
    ) throws -> any DecodedPicture {
        ImageIOPicture(picture: try OpenedPicture(source, head.type), longerEdge: head.size?.longerEdge ?? 0)
    }
}

/// A file, and which of its pictures is meant.
private struct OpenedPicture {
    let source: CGImageSource
    let index: Int

    init(_ picture: PictureSource, _ type: MediaType?) throws {
        // What is decoded is kept here and nowhere else.
        let options = [kCGImageSourceShouldCache: false] as CFDictionary
        let opened =
            switch picture {
            case .file(let url): CGImageSourceCreateWithURL(url as CFURL, options)
            case .bytes(let bytes): CGImageSourceCreateWithData(bytes as CFData, options)
            }
        guard let opened, CGImageSourceGetType(opened) != nil, CGImageSourceGetCount(opened) > 0 else {
            throw PictureFitError.unsupported(type)
        }
        source = opened
        index = CGImageSourceGetPrimaryImageIndex(opened)
    }
}

private struct ImageIOPicture: DecodedPicture {
    let picture: OpenedPicture
    /// The longer edge of the stored picture.
    let longerEdge: Int
    private var edge = 0
    private var image: CGImage?

    init(picture: OpenedPicture, longerEdge: Int) {
        self.picture = picture
        self.longerEdge = longerEdge
    }

    /// Headers, and the color profile of most cameras.
    let fixedBytes: Int64 = 1200

    mutating func encode(_ encoding: PictureFit.Encoding) throws -> EncodedPicture {
        if edge != encoding.edge {
            image = nil
            image = try autoreleasepool { try decoded(toEdge: encoding.edge) }
            edge = encoding.edge
        }
        guard let image else { throw PictureFitError.damaged("it has no pixels") }
        return try autoreleasepool { try ImageIOEncoder.encoded(image, quality: encoding.quality) }
    }

    /// The picture, upright and scaled.
    private func decoded(toEdge edge: Int) throws -> CGImage {
        let factor = PicturePlan.subsampling(from: longerEdge, to: edge)
        var image = thumbnail(edge: edge, subsampling: factor)
        // Should the system shrink twice, the picture is decoded again as a whole.
        if factor > 1, let found = image, max(found.width, found.height) < min(edge, longerEdge) - 1 {
            image = nil
            image = thumbnail(edge: edge, subsampling: 1)
        }
        let isWhole = CGImageSourceGetStatusAtIndex(picture.source, picture.index) == .statusComplete
        guard let image, isWhole else { throw PictureFitError.damaged("its pixels are cut off or unreadable") }
        // A wide color space stays, and a JPEG of CMYK is one that browsers do not show.
        switch image.colorSpace?.model {
        case .rgb?, .monochrome?: return image
        default: return try inRGB(image)
        }
    }

    private func thumbnail(edge: Int, subsampling: Int) -> CGImage? {
        var options: [CFString: Any] = [
            kCGImageSourceCreateThumbnailFromImageAlways: true,
            kCGImageSourceCreateThumbnailWithTransform: true,
            kCGImageSourceShouldCacheImmediately: true,
            kCGImageSourceThumbnailMaxPixelSize: edge,
            // A JPEG of 8 bits has no room for more than a standard range.
            kCGImageSourceDecodeRequest: kCGImageSourceDecodeToSDR,
        ]
        // The only factors that ImageIO knows are 2, 4 and 8.
        if subsampling > 1 { options[kCGImageSourceSubsampleFactor] = subsampling }
        let dictionary = NSDictionary(dictionary: options) as CFDictionary
        return CGImageSourceCreateThumbnailAtIndex(picture.source, picture.index, dictionary)
    }

    private func inRGB(_ image: CGImage) throws -> CGImage {
        let area = CGRect(x: 0, y: 0, width: image.width, height: image.height)
        guard let context = ImageIOEncoder.context(width: image.width, height: image.height) else {
            throw PictureFitError.tooMuchMemory("its colors have to be converted")
        }
        // Where the picture is transparent.
        context.setFillColor(gray: 1, alpha: 1)
        context.fill(area)
        context.draw(image, in: area)
        guard let converted = context.makeImage() else { throw PictureFitError.notEncodable("its colors are unknown") }
        return converted
    }
}

/// Encodes JPEGs of a quality as libjpeg counts it.
private enum ImageIOEncoder {
    /// What ImageIO's numbers mean, measured once for all pictures.
    private static let scale = Mutex(QualityScale())

    /// Transparency becomes white, as ImageIO's documentation says of `kCGImageDestinationBackgroundColor`, the key by
    /// which another color could be chosen.
    static func encoded(_ image: CGImage, quality: Int) throws -> EncodedPicture {
        let number = scale.withLock { scale in scale.number(for: quality) { measuredQuality(of: $0) } }
        guard let bytes = encoded(image, number: number) else {
            throw PictureFitError.notEncodable("ImageIO could not encode it")
        }
        return EncodedPicture(bytes: bytes, size: PictureSize(width: image.width, height: image.height))
    }

    /// Pixels of 8 bits without transparency, all of them black.
    static func context(width: Int, height: Int) -> CGContext? {
        CGColorSpace(name: CGColorSpace.sRGB).flatMap { space in
            CGContext(
                data: nil, width: width, height: height, bitsPerComponent: 8, bytesPerRow: 0, space: space,
                bitmapInfo: CGImageAlphaInfo.noneSkipLast.rawValue)
        }
    }

    private static func measuredQuality(of number: Double) -> Int? {
        autoreleasepool {
            let image = context(width: 16, height: 16)?.makeImage()
            return image.flatMap { encoded($0, number: number) }.flatMap { JPEGQuality.estimate(of: $0) }
        }
    }

    private static func encoded(_ image: CGImage, number: Double) -> Data? {
        let bytes = NSMutableData()
        let destination = CGImageDestinationCreateWithData(
            bytes as CFMutableData, UTType.jpeg.identifier as CFString, 1, nil)
        guard let destination else { return nil }
        let options = [kCGImageDestinationLossyCompressionQuality: number] as CFDictionary
        CGImageDestinationAddImage(destination, image, options)
        return CGImageDestinationFinalize(destination) ? Data(referencing: bytes) : nil
    }
}
#endif
