/// Computes the number of columns of a text on a terminal. Hangul and Han characters have two columns each.
enum DisplayWidth {
    static func of(_ text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + width(of: $1) }
    }

    /// The text in exactly this many columns. A longer text is shortened in its middle, to keep the filename extension;
    /// a shorter text is padded.
    static func fit(_ text: String, to columns: Int) -> String {
        let width = of(text)
        if width <= columns { return text + String(repeating: " ", count: columns - width) }
        let tail = suffix(of: text, columns: (columns - 1) / 2)
        let head = prefix(of: text, columns: columns - 1 - of(tail))
        let short = head + "…" + tail
        return short + String(repeating: " ", count: max(columns - of(short), 0))
    }

    /// The text in at most this many columns, shortened at its end.
    static func cut(_ text: String, to columns: Int) -> String {
        of(text) <= columns ? text : prefix(of: text, columns: columns - 1) + "…"
    }

    private static func prefix(of text: String, columns: Int) -> Substring {
        var end = text.startIndex
        var width = 0
        while end < text.endIndex {
            width += self.width(of: text[end])
            if width > columns { break }
            end = text.index(after: end)
        }
        return text[..<end]
    }

    private static func suffix(of text: String, columns: Int) -> Substring {
        var start = text.endIndex
        var width = 0
        while start > text.startIndex {
            let before = text.index(before: start)
            width += self.width(of: text[before])
            if width > columns { break }
            start = before
        }
        return text[start...]
    }

    private static func width(of character: Character) -> Int {
        guard let first = character.unicodeScalars.first else { return 0 }
        // Emoji and wide characters have higher values.
        if first.value < 0x1100 { return 1 }
        if first.properties.isEmojiPresentation { return 2 }
        return wide.contains { $0.contains(first.value) } ? 2 : 1
    }

    /// The blocks of wide characters (Unicode Standard Annex #11, East_Asian_Width W and F).
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
        0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD,
    ]
}

/// Breaks a sentence into lines.
enum WordWrap {
    /// Breaks a text into lines of at most this many columns, apart from longer words. The first line begins with
    /// `first`, and each other line with `rest`.
    static func lines(_ text: String, columns: Int, first: String = "", rest: String = "") -> [String] {
        var lines: [String] = []
        var line = first
        var isEmpty = true
        for word in text.split(separator: " ") {
            if !isEmpty, DisplayWidth.of(line) + 1 + DisplayWidth.of(word) > columns {
                lines.append(line)
                line = rest
                isEmpty = true
            }
            line += isEmpty ? String(word) : " " + word
            isEmpty = false
        }
        return lines + [line]
    }
}
