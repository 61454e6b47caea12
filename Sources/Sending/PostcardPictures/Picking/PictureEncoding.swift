import PostcardForm

/// How a picture in memory is encoded before it is sent.
public struct PictureEncoding: Sendable, Hashable {
    /// What the encoded bytes are.
    let contentType: MediaType
    let fileExtension: String
    /// The quality from 0, the smallest, to 1, the best; `nil` for a format without loss.
    let quality: Double?

    /// A JPEG. It has no transparency, and loses the camera's metadata, such as the location.
    ///
    /// - Parameter quality: From 0, the smallest, to 1, the best. Above 0.9 the bytes grow much and the picture
    ///   hardly.
    public static func jpeg(quality: Double = 0.85) -> PictureEncoding {
        let isNumber = !quality.isNaN
        return PictureEncoding(
            contentType: .jpeg, fileExtension: "jpg", quality: isNumber ? min(max(quality, 0), 1) : 0.85)
    }

    /// A PNG: without loss, with transparency, and many times as large for a photo.
    public static let png = PictureEncoding(contentType: .png, fileExtension: "png", quality: nil)
}
