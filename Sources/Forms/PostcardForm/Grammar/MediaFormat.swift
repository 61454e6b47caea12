/// What the first bytes of a file can say about the type that its sender claims.
enum MediaFormat {
    /// The canonical spelling of a type: `image/jpeg` for `image/jpg`.
    static func canonical(_ essence: String) -> String { aliases[essence] ?? essence }

    private static let aliases: [String: String] = [
        "image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png",
        "image/x-ms-bmp": "image/bmp", "image/x-bmp": "image/bmp",
        // One container, whose brand says little of how the picture in it is coded.
        "image/heif": "image/heic", "image/heic-sequence": "image/heic", "image/heif-sequence": "image/heic",
        "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav",
        "audio/vnd.wave": "audio/wav", "audio/x-m4a": "audio/mp4", "audio/m4a": "audio/mp4",
        "audio/x-aac": "audio/aac", "audio/aacp": "audio/aac", "audio/x-flac": "audio/flac",
        "audio/x-aiff": "audio/aiff", "audio/caf": "audio/x-caf",
        "application/x-zip-compressed": "application/zip", "application/x-gzip": "application/gzip",
        "text/xml": "application/xml", "application/x-pdf": "application/pdf",
    ]

    /// Types whose every file begins in a way that ``MediaType/forFirstBytes(_:)`` knows.
    static func isAlwaysRecognised(_ essence: String) -> Bool { recognised.contains(canonical(essence)) }

    private static let recognised: Set<String> = [
        "image/jpeg", "image/png", "image/gif", "image/webp", "image/heic", "image/avif", "image/tiff", "image/bmp",
        "application/pdf", "application/gzip", "audio/wav", "video/webm", "application/ogg", "audio/ogg", "video/ogg",
    ]

    /// Whether a file of the claimed type may begin as one of the found type does: because it is the same, or
    /// because the format is built on the other (a word processor's file is a ZIP archive).
    static func mayBegin(_ claimed: String, as found: MediaType) -> Bool {
        if canonical(claimed) == canonical(found.value) { return true }
        switch found {
        case .zip: return claimed.hasPrefix("application/") && !isAlwaysRecognised(claimed)
        case .gzip: return claimed.hasPrefix("application/x-") || claimed == "image/svg+xml"
        case .ogg: return ["audio/ogg", "video/ogg", "audio/opus"].contains(claimed)
        case .webM: return ["audio/webm", "video/x-matroska", "audio/x-matroska"].contains(claimed)
        case .tiff: return claimed.hasPrefix("image/") && !isAlwaysRecognised(claimed)
        case .mp4, .quickTime, .m4a:
            return claimed.hasPrefix("video/") && !isAlwaysRecognised(claimed)
                || ["audio/mp4", "audio/aac"].contains(canonical(claimed))
        case .mp3: return ["audio/aac", "audio/flac"].contains(claimed)
        default: return false
        }
    }
}
