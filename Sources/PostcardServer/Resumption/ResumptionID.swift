/// What an upload that can be resumed is known by: 32 lower-case letters and digits, 160 random bits in Crockford's
/// base 32. Whoever knows it may go on with the upload, so that it is never written to a log.
package struct ResumptionID: Sendable, Hashable {
    let text: String

    /// - Returns: `nil` where the text is none; what is one holds no character that matters to a file system.
    package init?(_ text: some StringProtocol) {
        let bytes = text.utf8
        guard bytes.count == Self.length, bytes.allSatisfy(Self.alphabet.contains) else { return nil }
        self.text = String(text)
    }

    private init(text: String) {
        self.text = text
    }

    static func random() -> ResumptionID {
        var generator = SystemRandomNumberGenerator()
        let characters = (0..<length).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &generator)] }
        return ResumptionID(text: String(decoding: characters, as: UTF8.self))
    }

    /// Enough of it to tell it from others in a log, and not to guess the rest.
    var loggedText: String { text.prefix(6) + "…" }

    private static let length = 32
    private static let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
}
