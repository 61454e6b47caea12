import PostcardForm
import PostcardFoundation

/// A Content-Disposition as it was meant, even if it is malformed.
struct DispositionReading {
    /// The range before the first semicolon.
    private(set) var type: Range<Int>
    private(set) var parameters: [Parameter] = []

    struct Parameter {
        let name: String
        /// The range of the value, without its quotes.
        let value: Range<Int>
        let isQuoted: Bool
        let fault: Fault?
        /// The range of the value with its quotes, if they are not ASCII double quotes; `nil` if there are none.
        var foreignQuotes: Range<Int>?
    }

    /// What is wrong with a value, and can be fixed.
    enum Fault {
        case unescapedQuote, unquoted, unclosed, blanksAroundEquals
    }

    /// - Parameters:
    ///   - bytes: A header.
    ///   - range: The field's value in it, folded lines included.
    init(_ bytes: [UInt8], in range: Range<Int>) {
        countSteps(range.count)
        var index = range.lowerBound
        while index < range.upperBound, bytes[index] != .semicolon { index += 1 }
        var end = index
        while end > range.lowerBound, bytes[end - 1].isBlank { end -= 1 }
        type = range.lowerBound..<end
        if Array(bytes[type]).contains(.equals) {
            type = range.lowerBound..<range.lowerBound
            index = range.lowerBound
        }
        while index < range.upperBound, parameters.count < 16,
            let parameter = Self.parameter(in: bytes, at: &index, end: range.upperBound)
        {
            parameters.append(parameter)
        }
    }

    func parameter(_ name: String) -> Parameter? { parameters.first { $0.name == name } }

    private static func parameter(in bytes: [UInt8], at index: inout Int, end: Int) -> Parameter? {
        while index < end, bytes[index].isBlank || bytes[index] == .semicolon { index += 1 }
        let start = index
        while index < end, bytes[index].isTokenCharacter { index += 1 }
        let name = String(streamSafe: bytes[start..<index].map(\.asciiLowercased))
        let beforeBlanks = index
        while index < end, bytes[index].isBlank { index += 1 }
        guard !name.isEmpty, index < end, bytes[index] == .equals else { return nil }
        var fault: Fault? = index > beforeBlanks ? .blanksAroundEquals : nil
        index += 1
        while index < end, bytes[index].isBlank {
            index += 1
            fault = .blanksAroundEquals
        }
        let valueEnd = Self.valueEnd(in: bytes, from: index, end: end)
        defer { index = valueEnd }
        var last = valueEnd
        while last > index, bytes[last - 1].isBlank { last -= 1 }
        guard index < last, bytes[index] == .quote else {
            let needsQuotes = bytes[index..<last].contains { $0.isBlank || $0 == .semicolon || $0 == .quote }
            let whole = index..<last
            let inside = insideForeignQuotes(bytes, whole)
            return Parameter(
                name: name, value: inside ?? whole, isQuoted: false, fault: needsQuotes ? .unquoted : fault,
                foreignQuotes: inside.map { _ in whole })
        }
        guard last - 1 > index, bytes[last - 1] == .quote else {
            return Parameter(name: name, value: (index + 1)..<last, isQuoted: true, fault: .unclosed)
        }
        let value = (index + 1)..<(last - 1)
        if holdsUnescapedQuote(bytes, in: value) { fault = .unescapedQuote }
        return Parameter(name: name, value: value, isQuoted: true, fault: fault)
    }

    /// The end of the value: a semicolon that another parameter follows, or the end of the bytes.
    private static func valueEnd(in bytes: [UInt8], from start: Int, end: Int) -> Int {
        let isQuoted = start < end && bytes[start] == .quote
        var index = isQuoted ? start + 1 : start
        while index < end {
            guard bytes[index] == .semicolon, !isQuoted || endsInQuote(bytes, before: index, from: start + 1) else {
                index += 1
                continue
            }
            // Several semicolons in a row are skipped together.
            var next = index
            while next < end, bytes[next].isBlank || bytes[next] == .semicolon { next += 1 }
            if beginsParameter(bytes, at: next, end: end) { return index }
            index = next
        }
        return end
    }

    private static func endsInQuote(_ bytes: [UInt8], before index: Int, from start: Int) -> Bool {
        var last = index
        while last > start, bytes[last - 1].isBlank { last -= 1 }
        return last > start && bytes[last - 1] == .quote
    }

    private static func beginsParameter(_ bytes: [UInt8], at start: Int, end: Int) -> Bool {
        if start == end { return true }
        var index = start
        while index < end, bytes[index].isTokenCharacter { index += 1 }
        guard index > start else { return false }
        while index < end, bytes[index].isBlank { index += 1 }
        return index < end && bytes[index] == .equals
    }

    /// The range between single or typographic quotes.
    private static func insideForeignQuotes(_ bytes: [UInt8], _ range: Range<Int>) -> Range<Int>? {
        let value = bytes[range]
        guard let open = openingQuotes.first(where: { value.starts(with: $0.utf8) })?.utf8.count,
            let close = closingQuotes.first(where: { value.dropFirst(open).reversed().starts(with: $0.utf8.reversed()) }
            )
        else { return nil }
        let inside = (range.lowerBound + open)..<(range.upperBound - close.utf8.count)
        return inside.isEmpty ? nil : inside
    }

    private static let openingQuotes = ["'", "`", "“", "”", "„", "‘", "’", "‚", "«", "»", "＂"]
    private static let closingQuotes = ["'", "`", "´", "”", "“", "\"", "’", "‘", "»", "«", "＂"]

    private static func holdsUnescapedQuote(_ bytes: [UInt8], in range: Range<Int>) -> Bool {
        var index = range.lowerBound
        while index < range.upperBound {
            if bytes[index] == .backslash, index + 1 < range.upperBound,
                bytes[index + 1] == .quote || bytes[index + 1] == .backslash
            {
                index += 2
                continue
            }
            if bytes[index] == .quote { return true }
            index += 1
        }
        return false
    }

    /// The corrected value: `form-data`, and every parameter once and in quotes.
    func corrected(_ bytes: [UInt8]) -> [UInt8] {
        var result = Array("form-data".utf8)
        var names: Set<String> = []
        for parameter in parameters where names.insert(parameter.name).inserted {
            result += Array("; \(parameter.name)=".utf8)
            if parameter.name.hasSuffix("*") {
                result += bytes[parameter.value]
                continue
            }
            result += Self.quoted(bytes[parameter.value])
        }
        return result
    }

    /// A value in double quotes, with quotes inside it escaped as browsers do.
    static func quoted(_ value: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = [.quote]
        var isEscaped = false
        for byte in value {
            if byte == .quote, !isEscaped {
                result += "%22".utf8
            } else {
                result.append(byte)
            }
            isEscaped = byte == .backslash && !isEscaped
        }
        // The value ends in a backslash, which would escape the closing quote.
        if isEscaped { result.append(.backslash) }
        return result + [.quote]
    }
}
