/// A range of accepted media types: one type, all subtypes of a type, or any type (RFC 9110 §12.5.1).
///
/// Ranges are written `image/jpeg`, `image/*` or `*/*`, without parameters. Case is ignored.
public struct MediaRange: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// The range in lower case.
    public let value: String

    private let type: Substring
    private let subtype: Substring

    /// Makes a range from text.
    ///
    /// - Throws: ``FormRulesError`` if the text is not a media range.
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

    /// Makes a range from a literal, such as `"image/jpeg"` or `"image/*"`.
    ///
    /// A literal that is not a media range stops the program with a message, in a release build too. For other texts,
    /// use ``init(_:)-(String)``, which throws.
    public init(stringLiteral value: String) {
        do {
            self = try MediaRange(value)
        } catch {
            fatalError("\(error)")
        }
    }

    /// Makes a range of one type, without its parameters.
    public init(_ type: MediaType) {
        // Every media type has a slash, so the default is never used.
        self = MediaRange(known: type.essence) ?? .any
    }

    private init?(known value: String) {
        let pieces = value.split(separator: "/", maxSplits: 1)
        // A star is special only as a whole type or subtype; elsewhere it is an ordinary character.
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
    /// Every film: `video/*`.
    public static let anyVideo = MediaRange(value: "video/*", type: "video", subtype: "*")
    /// Every type: `*/*`.
    public static let any = MediaRange(value: "*/*", type: "*", subtype: "*")

    /// A JPEG picture, the usual format of photos.
    public static let jpeg = MediaRange(.jpeg)
    /// A PNG picture, which is lossless and may have transparency.
    public static let png = MediaRange(.png)
    /// A GIF picture or animation.
    public static let gif = MediaRange(.gif)
    /// A WebP picture.
    public static let webP = MediaRange(.webP)
    /// A HEIC picture, the format of an iPhone's photos.
    public static let heic = MediaRange(.heic)
    /// An AVIF picture.
    public static let avif = MediaRange(.avif)
    /// A PDF document.
    public static let pdf = MediaRange(.pdf)
    /// A film in an MPEG-4 container.
    public static let mp4 = MediaRange(.mp4)
    /// A film in a QuickTime container.
    public static let quickTime = MediaRange(.quickTime)

    package var isExact: Bool { subtype != "*" }

    package func contains(_ type: MediaType) -> Bool { contains(type.essence) }

    /// Whether a type is in the range. Other spellings of a type, such as `image/jpg`, count as the type.
    func contains(_ essence: String) -> Bool {
        if type == "*" { return true }
        if isExact { return MediaFormat.canonical(value) == MediaFormat.canonical(essence) }
        return essence.hasPrefix("\(type)/")
    }

    public var description: String { value }
}
