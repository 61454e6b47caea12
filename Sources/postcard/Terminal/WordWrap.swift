/// Breaks a sentence into lines.
enum WordWrap {
    /// The lines, each within so many columns where its words allow.
    ///
    /// - Parameters:
    ///   - first: What stands before the first line.
    ///   - rest: What stands before the others.
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
