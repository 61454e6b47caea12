extension String {
    /// The beginning of a text that is too long for a message; `nil` if the whole text is short enough.
    ///
    /// The length is counted in scalars, because a character may have any number of combining marks.
    var clipped: Substring? {
        let end = unicodeScalars.index(startIndex, offsetBy: 100, limitedBy: endIndex) ?? endIndex
        return end < endIndex ? self[..<end] : nil
    }

    /// The text in quotes, shortened for a message.
    package var quoted: String { clipped.map { "\($0)…" }?.debugDescription ?? debugDescription }
}

/// Makes untrusted texts safe to show.
package enum DisplayText {
    /// Whether a character is a control character, or an invisible one that changes how other characters look.
    ///
    /// U+202E, for example, reverses the reading direction. U+200C and U+200D do not count: emoji and scripts use them.
    package static func isSteering(_ scalar: Unicode.Scalar) -> Bool {
        if isPlain(scalar) { return false }
        return switch scalar.properties.generalCategory {
        case .control: true
        case .format: scalar != "\u{200C}" && scalar != "\u{200D}"
        default: false
        }
    }

    /// Whether a character is in a range without steering characters: visible ASCII and the space, U+00AE to U+036F
    /// (Latin letters and accents), and Korean syllables. Looking up the category of other characters is slower.
    package static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x20..<0x7F, 0xAE..<0x370, 0xAC00...0xD7A3: true
        default: false
        }
    }

    /// Replaces the characters that ``isSteering(_:)`` finds. `keepsLines` keeps line breaks.
    package static func replacingSteering(
        in text: String, with replacement: Unicode.Scalar, keepsLines: Bool = false
    ) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { isSteering($0) && !(keepsLines && $0 == "\n") ? replacement : $0 }))
    }

    /// Escapes the characters in JSON that ``isSteering(_:)`` finds. The JSON keeps its meaning and its line breaks.
    package static func escapingSteering(inJSON json: some Collection<UInt8>) -> String {
        var text = String.UnicodeScalarView()
        for scalar in String(decoding: json, as: UTF8.self).unicodeScalars {
            guard isSteering(scalar), scalar != "\n" else {
                text.append(scalar)
                continue
            }
            for unit in UTF16.encode(scalar).map(Array.init) ?? [] {
                text += "\\u\(String(0x10000 + Int(unit), radix: 16).dropFirst())".unicodeScalars
            }
        }
        return String(text)
    }
}
