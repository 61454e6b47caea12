import PostcardFoundation
import PostcardPictureFormats

/// The format that the Content-Type or filename of a file promises.
enum FilePromise: Sendable, Equatable {
    case binary(FileFormat)
    /// Any text, such as the base64 of a picture.
    case text
    case unknown

    /// The promised format; `nil` if the file may be a text.
    var format: FileFormat? { if case .binary(let format) = self { format } else { nil } }

    /// Finds the promised format. The media type may have parameters, and the filename may have a path.
    init(contentType: String?, filename: String?) {
        // Most fields have neither a type nor a filename.
        if contentType == nil, filename == nil {
            self = .unknown
            return
        }
        // No known type is longer than 128 bytes, and longer texts would take long to look up.
        let essence = Self.lowercased((contentType ?? "").utf8.prefix { $0 != .semicolon && !$0.isBlank }.prefix(128))
        let name = (filename ?? "").utf8.suffix(24)
        let dot = name.lastIndex(of: UInt8(ascii: "."))
        let suffix = dot.map { Self.lowercased(name[name.index(after: $0)...]) } ?? ""
        let byName = suffix.isEmpty ? nil : MediaType.forExtension(of: ".\(suffix)")
        let formats = [
            FileFormat(essence), byName.flatMap { FileFormat($0.value) }, FileFormat(archiveSuffix: suffix),
        ].compactMap { $0 }
        if let format = formats.first(where: { $0 != .other }) ?? formats.first {
            self = .binary(format)
        } else if Self.isText(essence) || byName != nil || Self.textSuffixes.contains(suffix) {
            self = .text
        } else {
            self = .unknown
        }
    }

    private static func lowercased(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes.map { $0.asciiLowercased }, as: UTF8.self)
    }

    private static func isText(_ essence: String) -> Bool {
        essence.hasPrefix("text/") || essence.hasPrefix("message/") || essence.hasSuffix("xml")
            || essence.hasSuffix("json") || essence.hasSuffix("javascript") || essence.hasSuffix("yaml")
            || essence.hasPrefix("application/x-pem") || essence.hasPrefix("application/pgp")
    }

    private static let textSuffixes: Set<String> = [
        "pem", "crt", "cer", "key", "csr", "pub", "asc", "sig", "b64", "base64", "hex", "dump", "srt", "vtt", "yaml",
        "yml", "toml", "ini", "conf", "js", "ts", "css", "swift", "py", "java", "c", "h", "sh", "sql", "eml", "ics",
        "vcf",
        "tsv", "jsonl", "ndjson", "geojson", "xsd", "gpx", "kml", "tex", "rtf", "ps", "eps", "xbm", "xpm", "m3u",
        "m3u8",
    ]
}

enum FileFormat: Sendable, Equatable {
    case jpeg, png, gif, webP
    /// HEIC, AVIF, MP4 and QuickTime.
    case boxes
    /// ZIP, and formats that contain a ZIP archive.
    case zip
    case pdf
    case other

    /// The format of a media type. `nil` if the type may be that of a text.
    init?(_ essence: String) {
        switch MediaFormat.canonical(essence) {
        case "image/jpeg": self = .jpeg
        case "image/png": self = .png
        case "image/gif": self = .gif
        case "image/webp": self = .webP
        case "application/pdf": self = .pdf
        case "image/heic", "image/avif", "video/mp4", "video/quicktime", "video/x-m4v", "video/3gpp", "audio/mp4":
            self = .boxes
        case let type where Self.isArchive(type): self = .zip
        case "application/gzip", "application/ogg": self = .other
        // Pictures in ASCII formats, and playlists, are texts.
        case let type where type.contains("svg") || type.contains("x-portable-") || type.contains("x-x"): return nil
        case let type where type.hasSuffix("url") || type.hasSuffix("scpls"): return nil
        case let type:
            guard ["image/", "video/", "audio/", "font/"].contains(where: type.hasPrefix) else { return nil }
            self = .other
        }
    }

    private static func isArchive(_ type: String) -> Bool {
        type == "application/zip" || type == "application/java-archive" || type.hasSuffix("+zip")
            || type.hasPrefix("application/vnd.openxmlformats") || type.hasPrefix("application/vnd.oasis.opendocument")
            || type == "application/vnd.android.package-archive"
    }

    /// The format of a filename extension. `nil` if the extension is not that of an archive.
    fileprivate init?(archiveSuffix suffix: String) {
        guard Self.archives.contains(suffix) else { return nil }
        self = .zip
    }

    private static let archives: Set<String> = [
        "docx", "docm", "dotx", "xlsx", "xlsm", "pptx", "pptm", "odt", "ods", "odp", "odg", "jar", "war", "ear", "aar",
        "apk", "ipa", "epub", "xpi", "kmz", "cbz", "usdz", "3mf", "whl", "pages", "numbers",
    ]

    /// The format that the first bytes of a file show. `nil` if they belong to no known format.
    init?(firstBytes start: [UInt8]) {
        switch FileSignature.mediaType(of: Array(start.prefix(FileSignature.bytesCount))) {
        case "image/jpeg"?: self = .jpeg
        case "image/png"?: self = .png
        case "image/gif"?: self = .gif
        case "image/webp"?: self = .webP
        case "application/pdf"?: self = .pdf
        case "application/zip"?: self = .zip
        case let type?: self = Self(type) == .boxes ? .boxes : .other
        case nil: return nil
        }
    }
}
