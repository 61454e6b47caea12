import PostcardPictureFormats

/// The media type of a part's content, such as `image/jpeg` (RFC 9110 §8.3.1).
///
/// ```swift
/// form.append(data, named: "model", filename: "bear.usdz", contentType: "model/vnd.usdz+zip")
/// ```
public struct MediaType: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// The type as it is written in a header field, including parameters.
    public let value: String

    /// Makes a media type from text, with or without parameters.
    ///
    /// - Parameter value: A text such as `image/jpeg` or `text/plain; charset=utf-8`.
    /// - Throws: ``FormError`` with the code ``FormError/Code/invalidMediaType`` if the text is not `type/subtype`, or
    ///   contains characters that are not allowed in header fields.
    public init(_ value: String) throws(FormError) {
        guard MediaType.isWellFormed(value) else { throw .invalidMediaType(value) }
        self.value = value
    }

    /// Makes a media type from a literal, such as `"image/jpeg"`.
    ///
    /// A literal that is not a media type stops the program with a message, in a release build too. For other texts,
    /// use ``init(_:)``, which throws.
    public init(stringLiteral value: String) {
        guard MediaType.isWellFormed(value) else {
            let error = FormError.invalidMediaType(value)
            fatalError([error.message, error.advice].compactMap { $0 }.joined(separator: " "))
        }
        self.value = value
    }

    /// Makes a type from a well-formed text.
    private init(known value: String) {
        self.value = value
    }

    /// Whether a text is a type and a subtype around a slash. The parameters are only searched for forbidden
    /// characters.
    static func isWellFormed(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard !bytes.contains(where: { $0.isForbiddenInValue }) else { return false }
        let end = bytes.firstIndex { $0 == .semicolon || $0.isBlank } ?? bytes.endIndex
        guard let slash = bytes[..<end].firstIndex(of: .slash), slash > 0, slash + 1 < end else { return false }
        return bytes[..<slash].allSatisfy { $0.isTokenCharacter }
            && bytes[(slash + 1)..<end].allSatisfy({ $0.isTokenCharacter })
            && bytes[end...].first(where: { !$0.isBlank }).map { $0 == .semicolon } ?? true
    }

    public var description: String { value }
}

extension MediaType {
    /// A JPEG picture, the usual format of photos.
    public static let jpeg = MediaType(known: "image/jpeg")
    /// A PNG picture, which is lossless and may have transparency.
    public static let png = MediaType(known: "image/png")
    /// A GIF picture or animation.
    public static let gif = MediaType(known: "image/gif")
    /// A WebP picture.
    public static let webP = MediaType(known: "image/webp")
    /// A HEIC picture, the format of an iPhone's photos.
    public static let heic = MediaType(known: "image/heic")
    /// A HEIF picture that is not coded in HEVC.
    public static let heif = MediaType(known: "image/heif")
    /// An AVIF picture.
    public static let avif = MediaType(known: "image/avif")
    /// A TIFF picture.
    public static let tiff = MediaType(known: "image/tiff")
    /// A raw picture in Adobe's DNG format, such as Apple ProRAW. It begins like a TIFF.
    public static let dng = MediaType(known: "image/x-adobe-dng")
    /// A BMP picture.
    public static let bmp = MediaType(known: "image/bmp")
    /// An SVG drawing.
    public static let svg = MediaType(known: "image/svg+xml")
    /// A PDF document.
    public static let pdf = MediaType(known: "application/pdf")
    /// A film in an MPEG-4 container.
    public static let mp4 = MediaType(known: "video/mp4")
    /// A film in a QuickTime container.
    public static let quickTime = MediaType(known: "video/quicktime")
    /// A film in a WebM container.
    public static let webM = MediaType(known: "video/webm")
    /// Sound in MPEG layer 3.
    public static let mp3 = MediaType(known: "audio/mpeg")
    /// Sound in an MPEG-4 container.
    public static let m4a = MediaType(known: "audio/mp4")
    /// Sound in a WAVE container.
    public static let wave = MediaType(known: "audio/wav")
    /// Sound in AAC, without a container.
    public static let aac = MediaType(known: "audio/aac")
    /// Sound in FLAC.
    public static let flac = MediaType(known: "audio/flac")
    /// Sound in Apple's Core Audio Format.
    public static let caf = MediaType(known: "audio/x-caf")
    /// Sound in AIFF or AIFF-C.
    public static let aiff = MediaType(known: "audio/aiff")
    /// Sound in Opus, in an Ogg container (RFC 7845 §9).
    public static let opus = MediaType(known: "audio/ogg")
    /// Sound or film in an Ogg container.
    public static let ogg = MediaType(known: "application/ogg")
    /// A ZIP archive.
    public static let zip = MediaType(known: "application/zip")
    /// Data compressed by gzip.
    public static let gzip = MediaType(known: "application/gzip")
    /// JSON.
    public static let json = MediaType(known: "application/json")
    /// XML.
    public static let xml = MediaType(known: "application/xml")
    /// Plain text.
    public static let plainText = MediaType(known: "text/plain")
    /// Comma-separated values.
    public static let csv = MediaType(known: "text/csv")
    /// A web page.
    public static let html = MediaType(known: "text/html")
    /// Markdown.
    public static let markdown = MediaType(known: "text/markdown")
    /// Bytes of an unknown kind.
    public static let octetStream = MediaType(known: "application/octet-stream")
}

