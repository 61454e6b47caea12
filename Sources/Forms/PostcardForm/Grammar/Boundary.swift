/// The text that separates the parts of a multipart body (RFC 2046 §5.1.1).
///
/// A boundary must not occur in the data that it separates. ``init()`` makes one that cannot be guessed and that needs
/// no quotes in a header; choose your own only if a test needs the same bytes every time.
public struct Boundary: Sendable, Hashable, CustomStringConvertible {
    /// The boundary's characters, without the dashes before it in the body.
    public let value: String

    /// The maximum number of characters that RFC 2046 §5.1.1 allows.
    public static let maximumLength = 70

    private static let prefix = "Postcard-"
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-".utf8)

    /// Makes a random boundary: 126 bits from the system's generator, in letters, digits, `-` and `_`.
    public init() {
        // Six bits a character. The system's generator costs a call for each 64 bits.
        var bits = UInt128.random(in: 0 ... .max)
        let length = Self.prefix.utf8.count + 21
        value = String(unsafeUninitializedCapacity: length) { characters in
            for index in characters.initialize(from: Self.prefix.utf8).index..<length {
                characters.initializeElement(at: index, to: Self.alphabet[Int(truncatingIfNeeded: bits & 63)])
                bits >>= 6
            }
            return length
        }
    }

    /// Makes a boundary from the caller's own text.
    ///
    /// - Parameter value: 1 to 70 of the characters that RFC 2046 §5.1.1 allows: letters, digits, space and
    ///   `'()+_,-./:=?`, the last of them not a space.
    /// - Throws: ``FormError`` with the code ``FormError/Code/invalidBoundary``.
    public init(_ value: String) throws(FormError) {
        if let reason = Boundary.fault(in: value.utf8) {
            throw .invalidBoundary(value, reason: reason)
        }
        self.value = value
    }

    /// Why RFC 2046 §5.1.1 does not allow these characters as a boundary; `nil` if it does.
    static func fault(in characters: some BidirectionalCollection<UInt8>) -> String? {
        fault(in: characters, where: { $0.isBoundaryCharacter })
    }

    /// What keeps a receiver from reading a body with these characters as its boundary. It reads more than the
    /// RFC allows a sender, as all receivers in the field do: any visible ASCII.
    static func faultForReceiving(in characters: some BidirectionalCollection<UInt8>) -> String? {
        fault(in: characters) { (0x20..<0x7F).contains($0) }
    }

    private static func fault(
        in characters: some BidirectionalCollection<UInt8>, where isAllowed: (UInt8) -> Bool
    ) -> String? {
        guard let last = characters.last else { return "it is empty" }
        if characters.count > maximumLength {
            return "it has \(characters.count) characters and at most \(maximumLength) are allowed"
        }
        if let index = characters.firstIndex(where: { !isAllowed($0) }) {
            return "its character \(characters.distance(from: characters.startIndex, to: index) + 1) is not allowed"
        }
        return last == .space ? "it ends in a space" : nil
    }

    /// The boundary as the value of a `boundary` parameter: in quotes only if the grammar requires them.
    var parameterValue: String {
        value.utf8.allSatisfy { $0.isTokenCharacter } ? value : "\"\(value)\""
    }

    public var description: String { value }
}
