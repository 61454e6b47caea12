import PostcardFoundation

/// A parameter's value in the encoding of RFC 8187 §3.2, such as `UTF-8''caf%C3%A9.jpg`.
enum ExtendedValue {
    /// The text; `nil` if the grammar is broken, the charset unknown, or the bytes are not text in it.
    static func decode(_ value: [UInt8]) -> String? {
        let pieces = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard pieces.count == 3 else { return nil }
        let decoded = PercentEncoding.decoded(pieces[2])
        return decoded.isWellFormed ? Charset(pieces[0])?.decode(Data(decoded.bytes)) : nil
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