extension MediaType {
    /// The media type for a file's extension.
    ///
    /// - Parameter filename: A name or a path. The case of its extension is ignored.
    /// - Returns: `nil` if the name has no extension, or an unknown extension.
    public static func forExtension(of filename: String) -> MediaType? {
        let lastComponent = filename.utf8.split(whereSeparator: { $0 == .slash || $0 == .backslash }).last
        guard let lastComponent, let dot = lastComponent.lastIndex(of: UInt8(ascii: ".")) else { return nil }
        let suffix = lastComponent[dot...].dropFirst().map { $0.asciiLowercased }
        return byExtension[String(decoding: suffix, as: UTF8.self)]
    }

    private static let byExtension: [String: MediaType] = [
        "jpg": .jpeg, "jpeg": .jpeg, "jpe": .jpeg, "jfif": .jpeg, "png": .png, "gif": .gif, "webp": .webP,
        "heic": .heic, "heics": .heic, "heif": .heif, "hif": .heif, "avif": .avif, "tif": .tiff, "tiff": .tiff,
        "dng": .dng, "bmp": .bmp, "svg": .svg, "pdf": .pdf, "mp4": .mp4, "m4v": .mp4, "mov": .quickTime, "webm": .webM,
        "weba": "audio/webm",
        "mpeg": "video/mpeg", "mpg": "video/mpeg", "mp3": .mp3, "mpga": .mp3, "m4a": .m4a, "wav": .wave, "ogg": .ogg,
        "opus": .opus, "oga": .opus,
        "aac": .aac, "flac": .flac, "caf": .caf, "aif": .aiff, "aiff": .aiff, "aifc": .aiff, "zip": .zip, "gz": .gzip,
        "json": .json, "xml": .xml,
        "txt": .plainText, "text": .plainText, "log": .plainText, "csv": .csv, "html": .html, "htm": .html,
        "md": .markdown,
    ]

    /// The number of first bytes that ``forFirstBytes(_:)`` examines.
    public static let firstBytesCount = FileSignature.bytesCount

    /// The media type that a file's first bytes show.
    ///
    /// - Parameter bytes: The beginning of the content. Only the first ``firstBytesCount`` bytes matter.
    /// - Returns: `nil` if the bytes match no known format.
    public static func forFirstBytes(_ bytes: some Collection<UInt8>) -> MediaType? {
        FileSignature.mediaType(of: Array(bytes.prefix(firstBytesCount))).map { MediaType(known: $0) }
    }

