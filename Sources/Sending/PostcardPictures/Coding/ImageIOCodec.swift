#if canImport(ImageIO)
import CoreGraphics
import Foundation
import ImageIO
import PostcardForm
import PostcardPictureFormats
import Synchronization
import UniformTypeIdentifiers

/// The codec that uses ImageIO. It decodes no more pixels than the new picture has.
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
        // The orientation of a HEIC comes from its boxes irot and imir.
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

/// A picture file, and the index of the picture to use in it.
private struct OpenedPicture {
    let source: CGImageSource
    let index: Int

    init(_ picture: PictureSource, _ type: MediaType?) throws {
        // ImageIO must not cache the decoded pixels, because this codec stores them.
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
    /// The longer edge of the stored picture, in pixels.
    let longerEdge: Int
    private var edge = 0
    private var image: CGImage?

    init(picture: OpenedPicture, longerEdge: Int) {
        self.picture = picture
        self.longerEdge = longerEdge
    }

    /// An estimate of the size of the headers and a camera's usual color profile, in bytes.
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

    /// Decodes the picture, upright and scaled to an edge.
    private func decoded(toEdge edge: Int) throws -> CGImage {
        let factor = PicturePlan.subsampling(from: longerEdge, to: edge)
        var image = thumbnail(edge: edge, subsampling: factor)
        // ImageIO may apply both the subsampling and the maximum size, so that the result is too small. Then the
        // picture is decoded again without subsampling.
        if factor > 1, let found = image, max(found.width, found.height) < min(edge, longerEdge) - 1 {
            image = nil
            image = thumbnail(edge: edge, subsampling: 1)
        }
        let isWhole = CGImageSourceGetStatusAtIndex(picture.source, picture.index) == .statusComplete
        guard let image, isWhole else { throw PictureFitError.damaged("its pixels are cut off or unreadable") }
        // A wide color space is kept. CMYK is converted, because browsers do not show JPEGs in CMYK.
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
            // A JPEG with 8 bits per channel can only show the standard dynamic range.
            kCGImageSourceDecodeRequest: kCGImageSourceDecodeToSDR,
        ]
        // ImageIO supports only the factors 2, 4 and 8.
        if subsampling > 1 { options[kCGImageSourceSubsampleFactor] = subsampling }
        let dictionary = NSDictionary(dictionary: options) as CFDictionary
        return CGImageSourceCreateThumbnailAtIndex(picture.source, picture.index, dictionary)
    }

    private func inRGB(_ image: CGImage) throws -> CGImage {
        let area = CGRect(x: 0, y: 0, width: image.width, height: image.height)
        guard let context = ImageIOEncoder.context(width: image.width, height: image.height) else {
            throw PictureFitError.tooMuchMemory("its colors have to be converted")
        }
        // Transparent areas become white.
        context.setFillColor(gray: 1, alpha: 1)
        context.fill(area)
        context.draw(image, in: area)
        guard let converted = context.makeImage() else { throw PictureFitError.notEncodable("its colors are unknown") }
        return converted
    }
}

/// Encodes JPEGs with ImageIO, at qualities on the scale of libjpeg.
private enum ImageIOEncoder {
    /// Converts qualities to ImageIO's numbers. The scale is measured once, for all pictures.
    private static let scale = Mutex(QualityScale())

    /// Encodes a picture as a JPEG. Transparency becomes white, the default without
    /// `kCGImageDestinationBackgroundColor`.
    static func encoded(_ image: CGImage, quality: Int) throws -> EncodedPicture {
        let number = scale.withLock { scale in scale.number(for: quality) { measuredQuality(of: $0) } }
        guard let bytes = encoded(image, number: number) else {
            throw PictureFitError.notEncodable("ImageIO could not encode it")
        }
        return EncodedPicture(bytes: bytes, size: PictureSize(width: image.width, height: image.height))
    }

    /// Makes an opaque black bitmap with 8 bits per channel.
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
