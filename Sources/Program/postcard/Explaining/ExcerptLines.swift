import PostcardDoctor
import PostcardForm

/// Shows the bytes around a finding like a compiler, with a caret below. Bytes that are not text are shown in
/// hexadecimal digits.
struct ExcerptLines {
    private let finding: Finding
    private let excerpt: Excerpt
    private let style: TextStyle
    private let columns: Int
    private let gutter: Int

    init?(_ finding: Finding, columns: Int, style: TextStyle) {
        guard let excerpt = finding.excerpt, !excerpt.bytes.isEmpty else { return nil }
        self.finding = finding
        self.excerpt = excerpt
        self.style = style
        gutter = max(String(excerpt.offset + Int64(excerpt.bytes.count)).count, 4) + 2
        self.columns = columns - gutter - 3
    }

    var all: [String] { isBinary ? hexadecimalLines : textLines }

    private var role: TextStyle.Role { finding.severity == .error ? .error : .warning }

    /// The index of the finding in the excerpt.
    private var place: Int {
        Int(min(max(finding.offset - excerpt.offset, 0), Int64(excerpt.bytes.count)))
    }

    /// The line with the finding, including its line break.
    private var line: Range<Int> {
        let bytes = excerpt.bytes
        let start = bytes[..<place].lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        let end = bytes[place...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.count
        return start..<end
    }

    private var isBinary: Bool {
        let shown = excerpt.bytes[line]
        if shown.allSatisfy({ $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }) {
            return Self.isBinary(excerpt.bytes[..<line.lowerBound].suffix(24))
        }
        return Self.isBinary(shown)
    }

    private static func isBinary(_ shown: ArraySlice<UInt8>) -> Bool {
        let nearby = shown.filter { $0 < 0x09 || (0x0E..<0x20).contains($0) || $0 == 0x7F }.count
        let broken = VisibleBytes(shown).cells.count { $0.text.hasPrefix("<") && $0.columns > 1 }
        return (nearby + broken) * 4 > shown.count
    }

    private func row(at offset: Int64?, _ text: String) -> String {
        let number = offset.map { String($0) } ?? ""
        let padding = String(repeating: " ", count: max(gutter - number.count, 0))
        return style(padding + number + " │ ", .faint) + text
    }

    // MARK: - Text

    private var textLines: [String] {
        let line = line
        var rows: [String] = []
        if line.lowerBound > 0 {
            let before = excerpt.bytes[..<(line.lowerBound - 1)].lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
            let isCut = before == 0 && excerpt.offset > 0
            rows.append(context(before..<line.lowerBound, isCut: isCut))
        }
        rows += marked(line)
        if line.upperBound < excerpt.bytes.count {
            let rest = excerpt.bytes[line.upperBound...]
            let end = rest.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? rest.endIndex
            rows.append(context(line.upperBound..<end, isCut: false))
        }
        return rows
    }

    /// A line before or after the finding's line.
    private func context(_ range: Range<Int>, isCut: Bool) -> String {
        if Self.isBinary(excerpt.bytes[range]) {
            return row(at: excerpt.offset + Int64(range.lowerBound), style("… bytes that are not text …", .faint))
        }
        var cells = VisibleBytes(excerpt.bytes[range]).cells[...]
        let width = cells.reduce(isCut ? 1 : 0) { $0 + $1.columns }
        var tail = ""
        if width > columns {
            var room = columns - 2
            let fitting = cells.prefix { cell in
                room -= cell.columns
                return room >= 0
            }
            cells = fitting
            tail = "…"
        }
        // The excerpt may end inside a line.
        let isExcerptEnd = range.upperBound == excerpt.bytes.count && range.upperBound >= place + Excerpt.reach
        if tail.isEmpty, isExcerptEnd, excerpt.bytes[range].last != UInt8(ascii: "\n") { tail = "…" }
        let text = (isCut ? "…" : "") + cells.map(\.text).joined() + tail
        return row(at: excerpt.offset + Int64(range.lowerBound), style(text, .faint))
    }

    /// The finding's line, with a caret below the finding.
    private func marked(_ range: Range<Int>) -> [String] {
        let cells = VisibleBytes(excerpt.bytes[range]).cells
        let first = cells.lastIndex { $0.index <= place } ?? 0
        let isBehind = place >= range.upperBound
        let start = windowStart(cells, upTo: isBehind ? cells.count : first)
        let isCut = start > 0 || (range.lowerBound == 0 && excerpt.offset > 0)
        var text = isCut ? "…" : ""
        var used = isCut ? 1 : 0
        var before = used
        var marked = 0
        for index in start..<cells.count {
            let cell = cells[index]
            if used + cell.columns > columns - 1 {
                text += "…"
                break
            }
            text += cell.isSign ? style(cell.text, .faint) : cell.text
            used += cell.columns
            if isBehind || index < first {
                before = used
            } else if cell.index < place + max(finding.length, 1) {
                marked += cell.columns
            }
        }
        let caret = String(repeating: "^", count: max(min(marked, columns - before), 1))
        let offset = excerpt.offset + Int64(start < cells.count ? cells[start].index : range.lowerBound)
        return [row(at: offset, text), row(at: nil, String(repeating: " ", count: before) + style(caret, role))]
    }

    /// The index of the first cell to show, so that the finding and some cells after it fit on the screen.
    private func windowStart(_ cells: [VisibleBytes.Cell], upTo target: Int) -> Int {
        let total = cells.reduce(0) { $0 + $1.columns }
        if total < columns - 1 { return 0 }
        var start = target
        var room = columns * 2 / 3
        while start > 0, room > cells[start - 1].columns {
            start -= 1
            room -= cells[start].columns
        }
        return start
    }

    // MARK: - Hexadecimal digits

    private var hexadecimalLines: [String] {
        let perRow = columns >= 80 ? 24 : 16
        let marked = place..<min(place + max(finding.length, 1), excerpt.bytes.count)
        let center = max(place - place % perRow - perRow, 0)
        var rows: [String] = []
        for start in stride(from: center, to: min(center + 3 * perRow, excerpt.bytes.count), by: perRow) {
            let bytes = excerpt.bytes[start..<min(start + perRow, excerpt.bytes.count)]
            let digits = bytes.map { Self.digits($0) }.joined(separator: " ")
            let padding = String(repeating: " ", count: perRow * 3 - 1 - digits.count + 2)
            let characters = bytes.map { (0x20..<0x7F).contains($0) ? String(UnicodeScalar($0)) : "·" }.joined()
            rows.append(row(at: excerpt.offset + Int64(start), digits + padding + style(characters, .faint)))
            let carets = bytes.indices.map { marked.contains($0) ? "^^" : "  " }.joined(separator: " ")
            let isAtEnd = place == excerpt.bytes.count && bytes.endIndex == place
            if carets.contains("^") || isAtEnd {
                let trimmed = isAtEnd ? String(repeating: " ", count: bytes.count * 3) + "^" : Self.trimmed(carets)
                rows.append(row(at: nil, style(trimmed, role)))
            }
        }
        return rows
    }

    private static func digits(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }

    private static func trimmed(_ text: String) -> String {
        String(text.prefix(upTo: text.lastIndex(of: "^").map { text.index(after: $0) } ?? text.endIndex))
    }
}

/// Makes the bytes of a request visible, with signs for control characters and for bytes that are not text.
struct VisibleBytes {
    /// A character on the screen, and the bytes that it stands for.
    struct Cell {
        let text: String
        /// The index of the first of the cell's bytes.
        let index: Int
        let columns: Int
        /// Whether the text is a sign for bytes that cannot be shown.
        let isSign: Bool
    }

