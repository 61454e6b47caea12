/// The positions of the parameters in a header field's value such as `value; name=value; name="value"` (RFC 9110
/// §5.6.6), as in Content-Type and Content-Disposition.
struct HeaderParameters {
    /// The range of the text before the first semicolon.
    let value: Range<Int>
    /// The first parameter. It is stored outside of ``others``, so that fields with one parameter need no array.
    let first: Parameter?
    let others: [Parameter]

    var parameters: [Parameter] { first.map { [$0] + others } ?? [] }

    /// The maximum number of parameters, which keeps lookups fast. Real fields have at most four.
    private static let maximumCount = 16

    struct Parameter {
        let name: Range<Int>
        /// The range of the value, without the quotes of a quoted string.
        let value: Range<Int>
        let isQuoted: Bool
        /// The characters that backslashes escape in the quoted string.
        let escapes: Escapes

        /// The index of the first byte of the parameter's name.
        var start: Int { name.lowerBound }

        /// A copy of the parameter with only the text after the last slash or backslash, because old browsers sent
        /// whole paths. An escaped `\\` and a final backslash belong to the name.
        func lastComponent(in header: Span<UInt8>) -> Parameter {
            var start = value.lowerBound
            var index = start
            while index < value.upperBound {
                if isEscape(at: index, in: header) {
                    index += 2
                    continue
                }
                let isLast = index + 1 == value.upperBound
                if header[index] == .slash || (header[index] == .backslash && !isLast) { start = index + 1 }
                index += 1
            }
            return Parameter(name: name, value: start..<value.upperBound, isQuoted: isQuoted, escapes: escapes)
        }

        /// The value with its ``escapes`` decoded. Other backslashes are kept, as in the unescaped `C:\photos\cat.jpg`
        /// of old browsers.
        func bytes(in header: Span<UInt8>) -> [UInt8] {
            var bytes: [UInt8] = []
            var index = value.lowerBound
            while index < value.upperBound {
                if isEscape(at: index, in: header) { index += 1 }
                bytes.append(header[index])
                index += 1
            }
            return bytes
        }

        private func isEscape(at index: Int, in header: Span<UInt8>) -> Bool {
            escapes != .none && header[index] == .backslash && index + 1 < value.upperBound
                && (header[index + 1] == .quote
                    || (header[index + 1] == .backslash && escapes == .quotesAndBackslashes))
        }
    }

    /// The characters that backslashes escape in a quoted string.
    enum Escapes: Sendable {
        /// No backslash escapes a character.
        case none
        /// Quotes and backslashes: `\"` and `\\`, as in RFC 9110 §5.6.4 and as curl writes them.
        case quotesAndBackslashes
        /// Only quotes: `\"`, in a field as browsers write it.
        case quotes
    }

    /// The index and reason of a violation of the grammar.
    struct SyntaxError: Error {
        let index: Int
        let reason: String
    }

    /// The first parameter with a repeated name.
    func duplicate(in header: Span<UInt8>) -> Parameter? {
        if others.isEmpty { return nil }
        let parameters = parameters
        for index in parameters.indices.dropFirst() {
            for earlier in parameters[..<index]
            where header.equalIgnoringCase(earlier.name, parameters[index].name) { return parameters[index] }
        }
        return nil
    }

    /// Reads the parameters in a range of a header.
    ///
    /// - Parameter backslashesAreRaw: Whether backslashes escape nothing: see ``asBrowsersWrite(_:in:)``.
    init(_ header: Span<UInt8>, in range: Range<Int>, backslashesAreRaw: Bool = false) throws(SyntaxError) {
        var scanner = Scanner(index: range.lowerBound, end: range.upperBound, backslashesAreRaw: backslashesAreRaw)
        value = scanner.text(upTo: .semicolon, in: header)
        first = try scanner.nextParameter(in: header)
        var parameters: [Parameter] = []
        while let parameter = try scanner.nextParameter(in: header) {
            guard parameters.count < Self.maximumCount - 1 else {
                throw SyntaxError(
                    index: parameter.start, reason: "There are more than \(Self.maximumCount) parameters.")
            }
            parameters.append(parameter)
        }
        others = parameters
    }