    /// The media type that a file's name and its first bytes show together.
    ///
    /// The extension decides between kinds of text, and between formats that begin in the same way, such as DNG and
    /// TIFF. If the first bytes contradict the extension, the bytes decide: a HEIC picture named `photo.jpg` is
    /// `image/heic`.
    ///
    /// - Parameters:
    ///   - filename: A name or a path; `nil` if the file has none.
    ///   - bytes: The beginning of the content. Only the first ``firstBytesCount`` bytes matter.
    /// - Returns: `nil` if neither the name nor the bytes show a known type.
    public static func forFile(named filename: String?, firstBytes bytes: some Collection<UInt8>) -> MediaType? {
        let promised = filename.flatMap(forExtension(of:))
        guard let found = forFirstBytes(bytes) else { return promised }
        guard let promised else { return found }
        return promised.beginsUnlike(found) ? found : promised
    }

    /// Whether this type contradicts the type that a file's first bytes show: files of the two types begin differently.
    package func isContradicted(by found: MediaType) -> Bool {
        (try? MediaType(essence))?.beginsUnlike(found) ?? false
    }

    /// Whether ``forFirstBytes(_:)`` recognizes every file of this type.
    package var isAlwaysRecognised: Bool { MediaFormat.isAlwaysRecognised(essence) }

    /// Whether files of both types begin with known and different bytes.
    private func beginsUnlike(_ other: MediaType) -> Bool {
        // Pictures and films have the same container. A file with an unknown brand is read as a film.
        if other == .mp4, [.heic, .heif, .avif].contains(self) { return false }
        guard let beginning = Self.beginnings[self], let otherBeginning = Self.beginnings[other] else { return false }
        return beginning != otherBeginning
    }

    /// The group number of each type. Files of the types in a group begin in the same way. Texts and types without a
    /// signature have no group.
    private static let beginnings: [MediaType: Int] = {
        let kinds: [[MediaType]] = [
            [.jpeg], [.png], [.gif], [.webP], [.tiff, .dng], [.heic, .heif, .avif], [.mp4, .quickTime, .m4a],
            [.webM, "audio/webm"], [.bmp], [.pdf], [.wave], [.flac], [.caf], [.aiff], [.ogg, .opus], [.zip], [.gzip],
        ]
        return Dictionary(uniqueKeysWithValues: kinds.enumerated().flatMap { kind, types in types.map { ($0, kind) } })
    }()
}

extension MediaType {
    /// The type and subtype in lower case, without parameters.
    var essence: String {
        let bytes = value.utf8.prefix { $0 != .semicolon && !$0.isBlank }
        return String(decoding: bytes.map { $0.asciiLowercased }, as: UTF8.self)
    }
}

/// Compares the type that the first bytes of a file show with the type that its sender claims.
enum MediaFormat {
    /// The canonical spelling of a type: `image/jpeg` for `image/jpg`.
    static func canonical(_ essence: String) -> String { aliases[essence] ?? essence }

    private static let aliases: [String: String] = [
        "image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png",
        "image/x-ms-bmp": "image/bmp", "image/x-bmp": "image/bmp",
        // HEIC and HEIF have one container, and its brand does not show how the picture is coded.
        "image/heif": "image/heic", "image/heic-sequence": "image/heic", "image/heif-sequence": "image/heic",
        "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav",
        "audio/vnd.wave": "audio/wav", "audio/x-m4a": "audio/mp4", "audio/m4a": "audio/mp4",
        "audio/x-aac": "audio/aac", "audio/aacp": "audio/aac", "audio/x-flac": "audio/flac",
        "audio/x-aiff": "audio/aiff", "audio/caf": "audio/x-caf",
        "application/x-zip-compressed": "application/zip", "application/x-gzip": "application/gzip",
        "text/xml": "application/xml", "application/x-pdf": "application/pdf",
    ]

    /// Whether ``MediaType/forFirstBytes(_:)`` recognizes every file of a type.
    static func isAlwaysRecognised(_ essence: String) -> Bool { recognised.contains(canonical(essence)) }

    private static let recognised: Set<String> = [
        "image/jpeg", "image/png", "image/gif", "image/webp", "image/heic", "image/avif", "image/tiff", "image/bmp",
        "application/pdf", "application/gzip", "audio/wav", "video/webm", "application/ogg", "audio/ogg", "video/ogg",
    ]

    /// Whether a file of the claimed type may begin like a file of the found type. The types may be the same, the
    /// claimed format may extend the found format (DOCX and ZIP), or both may begin with the same tag (MP3 and AAC).
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
