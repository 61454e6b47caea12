/// Bytes of a request as a person can see them: control characters and what is no text have a sign each.
struct VisibleBytes {
    /// A character on the screen, and the bytes it stands for.
    struct Cell {
        let text: String
        /// Where its first byte stands among the bytes.
        let index: Int
        let columns: Int
        /// Whether it is a sign for something else.
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

    /// A text from a request with the same signs.
    static func text(_ text: String) -> String {
        VisibleBytes(Array(text.utf8)[...]).cells.map(\.text).joined()
    }

    private static func cell(in bytes: ArraySlice<UInt8>, at index: Int) -> (cell: Cell, length: Int) {
        let byte = bytes[index]
        func sign(_ text: String, length: Int = 1) -> (Cell, Int) {
            (Cell(text: text, index: index, columns: DisplayWidth.of(text), isSign: true), length)
        }
        switch byte {
        case 0x00..<0x20:
            // The pictures of the control characters stand in their order (Unicode, block Control Pictures).
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

    /// The character that begins at a byte beyond ASCII; `nil` where that is no UTF-8, or part of what was cut off.
    private static func character(in bytes: ArraySlice<UInt8>, at index: Int) -> (cell: Cell, length: Int)? {
        // A flag or a family is one character of several scalars, and no longer than this.
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

    /// A scalar with its own bytes only, where what follows is no UTF-8.
    private static func scalar(_ window: ArraySlice<UInt8>) -> String? {
        (2...4).lazy.compactMap { String(validating: window.prefix($0), as: UTF8.self) }.first
    }
}
