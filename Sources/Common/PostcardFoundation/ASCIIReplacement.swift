extension String {
    /// Replaces ASCII characters, even before a combining mark. To `replacing(_:with:)`, a quote with a mark is another
    /// character, so the quote would stay and could end a quoted text.
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
