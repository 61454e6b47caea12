import PostcardDoctor

/// The parts of a form as rows: where each begins, what it is called, what it is and how large.
struct PartTable {
    private let parts: [Explanation.Part]
    /// How many there are, those that are not described included.
    private let count: Int
    private let columns: Int
    private let style: TextStyle

    /// More rows are no map.
    private static let maximumRows = 12
    private static let digestDigits = 12

    init(_ parts: [Explanation.Part], count: Int, columns: Int, style: TextStyle) {
        self.parts = parts
        self.count = count
        self.columns = columns
        self.style = style
    }

    var all: [String] {
        if parts.isEmpty { return [] }
        let isLong = count > Self.maximumRows
        // Of more parts than are described the last are not known.
        let lastRows = count == parts.count ? 3 : 0
        let heading = ["part", "offset", "name", "filename", "type", "bytes", "sha256"]
        let numbered = parts.enumerated().map { (index: $0.offset, part: $0.element) }
        let shown =
            isLong ? numbered.prefix(Self.maximumRows - 1 - lastRows) + numbered.suffix(lastRows) : numbered[...]
        let rows = [heading] + shown.map { Self.row($0.part, at: $0.index) }
        let widths = fitted(rows)
        var lines = rows.map { row in line(row, widths) }
        lines[0] = style(lines[0], .faint)
        if isLong {
            lines.insert(style("  … \(count - shown.count) more parts …", .faint), at: lines.count - lastRows)
        }
        return lines
    }

    private static func row(_ part: Explanation.Part, at index: Int) -> [String] {
        [
            String(index), String(part.offset), VisibleBytes.text(part.name), VisibleBytes.text(part.filename ?? ""),
            VisibleBytes.text(part.contentType ?? ""), String(part.size),
            String(part.sha256.prefix(digestDigits)) + "…",
        ]
    }

    /// The widths of the columns: those with texts share what the others leave.
    private func fitted(_ rows: [[String]]) -> [Int] {
        var widths = rows[0].indices.map { column in rows.map { DisplayWidth.of($0[column]) }.max() ?? 0 }
        let texts = 2...4
        var excess = widths.reduce(0, +) + 2 * widths.count - columns
        while excess > 0, let widest = texts.max(by: { widths[$0] < widths[$1] }), widths[widest] > 8 {
            widths[widest] -= 1
            excess -= 1
        }
        return widths
    }

    private func line(_ row: [String], _ widths: [Int]) -> String {
        let numbers: Set = [0, 1, 5]
        var line = "  "
        for (column, text) in row.enumerated() {
            if column > 0 { line += "  " }
            let padding = String(repeating: " ", count: max(widths[column] - DisplayWidth.of(text), 0))
            line += numbers.contains(column) ? padding + text : DisplayWidth.fit(text, to: widths[column])
        }
        return String(line.reversed().drop { $0 == " " }.reversed())
    }
}