    /// Reads a value that violates the RFC, in the way that browsers write values. Returns the parameters, and the
    /// first one that ends in a backslash; `nil` if the value cannot be read in this way, or no parameter ends in a
    /// backslash.
    ///
    /// Browsers do not escape backslashes: a field named `a\` becomes `name="a\"`, whose quoted string has no end by
    /// RFC 9110 §5.6.4. Here, `\"` ends a quoted string before another parameter or at the end of the value. A
    /// well-formed value, such as curl's `name="a\"; b=\"c"`, must never be read in this way. Each byte is read at most
    /// twice.
    @inline(never)
    static func asBrowsersWrite(
        _ header: Span<UInt8>, in range: Range<Int>
    ) -> (parameters: HeaderParameters, endingInBackslash: Parameter)? {
        guard let read = try? HeaderParameters(header, in: range, backslashesAreRaw: true) else { return nil }
        for parameter in read.parameters
        where parameter.isQuoted && !parameter.value.isEmpty && header[parameter.value.upperBound - 1] == .backslash {
            return (read, parameter)
        }
        return nil
    }
}

extension HeaderParameters {
    private struct Scanner {
        var index: Int
        let end: Int
        /// Whether backslashes escape nothing, as browsers write them.
        let backslashesAreRaw: Bool

        /// The text before a byte, without blanks at its end.
        mutating func text(upTo stop: UInt8, in bytes: Span<UInt8>) -> Range<Int> {
            let start = index
            skip(in: bytes) { $0 != stop }
            var last = index
            while last > start, bytes[last - 1].isBlank { last -= 1 }
            return start..<last
        }

        /// The next parameter; `nil` after the last.
        mutating func nextParameter(in bytes: Span<UInt8>) throws(SyntaxError) -> Parameter? {
            skip(in: bytes) { $0.isBlank || $0 == .semicolon }
            guard index < end else { return nil }
            let start = index
            skip(in: bytes) { $0.isTokenCharacter }
            let name = start..<index
            guard index > start, index < end, bytes[index] == .equals else {
                throw error(in: bytes, afterName: index > start)
            }
            index += 1
            if index < end, bytes[index].isBlank { throw Self.blanksAroundEquals(at: index) }
            let isQuoted = index < end && bytes[index] == .quote
            var escapes = Escapes.none
            let value = isQuoted ? try quotedString(in: bytes, &escapes) : try unquoted(in: bytes)
            skip(in: bytes) { $0.isBlank }
            guard index == end || bytes[index] == .semicolon else {
                throw SyntaxError(
                    index: index, reason: "A parameter's value is followed by something else than a semicolon.")
            }
            return Parameter(name: name, value: value, isQuoted: isQuoted, escapes: escapes)
        }

        /// The error of a name without an equals sign. Not inlined, because the error is rare.
        @inline(never)
        private func error(in bytes: Span<UInt8>, afterName: Bool) -> SyntaxError {
            var rest = self
            rest.skip(in: bytes) { $0.isBlank }
            let isBlank = afterName && rest.index > index && rest.index < end && bytes[rest.index] == .equals
            return isBlank
                ? Self.blanksAroundEquals(at: index)
                : SyntaxError(index: index, reason: "A parameter is not written as name=value.")
        }

        private static func blanksAroundEquals(at index: Int) -> SyntaxError {
            SyntaxError(
                index: index,
                reason: "There are blanks around the equals sign of a parameter, which RFC 9110 §5.6.6 does not allow.")
        }

        @inline(__always)
        private mutating func skip(in bytes: Span<UInt8>, while belongs: (UInt8) -> Bool) {
            while index < end, belongs(bytes[index]) { index += 1 }
        }

        /// A value without quotes. It may contain more than a token, because clients write unquoted names in UTF-8.
        private mutating func unquoted(in bytes: Span<UInt8>) throws(SyntaxError) -> Range<Int> {
            let start = index
            skip(in: bytes) { $0 != .semicolon && $0 != .quote && !$0.isBlank }
            guard index > start else { throw SyntaxError(index: index, reason: "A parameter has no value.") }
            return start..<index
        }

