import PostcardFoundation

/// A parameter's value in the encoding of RFC 8187 §3.2, such as `UTF-8''caf%C3%A9.jpg`.
enum ExtendedValue {
    /// The text; `nil` if the grammar is broken, the charset unknown, or the bytes are not text in it.
    static func decode(_ value: [UInt8]) -> String? {
        let pieces = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard pieces.count == 3, let bytes = percentDecoded(pieces[2]) else { return nil }
        return Charset(pieces[0])?.decode(bytes)
    }

    private static func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            if text[index] != .percent {
                result.append(text[index])
                index += 1
                continue
            }
            guard index + 2 < text.endIndex, let high = text[index + 1].hexadecimalValue,
                let low = text[index + 2].hexadecimalValue
            else { return nil }
            result.append(high << 4 | low)
            index += 3
        }
        return result
    }
}

/// A name in an encoded word of RFC 2047 §2, such as `=?utf-8?B?Y2Fmw6kuanBn?=`, as .NET writes them into
/// `filename`.
enum EncodedWord {
    /// The text; `nil` if the value is not an encoded word.
    static func decode(_ value: [UInt8]) -> String? {
        guard value.starts(with: "=?".utf8), value.reversed().starts(with: "=?".utf8), value.count > 4 else {
            return nil
        }
        let pieces = value[2..<(value.count - 2)].split(
            separator: UInt8(ascii: "?"), maxSplits: 2, omittingEmptySubsequences: false)
        guard pieces.count == 3, pieces[1].count == 1, let encoding = pieces[1].first?.asciiLowercased,
            encoding == UInt8(ascii: "b"), let bytes = Data(base64Encoded: Data(pieces[2]))
        else { return nil }
        return Charset(pieces[0])?.decode(bytes)
    }
}

/// The charsets that forms use for text: UTF-8 (RFC 7578 §5.1), and ISO-8859-1, which RFC 8187 §3.2.1 requires.
enum Charset: Sendable {
    case utf8
    case latin1

    /// The charset with a name, ignoring case; `nil` if it is unknown.
    init?(_ name: some Collection<UInt8>) {
        switch String(streamSafe: name.map(\.asciiLowercased)) {
        case "utf-8", "utf8", "us-ascii", "ascii": self = .utf8
        case "iso-8859-1", "latin1": self = .latin1
        default: return nil
        }
    }

    /// The text; `nil` if the bytes are not text in this charset.
    func decode(_ bytes: some Sequence<UInt8>) -> String? {
        switch self {
        case .utf8: String(validating: bytes, as: UTF8.self)
        case .latin1: String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        }
    }
}
