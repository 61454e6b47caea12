public import Foundation
public final class CGColorSpace {
    public init?(name: CFString) { fatalError() }
    public static var sRGB: CFString { fatalError() }
    public var model: CGColorSpaceModel { fatalError() }
}
public enum CGColorSpaceModel: Int32, Sendable {
    case unknown = -1
    case monochrome, rgb, cmyk, lab, deviceN, indexed, pattern, XYZ
}
public enum CGImageAlphaInfo: UInt32, Sendable {
    case none, premultipliedLast, premultipliedFirst, last, first, noneSkipLast, noneSkipFirst, alphaOnly
}
public final class CGImage {
    public var width: Int { fatalError() }
    public var height: Int { fatalError() }
    public var colorSpace: CGColorSpace? { fatalError() }
}
public final class CGContext {
    public init?(
        data: UnsafeMutableRawPointer?, width: Int, height: Int, bitsPerComponent: Int, bytesPerRow: Int,
        space: CGColorSpace, bitmapInfo: UInt32
    ) { fatalError() }
    public func setFillColor(gray: CGFloat, alpha: CGFloat) { fatalError() }
    public func fill(_ rect: CGRect) { fatalError() }
    public func draw(_ image: CGImage, in rect: CGRect, byTiling: Bool = false) { fatalError() }
    public func makeImage() -> CGImage? { fatalError() }
}
