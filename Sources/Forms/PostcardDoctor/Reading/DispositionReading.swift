import PostcardForm
import PostcardFoundation

/// Reads a Content-Disposition as the sender meant it, even if it is malformed.
struct DispositionReading {
    /// The range of the disposition type. It ends at the first semicolon or parameter.
    private(set) var type: Range<Int>
    private(set) var parameters: [Parameter] = []
    /// Whether the whole value was read as a type and parameters.
    private var isRead = true

    struct Parameter {
        let name: String
        /// The range of the value, without its quotes.
        let value: Range<Int>
        let isQuoted: Bool
        let mistake: Mistake?
        /// The range of the wrong bytes, for a finding about the mistake.
        let mark: Range<Int>
        /// The range of the value with quotes other than ASCII double quotes; `nil` if there are none.
        var foreignQuotes: Range<Int>?
    }

    /// A mistake in the notation of a parameter.
    enum Mistake {
        case unescapedQuote, unquoted, unclosed, blanksAroundEquals
        /// A colon replaces the equals sign.
        case colon
        /// The semicolon before the parameter is replaced by a comma, or missing.
        case comma, noSemicolon
    }

    /// Reads the value of a field. The range is that of the value in the bytes of a header, including folded lines.
    init(_ bytes: [UInt8], in range: Range<Int>) {
        countSteps(range.count)
        var index = range.lowerBound
        while index < range.upperBound, bytes[index] != .semicolon { index += 1 }
        var end = index
        while end > range.lowerBound, bytes[end - 1].isBlank { end -= 1 }
        type = range.lowerBound..<end
        if Array(bytes[type]).contains(where: { $0 == .equals || $0 == .quote }) {
            // Either the semicolon after the type is missing, or the type itself is.
            let word = bytes[type].prefix { $0.isTokenCharacter }.endIndex
            let isParameter = Self.beginsParameter(bytes, at: range.lowerBound, end: range.upperBound)
            index = isParameter ? range.lowerBound : word
            type = range.lowerBound..<index
        }
        while index < range.upperBound, parameters.count < 16,
            let parameter = Self.parameter(in: bytes, at: &index, end: range.upperBound)
        {
            parameters.append(parameter)
        }
        isRead = bytes[index..<range.upperBound].allSatisfy { $0.isBlank || $0 == .semicolon }
    }

    func parameter(_ name: String) -> Parameter? { parameters.first { $0.name == name } }

    /// Whether every corrected value has only one possible meaning.
    func isCertain(_ bytes: [UInt8]) -> Bool {
        isRead
            && parameters.allSatisfy { $0.mistake == nil && $0.foreignQuotes == nil || $0.hasCertainExtent(in: bytes) }
    }

    private static func parameter(in bytes: [UInt8], at index: inout Int, end: Int) -> Parameter? {
        let before = index
        while index < end, bytes[index].isBlank || bytes[index] == .semicolon || bytes[index] == .comma { index += 1 }
        let start = index
        var mistake: Mistake?
        var mark: Range<Int>?
        if before > 0, !bytes[before..<start].contains(.semicolon) {
            if let comma = bytes[before..<start].firstIndex(of: .comma) {
                (mistake, mark) = (.comma, comma..<(comma + 1))
            } else if start > before {
                (mistake, mark) = (.noSemicolon, before..<start)
            }
        }
        while index < end, bytes[index].isTokenCharacter { index += 1 }
        let name = String(streamSafe: bytes[start..<index].map { $0.asciiLowercased })
        let beforeBlanks = index
        while index < end, bytes[index].isBlank { index += 1 }
        guard !name.isEmpty, index < end, bytes[index] == .equals || bytes[index] == .colon else { return nil }
        let sign = index
        index += 1
        while index < end, bytes[index].isBlank { index += 1 }
        if let close = missingQuote(in: bytes, from: index, end: end, of: name) {
            defer { index = close }
            let value = (index + 1)..<close
            return Parameter(name: name, value: value, isQuoted: true, mistake: .unclosed, mark: close..<(close + 1))
        }
        if bytes[sign] == .colon {
            (mistake, mark) = (.colon, sign..<(sign + 1))
        } else if sign > beforeBlanks || (index > sign + 1 && mistake == nil) {
            (mistake, mark) = (.blanksAroundEquals, (sign > beforeBlanks ? beforeBlanks : sign + 1)..<index)
        }
        let valueEnd = Self.valueEnd(in: bytes, from: index, end: end)
        defer { index = valueEnd }
        var last = valueEnd
        while last > index, bytes[last - 1].isBlank { last -= 1 }
        guard index < last, bytes[index] == .quote else {
            let needsQuotes = bytes[index..<last].contains { $0.isBlank || $0 == .semicolon || $0 == .quote }
            let whole = index..<last
            let inside = insideForeignQuotes(bytes, whole)
            if needsQuotes { (mistake, mark) = (.unquoted, nil) }
            let value = inside ?? whole
            return Parameter(
                name: name, value: value, isQuoted: false, mistake: mistake, mark: mark ?? value,
                foreignQuotes: inside.map { _ in whole })
        }
        guard last - 1 > index, bytes[last - 1] == .quote else {
            let value = (index + 1)..<last
            return Parameter(name: name, value: value, isQuoted: true, mistake: .unclosed, mark: value)
        }
        let value = (index + 1)..<(last - 1)
        if holdsUnescapedQuote(bytes, in: value) { (mistake, mark) = (.unescapedQuote, nil) }
        return Parameter(name: name, value: value, isQuoted: true, mistake: mistake, mark: mark ?? value)
    }

