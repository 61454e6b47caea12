extension String {
    /// The text with others in place of ASCII characters, also of those that a combining mark follows: to
    /// `replacing(_:with:)`, a quote and a mark are one character, so that the quote stays, and ends a quoted text.
    package func replacingASCII(_ replacements: KeyValuePairs<Unicode.Scalar, StaticString>) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count)
        for byte in utf8 {
            if let replacement = replacements.first(where: { $0.key.value == byte })?.value {
                replacement.withUTF8Buffer { bytes += $0 }
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
