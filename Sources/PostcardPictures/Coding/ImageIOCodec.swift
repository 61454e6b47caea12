#if canImport(ImageIO)
import CoreGraphics
import Foundation
import ImageIO
import PostcardForm
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
        ImageIOPicture(picture: try OpenedPicture(source, head.type))
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
    private var edge = 0
    private var image: CGImage?

    init(picture: OpenedPicture) {
        self.picture = picture
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
        return try autoreleasepool { try encoded(image, quality: encoding.quality) }
    }

    /// The picture, upright and scaled.
    private func decoded(toEdge edge: Int) throws -> CGImage {
        let options =
            [
                kCGImageSourceCreateThumbnailFromImageAlways: true,
                kCGImageSourceCreateThumbnailWithTransform: true,
                kCGImageSourceShouldCacheImmediately: true,
                kCGImageSourceThumbnailMaxPixelSize: edge,
            ] as CFDictionary
        let image = CGImageSourceCreateThumbnailAtIndex(picture.source, picture.index, options)
        let isWhole = CGImageSourceGetStatusAtIndex(picture.source, picture.index) == .statusComplete
        guard let image, isWhole else { throw PictureFitError.damaged("its pixels are cut off or unreadable") }
        // A JPEG of CMYK is one that browsers do not show.
        switch image.colorSpace?.model {
        case .rgb?, .monochrome?: return image
        default: return try inRGB(image)
        }
    }

    private func inRGB(_ image: CGImage) throws -> CGImage {
        guard let space = CGColorSpace(name: CGColorSpace.sRGB),
            let context = CGContext(
                data: nil, width: image.width, height: image.height, bitsPerComponent: 8, bytesPerRow: 0, space: space,
                bitmapInfo: CGImageAlphaInfo.noneSkipLast.rawValue)
        else { throw PictureFitError.tooMuchMemory("its colors have to be converted") }
        context.draw(image, in: CGRect(x: 0, y: 0, width: image.width, height: image.height))
        guard let converted = context.makeImage() else { throw PictureFitError.notEncodable("its colors are unknown") }
        return converted
    }

    /// What is transparent becomes white, which is what ImageIO does unless it is asked for another color.
    private func encoded(_ image: CGImage, quality: Int) throws -> EncodedPicture {
        let bytes = NSMutableData()
        let options = [kCGImageDestinationLossyCompressionQuality: Double(quality) / 100] as CFDictionary
        guard
            let destination = CGImageDestinationCreateWithData(
                bytes as CFMutableData, UTType.jpeg.identifier as CFString, 1, nil)
        else { throw PictureFitError.notEncodable("ImageIO has no encoder for JPEG") }
        CGImageDestinationAddImage(destination, image, options)
        guard CGImageDestinationFinalize(destination) else {
            throw PictureFitError.notEncodable("ImageIO could not encode it")
        }
        return EncodedPicture(
            bytes: Data(referencing: bytes), size: PictureSize(width: image.width, height: image.height))
    }
}
#endif
