import PostcardFoundation

/// Decodes and encodes pictures with the system's libraries. ``PicturePlan`` and ``PictureFit`` decide what to encode,
/// without pixels.
protocol PictureCodec: Sendable {
    /// Completes the description of a picture whose size only the codec can read.
    func complete(_ head: PictureHead, of source: PictureSource) throws -> PictureHead

    /// Decodes a picture upright, and scales it down so that its longer edge is not too long.
    ///
    /// - Parameters:
    ///   - edge: The maximum length of the result's longer edge, in pixels.
    ///   - maximumBytes: The maximum size of the JPEG in bytes, which decides whether a color profile is kept.
    func open(
        _ source: PictureSource, head: PictureHead, edge: Int, maximumBytes: Int64
    ) throws -> any DecodedPicture
}

/// A decoded picture that can be encoded several times.
protocol DecodedPicture {
    /// The number of bytes of an encoding that do not depend on the pixels.
    var fixedBytes: Int64 { get }

    /// Encodes the picture as a JPEG. The quality is on the scale of libjpeg; ``QualityScale`` converts it for encoders
    /// with another scale.
    mutating func encode(_ encoding: PictureFit.Encoding) throws -> EncodedPicture
}

/// A JPEG in memory.
struct EncodedPicture {
    let bytes: Data
    let size: PictureSize
}

/// The codec of a build that cannot decode or encode pictures.
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

/// Converts a quality on libjpeg's scale to the number of an encoder with another scale.
///
/// Each number is measured once: a small picture is encoded with it, and the quantization tables of the result show the
/// quality.
struct QualityScale {
    /// The measured qualities by the encoder's number in hundredths; `nil` for a result that was not a JPEG.
    private var measured: [Int: Int?] = [:]

    /// The encoder's smallest number that gives at least the quality, from 0 to 1 in steps of a hundredth.
    ///
    /// - Parameters:
    ///   - quality: The quality on the scale of libjpeg, from 1 to 100.
    ///   - measure: Encodes a small picture with a number, and returns the quality according to its tables.
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
