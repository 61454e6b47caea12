/// Recognizes files by their first bytes: pictures, videos, and what else forms often contain.
package enum FileSignature {
    /// How many first bytes matter.
    package static let bytesCount = 32

    /// The media type that a file's first bytes show; `nil` if they match no known format.
    package static func mediaType(of start: [UInt8]) -> String? {
        if let brand = isoBrand(of: start) { return typeByBrand[brand] ?? "video/mp4" }
        return signatures.first { $0.matches(start) }?.type
    }

    /// The major brand of an ISO base media file (ISO/IEC 14496-12 §4.3): HEIC, AVIF, MP4 and QuickTime share
    /// the container and differ only in it.
    private static func isoBrand(of start: [UInt8]) -> String? {
        guard start.count >= 12, start[4..<8].elementsEqual("ftyp".utf8) else { return nil }
        return String(decoding: start[8..<12], as: UTF8.self)
    }

    private static let typeByBrand = [
        "heic": "image/heic", "heix": "image/heic", "heim": "image/heic", "heis": "image/heic", "hevc": "image/heic",
        "hevx": "image/heic", "mif1": "image/heif", "msf1": "image/heif", "avif": "image/avif", "avis": "image/avif",
        "qt  ": "video/quicktime", "M4A ": "audio/mp4", "M4B ": "audio/mp4",
    ]

    /// Bytes that a format has at a fixed place.
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
        Signature("application/ogg", Array("OggS".utf8)),
        Signature("application/zip", [0x50, 0x4B, 0x03, 0x04]),
        Signature("application/gzip", [0x1F, 0x8B, 0x08]),
        Signature("image/bmp", Array("BM".utf8), further: (6, [0, 0, 0, 0])),
    ]
}
