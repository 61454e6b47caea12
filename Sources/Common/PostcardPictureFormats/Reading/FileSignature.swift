/// Recognizes pictures, videos and other common files by their first bytes.
package enum FileSignature {
    /// The number of first bytes needed to recognize a file.
    package static let bytesCount = 32

    /// The media type that a file's first bytes show; `nil` if they match no known format.
    package static func mediaType(of start: [UInt8]) -> String? {
        if let brands = isoBrands(of: start) { return type(of: brands) }
        return signatures.first { $0.matches(start) }?.type
    }

    /// The brands of an ISO base media file (ISO/IEC 14496-12 §4.3), the major brand first. Only brands distinguish
    /// HEIC, AVIF, MP4 and QuickTime.
    private static func isoBrands(of start: [UInt8]) -> [String]? {
        guard start.count >= 12, start[4..<8].elementsEqual("ftyp".utf8) else { return nil }
        let end = start[..<4].bigEndian
        // A version is between the major brand and the others.
        let others = stride(from: 16, through: start.count - 4, by: 4).filter { Int64($0) + 4 <= end }
        return ([8] + others).map { String(decoding: start[$0..<($0 + 4)], as: UTF8.self) }
    }

    private static func type(of brands: [String]) -> String {
        let major = brands.first.flatMap { typeByBrand[$0] }
        if let major, major != "image/heif" { return major }
        // If the major brand does not say how a picture is coded, one of these brands may. Videos may also list other
        // brands of pictures, which are ignored.
        let others = brands.dropFirst().filter { ["heic", "heix", "mif1", "avif"].contains($0) }
            .compactMap { typeByBrand[$0] }
        if let avif = others.first(where: { $0 == "image/avif" }) { return avif }
        return major ?? others.first { $0.hasPrefix("image/") } ?? "video/mp4"
    }

    private static let typeByBrand = [
        "heic": "image/heic", "heix": "image/heic", "heim": "image/heic", "heis": "image/heic", "hevc": "image/heic",
        "hevx": "image/heic", "mif1": "image/heif", "msf1": "image/heif", "avif": "image/avif", "avis": "image/avif",
        "qt  ": "video/quicktime", "M4A ": "audio/mp4", "M4B ": "audio/mp4",
    ]

    /// Bytes at fixed offsets that identify a format.
    private struct Signature: Sendable {
        let type: String
        let bytes: [UInt8]
        var further: (offset: Int, bytes: [UInt8])?

        init(_ type: String, _ bytes: [UInt8], further: (offset: Int, bytes: [UInt8])? = nil) {
            self.type = type
            self.bytes = bytes
            self.further = further
        }

        func matches(_ start: [UInt8]) -> Bool {
            guard start.starts(with: bytes) else { return false }
            guard let further else { return true }
            return start.dropFirst(further.offset).starts(with: further.bytes)
        }
    }

    private static let signatures: [Signature] = [
        Signature("image/jpeg", [0xFF, 0xD8, 0xFF]),
        Signature("image/png", [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
        Signature("image/gif", Array("GIF87a".utf8)),
        Signature("image/gif", Array("GIF89a".utf8)),
        Signature("image/webp", Array("RIFF".utf8), further: (8, Array("WEBP".utf8))),
        Signature("audio/wav", Array("RIFF".utf8), further: (8, Array("WAVE".utf8))),
        Signature("application/pdf", Array("%PDF-".utf8)),
        Signature("image/tiff", [0x49, 0x49, 0x2A, 0x00]),
        Signature("image/tiff", [0x4D, 0x4D, 0x00, 0x2A]),
        Signature("video/webm", [0x1A, 0x45, 0xDF, 0xA3]),
        Signature("audio/mpeg", Array("ID3".utf8)),
        // ADTS (ISO/IEC 13818-7) for MPEG-4 and MPEG-2, with and without a checksum.
        Signature("audio/aac", [0xFF, 0xF0]), Signature("audio/aac", [0xFF, 0xF1]),
        Signature("audio/aac", [0xFF, 0xF8]), Signature("audio/aac", [0xFF, 0xF9]),
        Signature("audio/flac", Array("fLaC".utf8)),
        Signature("audio/x-caf", Array("caff".utf8)),
        Signature("audio/aiff", Array("FORM".utf8), further: (8, Array("AIFF".utf8))),
        Signature("audio/aiff", Array("FORM".utf8), further: (8, Array("AIFC".utf8))),
        Signature("application/ogg", Array("OggS".utf8)),
        Signature("application/zip", [0x50, 0x4B, 0x03, 0x04]),
        Signature("application/gzip", [0x1F, 0x8B, 0x08]),
        Signature("image/bmp", Array("BM".utf8), further: (6, [0, 0, 0, 0])),
    ]
}
