/// The identifier of an unfinished upload: 32 lower-case letters and digits, 160 random bits in Crockford's base 32.
///
/// Anyone who knows it can resume or discard the upload, so it is never written to a log.
public struct ResumptionID: Sendable, Hashable {
    /// The identifier as it is written in paths.
    public let text: String

    /// Reads an identifier.
    ///
    /// - Returns: `nil` if the text is not one. An identifier holds no character that has a meaning to a file system.
    public init?(_ text: some StringProtocol) {
        let bytes = text.utf8
        guard bytes.count == Self.length, bytes.allSatisfy(Self.alphabet.contains) else { return nil }
        self.text = String(text)
    }

    private init(text: String) {
        self.text = text
    }

    package static func random() -> ResumptionID {
        var generator = SystemRandomNumberGenerator()
        let characters = (0..<length).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &generator)] }
        return ResumptionID(text: String(decoding: characters, as: UTF8.self))
    }

    /// Enough characters to tell uploads apart in a log, and too few to guess the rest.
    package var loggedText: String { text.prefix(6) + "…" }

    /// How many characters an identifier has.
    package static let length = 32
    private static let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
}
