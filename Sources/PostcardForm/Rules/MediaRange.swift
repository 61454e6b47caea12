/// Media types that are accepted: one of them, all of a kind, or any (RFC 9110 §12.5.1).
///
/// Written `image/jpeg`, `image/*` or `*/*`, without parameters; case does not matter.
public struct MediaRange: Sendable, Hashable, CustomStringConvertible {
    /// The range in lower case.
    public let value: String

    private let type: Substring
    private let subtype: Substring

    /// Makes a range from text.
    ///
    /// - Throws: ``FormRulesError`` if it is not a media range.
    public init(_ value: String) throws(FormRulesError) {
        let isRange =
            MediaType.isWellFormed(value) && !value.utf8.contains { $0 == .semicolon || $0.isBlank }
        guard isRange, let range = MediaRange(known: value.lowercased()) else {
            throw FormRulesError(
                .invalidValue, "\(value.debugDescription) is not a media type.",
                advice: "Write type/subtype, such as image/jpeg, or image/* for all of a kind.")
        }
        self = range
    }

    /// Makes a range of one type, without its parameters.
    public init(_ type: MediaType) {
        // A media type has a slash, so that this never falls back.
        self = MediaRange(known: type.essence) ?? .any
    }

    private init?(known value: String) {
        let pieces = value.split(separator: "/", maxSplits: 1)
        // A star is only special on its own. Elsewhere it is an ordinary character.
        guard pieces.count == 2, pieces[0] != "*" || pieces[1] == "*" else { return nil }
        self.init(value: value, type: pieces[0], subtype: pieces[1])
    }

    private init(value: String, type: Substring, subtype: Substring) {
        self.value = value
        self.type = type
        self.subtype = subtype
    }

    /// Every picture: `image/*`.
    public static let anyImage = MediaRange(value: "image/*", type: "image", subtype: "*")
    /// Everything: `*/*`.
    public static let any = MediaRange(value: "*/*", type: "*", subtype: "*")

    /// Whether the range names one type.
    package var isExact: Bool { subtype != "*" }

    /// Whether a type is in the range, including its other spellings.
    package func contains(_ type: MediaType) -> Bool { contains(type.essence) }

    /// Whether a type is in the range, including its other spellings.
    func contains(_ essence: String) -> Bool {
        if type == "*" { return true }
        if isExact { return MediaFormat.canonical(value) == MediaFormat.canonical(essence) }
        return essence.hasPrefix("\(type)/")
    }

    public var description: String { value }
}

extension MediaType {
    /// The type and subtype in lower case, without parameters.
    var essence: String {
        let bytes = value.utf8.prefix { $0 != .semicolon && !$0.isBlank }
        return String(decoding: bytes.map(\.asciiLowercased), as: UTF8.self)
    }
}

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
