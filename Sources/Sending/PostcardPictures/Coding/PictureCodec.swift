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

/// Finds the number by which an encoder is asked for a quality, if it does not count as libjpeg does.
///
/// What a number means is measured: a small picture is encoded with it, and the quantization tables of the result show
/// the quality. Each number is measured once.
struct QualityScale {
    /// The qualities that hundredths of the encoder's numbers gave; `nil` for what is no JPEG.
    private var measured: [Int: Int?] = [:]

    /// The smallest number, from 0 to 1 in steps of a hundredth, that gives at least a quality.
    ///
    /// - Parameters:
    ///   - quality: The quality from 1 to 100, as libjpeg counts it.
    ///   - measure: Encodes a small picture with a number, and returns the quality that its tables show.
    /// - Returns: A hundredth of the quality if the tables cannot be read; 1 if no number gives the quality.
    mutating func number(
        for quality: Int, measuring measure: (Double) throws -> Int?
    ) rethrows -> Double {
        var (low, high) = (0, 100)
        while low < high {
            let middle = (low + high) / 2
            guard let found = try value(of: middle, measure) else { return Double(quality) / 100 }
            if found >= quality { high = middle } else { low = middle + 1 }
        }
        return Double(high) / 100
    }

    private mutating func value(of hundredths: Int, _ measure: (Double) throws -> Int?) rethrows -> Int? {
        if let known = measured[hundredths] { return known }
        let found = try measure(Double(hundredths) / 100)
        measured.updateValue(found, forKey: hundredths)
        return found
    }
}
