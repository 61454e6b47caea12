extension String {
    /// Replaces ASCII characters, even those before a combining mark. `replacing(_:with:)` does not replace a quote
    /// before a mark, because both form one character. Such a quote could end a quoted text.
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