    let cells: [Cell]

    init(_ bytes: ArraySlice<UInt8>) {
        var cells: [Cell] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let cell = Self.cell(in: bytes, at: index)
            cells.append(cell.cell)
            index += cell.length
        }
        self.cells = cells
    }

    /// Makes a text from a request visible.
    static func text(_ text: String) -> String {
        VisibleBytes(Array(text.utf8)[...]).cells.map(\.text).joined()
    }

    /// Makes a text visible on one line. The middle of a text that is too long for every terminal is left out.
    static func text(short text: String) -> String {
        let scalars = text.unicodeScalars
        guard let end = scalars.index(scalars.startIndex, offsetBy: 2 * maximumScalars, limitedBy: scalars.endIndex),
            end < scalars.endIndex
        else { return self.text(text) }
        return self.text(String(scalars.prefix(maximumScalars)))
            + "…" + self.text(String(scalars.suffix(maximumScalars)))
    }

    /// The maximum number of scalars at each end of a short text, more than a line has columns.
    private static let maximumScalars = 240

    private static func cell(in bytes: ArraySlice<UInt8>, at index: Int) -> (cell: Cell, length: Int) {
        let byte = bytes[index]
        func sign(_ text: String, length: Int = 1) -> (Cell, Int) {
            (Cell(text: text, index: index, columns: DisplayWidth.of(text), isSign: true), length)
        }
        switch byte {
        case 0x00..<0x20:
            // Unicode's Control Pictures have the same order as the control characters.
            return sign(String(Unicode.Scalar(0x2400 + UInt32(byte)).map(Character.init) ?? "?"))
        case 0x7F:
            return sign("\u{2421}")
        case 0x20..<0x7F:
            return (Cell(text: String(UnicodeScalar(byte)), index: index, columns: 1, isSign: false), 1)
        default:
            return character(in: bytes, at: index)
                ?? sign("<" + [byte].map { String($0, radix: 16, uppercase: true) }.joined() + ">")
        }
    }

    /// The non-ASCII character that begins at a byte; `nil` if the bytes are not UTF-8 or are cut off.
    private static func character(in bytes: ArraySlice<UInt8>, at index: Int) -> (cell: Cell, length: Int)? {
        // A flag or a family is one character of several scalars, but at most this long.
        let window = bytes[index...].prefix(40)
        var end = window.endIndex
        var text = String(validating: window, as: UTF8.self)
        while text == nil, end > index, window.endIndex - end < 4 {
            end -= 1
            text = String(validating: window[..<end], as: UTF8.self)
        }
        guard let first = (text ?? scalar(window))?.first else { return nil }
        let length = first.utf8.count
        let printable = Terminal.printable(String(first))
        let cell = Cell(
            text: printable, index: index, columns: DisplayWidth.of(printable), isSign: printable != String(first))
        return (cell, length)
    }

    /// The first scalar alone, in case the following bytes are not UTF-8.
    private static func scalar(_ window: ArraySlice<UInt8>) -> String? {
        (2...4).lazy.compactMap { String(validating: window.prefix($0), as: UTF8.self) }.first
    }
}
