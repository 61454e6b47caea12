/// The media type of a part's content, such as `image/jpeg` (RFC 9110 §8.3.1).
public struct MediaType: Sendable, Hashable, CustomStringConvertible {
    /// The type as it stands in a header field, parameters included.
    public let value: String

    /// Takes a media type, with parameters or without.
    ///
    /// - Parameter value: Such as `image/jpeg` or `text/plain; charset=utf-8`.
    /// - Throws: ``FormError`` with the code ``FormError/Code/invalidMediaType`` where it is not `type/subtype`,
    ///   or where it holds what no header field may.
    public init(_ value: String) throws(FormError) {
        guard MediaType.isWellFormed(value) else { throw .invalidMediaType(value) }
        self.value = value
    }

    /// For types that are known to be well formed.
    private init(known value: String) {
        self.value = value
    }

    /// Whether the text is `type "/" subtype`, parameters after it left unread but for forbidden characters.
    static func isWellFormed(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard !bytes.contains(where: \.isForbiddenInValue) else { return false }
        let end = bytes.firstIndex { $0 == .semicolon || $0.isBlank } ?? bytes.endIndex
        guard let slash = bytes[..<end].firstIndex(of: .slash), slash > 0, slash + 1 < end else { return false }
        return bytes[..<slash].allSatisfy(\.isTokenCharacter)
            && bytes[(slash + 1)..<end].allSatisfy(\.isTokenCharacter)
            && bytes[end...].first(where: { !$0.isBlank }).map { $0 == .semicolon } ?? true
    }

    public var description: String { value }
}

extension MediaType {
    /// A photo as most cameras and phones write it.
    public static let jpeg = MediaType(known: "image/jpeg")
    /// A picture without loss, with transparency.
    public static let png = MediaType(known: "image/png")
    /// A GIF picture or animation.
    public static let gif = MediaType(known: "image/gif")
    /// A WebP picture.
    public static let webP = MediaType(known: "image/webp")
    /// A photo as iPhones write it.
    public static let heic = MediaType(known: "image/heic")
    /// An HEIF picture that is not HEVC-coded.
    public static let heif = MediaType(known: "image/heif")
    /// An AVIF picture.
    public static let avif = MediaType(known: "image/avif")
    /// A TIFF picture.
    public static let tiff = MediaType(known: "image/tiff")
    /// A bitmap.
    public static let bmp = MediaType(known: "image/bmp")
    /// A drawing in SVG.
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
    /// Bytes that nothing more is known of.
    public static let octetStream = MediaType(known: "application/octet-stream")
}
