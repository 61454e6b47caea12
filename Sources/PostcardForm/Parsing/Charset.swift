/// The charsets that texts of forms come in: UTF-8 (RFC 7578 §5.1), and what RFC 8187 §3.2.1 has receivers know.
enum Charset: Sendable {
    case utf8
    case latin1

    /// The charset of a name, in any case; `nil` where it is unknown here.
    init?(_ name: some Collection<UInt8>) {
        switch String(decoding: name.map(\.asciiLowercased), as: UTF8.self) {
        case "utf-8", "utf8", "us-ascii", "ascii": self = .utf8
        case "iso-8859-1", "latin1": self = .latin1
        default: return nil
        }
    }

    /// The text; `nil` where the bytes are none in this charset.
    func decode(_ bytes: some Sequence<UInt8>) -> String? {
        switch self {
        case .utf8: String(validating: bytes, as: UTF8.self)
        case .latin1: String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        }
    }
}
