extension String {
    /// The text with ASCII characters replaced, also those that a combining mark follows. To `replacing(_:with:)`, a
    /// quote and the mark after it are one character: the quote would not be replaced, and could end a quoted text.
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