    /// The index of the semicolon after the quoted value of the parameter `name`, if the value lacks its closing quote;
    /// otherwise `nil`. The quote is missing if the next quote begins the value of a parameter with another name: a
    /// header has each parameter only once.
    private static func missingQuote(in bytes: [UInt8], from start: Int, end: Int, of name: String) -> Int? {
        guard start < end, bytes[start] == .quote,
            let quote = bytes[(start + 1)..<end].firstIndex(of: .quote),
            let semicolon = bytes[start..<quote].lastIndex(of: .semicolon),
            bytes[(quote + 1)..<end].count(where: { $0 == .quote }) % 2 == 1
        else { return nil }
        let next = bytes[(semicolon + 1)..<quote].drop { $0.isBlank }
        let other = next.prefix { $0.isTokenCharacter }
        let isBegun = bytes[other.endIndex..<quote].allSatisfy { $0.isBlank || $0 == .equals }
        guard isBegun, beginsName(bytes, at: next.startIndex, end: end), !other.isEqualIgnoringCase(name) else {
            return nil
        }
        return semicolon
    }

    /// The index at which a value ends: the separator before another parameter, or the end of the bytes.
    private static func valueEnd(in bytes: [UInt8], from start: Int, end: Int) -> Int {
        let isQuoted = start < end && bytes[start] == .quote
        var index = isQuoted ? start + 1 : start
        // Whether only blanks are between the last quote and the index.
        var isBehindQuote = false
        while index < end {
            let isSeparator =
                switch bytes[index] {
                case .semicolon: !isQuoted || isBehindQuote
                case .comma, .space, .tab: isBehindQuote
                default: false
                }
            guard isSeparator else {
                if !bytes[index].isBlank { isBehindQuote = isQuoted && bytes[index] == .quote }
                index += 1
                continue
            }
            let isSemicolon = bytes[index] == .semicolon
            // Skips all semicolons in a row.
            var next = index
            while next < end,
                bytes[next].isBlank || bytes[next] == .semicolon || (!isSemicolon && bytes[next] == .comma)
            {
                next += 1
            }
            let isEnd = isSemicolon || bytes[index..<next].contains(.semicolon)
            if isEnd ? beginsParameter(bytes, at: next, end: end) : beginsName(bytes, at: next, end: end) {
                return index
            }
            index = max(next, index + 1)
            isBehindQuote = false
        }
        return end
    }

    /// Whether a known parameter of parts begins at an index. After a comma or blank, other names may belong to a
    /// value.
    private static func beginsName(_ bytes: [UInt8], at start: Int, end: Int) -> Bool {
        let name = bytes[start..<end].prefix { $0.isTokenCharacter }
        let isKnown = ["name", "filename", "filename*"].contains { name.isEqualIgnoringCase($0) }
        return isKnown && beginsParameter(bytes, at: start, end: end)
    }

    private static func beginsParameter(_ bytes: [UInt8], at start: Int, end: Int) -> Bool {
        if start == end { return true }
        var index = start
        while index < end, bytes[index].isTokenCharacter { index += 1 }
        guard index > start else { return false }
        while index < end, bytes[index].isBlank { index += 1 }
        guard index < end else { return false }
        return bytes[index] == .equals || (bytes[index] == .colon && index + 1 < end && bytes[index + 1] == .quote)
    }

    /// The range between single or typographic quotes; `nil` if the value has no such quotes.
    private static func insideForeignQuotes(_ bytes: [UInt8], _ range: Range<Int>) -> Range<Int>? {
        let value = bytes[range]
        guard let open = openingQuotes.first(where: { value.starts(with: $0.utf8) })?.utf8.count,
            let close = closingQuotes.first(where: { value.dropFirst(open).reversed().starts(with: $0.utf8.reversed()) }
            )
        else { return nil }
        let inside = (range.lowerBound + open)..<(range.upperBound - close.utf8.count)
        return inside.isEmpty ? nil : inside
    }

    /// The name without single or typographic quotes around it.
    static func withoutForeignQuotes(_ name: String) -> String {
        let bytes = Array(name.utf8)
        return insideForeignQuotes(bytes, 0..<bytes.count).map { String(streamSafe: bytes[$0]) } ?? name
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

    /// The corrected value: `form-data`, and each parameter once, in quotes.
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

    /// The value in double quotes. Quotes in the value are escaped as in browsers.
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
        // A final backslash would escape the closing quote.
        if isEscaped { result.append(.backslash) }
        return result + [.quote]
    }
}

extension DispositionReading.Parameter {
    /// Whether the end of a corrected value is certain: the value contains nothing that looks like its end, a parameter
    /// or a field.
    func hasCertainExtent(in bytes: [UInt8]) -> Bool {
        let text = bytes[value]
        let isPlain = text.allSatisfy { byte in
            byte >= .space && byte != 0x7F && ![.semicolon, .equals, .colon].contains(byte)
        }
        guard isPlain, String(validating: text, as: UTF8.self) != nil else { return false }
        switch mistake {
        case .unescapedQuote: return text.first != .quote && text.last != .quote
        case .unquoted, .unclosed, nil: return !text.contains(.quote)
        case .blanksAroundEquals, .colon, .comma, .noSemicolon: return true
        }
    }
}
