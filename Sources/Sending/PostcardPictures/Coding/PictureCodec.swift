import PostcardFoundation

/// Decodes and encodes pictures: the thin edge to the system's libraries. Everything that can be decided without pixels
/// is decided by ``PicturePlan`` and ``PictureFit``.
protocol PictureCodec: Sendable {
    /// Completes the head of a picture whose size the caller could not read.
    func complete(_ head: PictureHead, of source: PictureSource) throws -> PictureHead

    /// Decodes a picture, upright, with at most as many pixels as its longer edge may have.
    ///
    /// - Parameters:
    ///   - edge: The longer edge of the result.
    ///   - maximumBytes: The maximum size of the JPEG, in bytes. It decides whether a color profile is kept.
    func open(
        _ source: PictureSource, head: PictureHead, edge: Int, maximumBytes: Int64
    ) throws -> any DecodedPicture
}

/// A picture that can be encoded several times.
protocol DecodedPicture {
    /// The bytes of every encoding that do not depend on the pixels.
    var fixedBytes: Int64 { get }

    /// Encodes it as a JPEG.
    ///
    /// The quality is libjpeg's: an encoder that counts otherwise asks a ``QualityScale`` for its own number.
    mutating func encode(_ encoding: PictureFit.Encoding) throws -> EncodedPicture
}

/// A JPEG in memory.
struct EncodedPicture {
    let bytes: Data
    let size: PictureSize
}

/// The codec of a build that has none.
struct AbsentCodec: PictureCodec {
    func complete(_ head: PictureHead, of source: PictureSource) throws -> PictureHead {
        throw PictureFitError.builtWithoutPictures
    }

    func open(
        _ source: PictureSource, head: PictureHead, edge: Int, maximumBytes: Int64
    ) throws -> any DecodedPicture {
        throw PictureFitError.builtWithoutPictures
    }
}
