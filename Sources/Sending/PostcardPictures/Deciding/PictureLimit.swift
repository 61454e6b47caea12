public import PostcardForm

/// The bytes and pixels that a picture may have.
///
/// ```swift
/// var limit = PictureLimit(maximumBytes: 1_000_000)
/// limit.acceptedTypes = [.jpeg]
/// let picture = try await PictureFitter().fit(photo, to: limit)
/// ```
///
/// A picture within the limit stays as it is, if the receiver accepts its type. Any other becomes the best JPEG that
/// fits: scaled to ``maximumEdge`` first, never up, then with a quality from 82 down to 50, then with the next smaller
/// edge, down to 640 pixels. Qualities are those of libjpeg on all platforms.
public struct PictureLimit: Sendable, Hashable, Codable {
    /// The maximum size of the file, in bytes.
    public var maximumBytes: Int64

    /// The maximum length of the longer edge, in pixels. Defaults to 2,560.
    public var maximumEdge: Int

    /// The types that the receiver accepts. A picture of another type becomes a JPEG, which is accepted always.
    /// Defaults to what every browser shows: JPEG, PNG, WebP and GIF. To send the photos of iPhones as they are, add
    /// `.heic`.
    public var acceptedTypes: Set<MediaType>

    /// The maximum number of pixels of a picture that is decoded. A file of a few bytes may claim any number, so this
    /// is checked before any memory is reserved. Defaults to 100 million.
    public var maximumPixels: Int64

    /// What happens to a picture that cannot be made to fit. Defaults to ``Failure/fail``.
    public var onFailure: Failure

    /// What happens to a picture that cannot be read or cannot be made to fit.
    public enum Failure: String, Sendable, Hashable, Codable {
        /// ``PictureFitError`` is thrown.
        case fail
        /// The original is the result, even if it exceeds the limit.
        case sendOriginal
    }

    /// Makes a limit.
    ///
    /// - Parameters:
    ///   - maximumBytes: The maximum size of the file, in bytes.
    ///   - maximumEdge: The maximum length of the longer edge, in pixels. Defaults to 2,560.
    ///   - acceptedTypes: The types that the receiver accepts. Defaults to JPEG, PNG, WebP and GIF.
    ///   - maximumPixels: The maximum number of pixels of a picture that is decoded. Defaults to 100 million.
    ///   - onFailure: What happens to a picture that cannot be made to fit. Defaults to ``Failure/fail``.
    public init(
        maximumBytes: Int64, maximumEdge: Int = 2560, acceptedTypes: Set<MediaType> = [.jpeg, .png, .webP, .gif],
        maximumPixels: Int64 = 100_000_000, onFailure: Failure = .fail
    ) {
        self.maximumBytes = maximumBytes
        self.maximumEdge = maximumEdge
        self.acceptedTypes = acceptedTypes
        self.maximumPixels = maximumPixels
        self.onFailure = onFailure
    }
}
