public import PostcardForm

/// A picture within its limit.
///
/// A new file has neither EXIF nor XMP: the place, the time, the camera and its owner are gone, and the pixels are
/// upright. The color profile is kept. An original keeps all of it: remove it with `FormPart.metadata`.
public struct FittedPicture: Sendable {
    /// The file, or the bytes if the picture was passed as bytes.
    ///
    /// A new file belongs to the caller, who removes it after the upload.
    public let content: FormPart.Content

    /// The number of bytes.
    public let bytes: Int64

    /// The picture's size when it is shown upright; `nil` for an original whose size could not be read.
    public let size: PictureSize?

    /// The quality of the JPEG, from 50 to 82, as libjpeg counts it; `nil` for an original.
    ///
    /// The quality is read from the quantization tables of the JPEG, so a number means the same whichever encoder wrote
    /// them. A quality is a little higher than 82 if the encoder's own scale has no such step.
    public let quality: Int?

    /// The picture's media type, as its bytes show it; `nil` for an original of an unknown type.
    public let contentType: MediaType?

    /// Whether the picture is the one that was passed in, byte for byte.
    public let isOriginal: Bool

    /// How many times it was encoded: 0 for an original, else at most 6.
    public let encodings: Int

    /// The name to send it by: the original's, with an extension that fits what it is now.
    ///
    /// - Parameter filename: The name of the original, such as `IMG_0001.HEIC`, which becomes `IMG_0001.jpg`.
    public func filename(for filename: String) -> String {
        guard !isOriginal, MediaType.forExtension(of: filename) != .jpeg else { return filename }
        guard let dot = filename.lastIndex(of: "."), MediaType.forExtension(of: filename) != nil else {
            return filename.isEmpty ? "picture.jpg" : "\(filename).jpg"
        }
        let stem = filename[..<dot]
        return "\(stem.isEmpty ? "picture" : stem).jpg"
    }
}
