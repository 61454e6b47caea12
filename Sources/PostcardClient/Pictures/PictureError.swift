import PostcardForm

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A picture could not be made into a part of a form.
public struct PictureError: Error, Sendable, CustomStringConvertible {
    /// What happened and what to do.
    public let message: String

    public var description: String { message }

    static func notEncodable(_ encoding: PictureEncoding) -> PictureError {
        PictureError(
            message: "The picture cannot be encoded as \(encoding.contentType): it has no pixels, or too many. "
                + "Check that it was loaded.")
    }

    static var notLoadable: PictureError {
        PictureError(
            message: "The photo library gives no file of the picked item. Ask for its picture or data instead.")
    }
}

extension PictureError: LocalizedError {
    /// The same as ``message``.
    public var errorDescription: String? { message }
}