        @inline(__always)
        private mutating func quotedString(
            in bytes: Span<UInt8>, _ escapes: inout Escapes
        ) throws(SyntaxError) -> Range<Int> {
            let start = index
            index += 1
            skip(in: bytes) { $0 != .quote && $0 != .backslash }
            if index < end, bytes[index] == .quote {
                index += 1
                return (start + 1)..<(index - 1)
            }
            return try rest(ofStringAt: start, in: bytes, &escapes)
        }

        /// The rest of a quoted string from its first backslash on. Not inlined, because backslashes are rare.
        @inline(never)
        private mutating func rest(
            ofStringAt start: Int, in bytes: Span<UInt8>, _ escapes: inout Escapes
        ) throws(SyntaxError) -> Range<Int> {
            while index < end {
                skip(in: bytes) { $0 != .quote && $0 != .backslash }
                guard index < end else { break }
                index += 1
                if bytes[index - 1] == .quote { return (start + 1)..<(index - 1) }
                guard index < end, bytes[index] == .quote || bytes[index] == .backslash else { continue }
                if backslashesAreRaw {
                    guard bytes[index] == .quote else { continue }
                    if endsValue(in: bytes, before: index + 1) {
                        index += 1
                        return (start + 1)..<(index - 1)
                    }
                    escapes = .quotes
                } else {
                    escapes = .quotesAndBackslashes
                }
                index += 1
            }
            throw SyntaxError(index: start, reason: "A quoted string is not closed.")
        }

        /// Whether a value may end before an index, because another parameter or no byte follows.
        private func endsValue(in bytes: Span<UInt8>, before index: Int) -> Bool {
            var rest = Scanner(index: index, end: end, backslashesAreRaw: true)
            rest.skip(in: bytes) { $0.isBlank }
            guard rest.index < end else { return true }
            guard bytes[rest.index] == .semicolon else { return false }
            rest.skip(in: bytes) { $0.isBlank || $0 == .semicolon }
            guard rest.index < end else { return true }
            let name = rest.index
            rest.skip(in: bytes) { $0.isTokenCharacter }
            return rest.index > name && rest.index < end && bytes[rest.index] == .equals
        }
    }
}

extension Span<UInt8> {
    /// Whether a range equals a lowercase text, ignoring case.
    @inline(__always)
    func holds(_ lowercase: StaticString, in range: Range<Int>) -> Bool {
        guard range.count == lowercase.utf8CodeUnitCount else { return false }
        return lowercase.withUTF8Buffer { expected in
            var index = 0
            while index < expected.count {
                if self[range.lowerBound + index].asciiLowercased != expected[index] { return false }
                index += 1
            }
            return true
        }
    }

    /// Whether a range begins with a lowercase text, ignoring case.
    func begins(_ lowercase: StaticString, in range: Range<Int>) -> Bool {
        range.count >= lowercase.utf8CodeUnitCount
            && holds(lowercase, in: range.lowerBound..<(range.lowerBound + lowercase.utf8CodeUnitCount))
    }

    func equalIgnoringCase(_ one: Range<Int>, _ other: Range<Int>) -> Bool {
        guard one.count == other.count else { return false }
        for (left, right) in zip(one, other) where self[left].asciiLowercased != self[right].asciiLowercased {
            return false
        }
        return true
    }

    /// The text of a range; `nil` if it is not UTF-8.
    func text(in range: Range<Int>) -> String? {
        let part = extracting(range)
        return part.withUnsafeBufferPointer { bytes in
            // Most names are ASCII, which needs no slow validation by the standard library.
            part.isASCII ? String(decoding: bytes, as: UTF8.self) : String(validating: bytes, as: UTF8.self)
        }
    }

    /// Whether all bytes are ASCII. Reading every byte lets the compiler examine many at once.
    var isASCII: Bool {
        withUnsafeBufferPointer { bytes in
            var all: UInt8 = 0
            for byte in bytes { all |= byte }
            return all < 0x80
        }
    }

    /// The text of a range, with U+FFFD for bytes that are not UTF-8.
    func repairedText(in range: Range<Int>) -> String {
        extracting(range).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }
}
