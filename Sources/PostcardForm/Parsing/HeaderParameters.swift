/// A header field's value of the shape `value; name=value; name="value"` (RFC 9110 §5.6.6), as Content-Type and
/// Content-Disposition have it. It is read once from front to back.
struct HeaderParameters {
    /// What stands before the first semicolon, in lower case.
    let value: String
    let parameters: [Parameter]

    /// No field in use has more than four, and what is looked up among them stays cheap.
    private static let maximumCount = 16

    struct Parameter {
        /// The name in lower case.
        let name: String
        /// The value; of a quoted string what is between the quotes, with `\"` and `\\` undone. Other backslashes
        /// stay, because old browsers sent `C:\photos\cat.jpg` as it is.
        let value: [UInt8]
        let isQuoted: Bool
        /// The index of the parameter's name.
        let start: Int
    }

    /// Where a value breaks the grammar, and how.
    struct Fault: Error {
        let index: Int
        let reason: String
    }

    /// The parameter with a name.
    subscript(name: String) -> Parameter? {
        parameters.first { $0.name == name }
    }

    /// The first parameter whose name has come before.
    var duplicate: Parameter? {
        for (index, parameter) in parameters.enumerated()
        where parameters[..<index].contains(where: { $0.name == parameter.name }) {
            return parameter
        }
        return nil
    }

    init(_ bytes: ArraySlice<UInt8>) throws(Fault) {
        var scanner = Scanner(bytes)
        value = scanner.lowercasedText(upTo: .semicolon)
        var parameters: [Parameter] = []
        while let parameter = try scanner.nextParameter() {
            guard parameters.count < Self.maximumCount else {
                throw Fault(index: parameter.start, reason: "There are more than \(Self.maximumCount) parameters.")
            }
            parameters.append(parameter)
        }
        self.parameters = parameters
    }
}

extension HeaderParameters {
    private struct Scanner {
        private let bytes: ArraySlice<UInt8>
        private var index: Int

        init(_ bytes: ArraySlice<UInt8>) {
            self.bytes = bytes
            index = bytes.startIndex
        }

        /// The text up to a byte, which is not passed, without the blanks behind it.
        mutating func lowercasedText(upTo end: UInt8) -> String {
            let start = index
            index = bytes[start...].firstIndex(of: end) ?? bytes.endIndex
            let length = bytes[start..<index].lastIndex { !$0.isBlank }.map { $0 + 1 - start } ?? 0
            return String(decoding: bytes[start..<(start + length)].map(\.asciiLowercased), as: UTF8.self)
        }

        /// The next parameter; `nil` at the end.
        mutating func nextParameter() throws(Fault) -> Parameter? {
            skip { $0.isBlank || $0 == .semicolon }
            guard index < bytes.endIndex else { return nil }
            let start = index
            skip(while: \.isTokenCharacter)
            let name = String(decoding: bytes[start..<index].map(\.asciiLowercased), as: UTF8.self)
            guard index > start, index < bytes.endIndex, bytes[index] == .equals else {
                throw Fault(index: index, reason: "A parameter is not written as name=value.")
            }
            index += 1
            let isQuoted = index < bytes.endIndex && bytes[index] == .quote
            let value = isQuoted ? try quotedString() : try unquoted()
            skip(while: \.isBlank)
            guard index == bytes.endIndex || bytes[index] == .semicolon else {
                throw Fault(index: index, reason: "A parameter's value is followed by something else than a semicolon.")
            }
            return Parameter(name: name, value: value, isQuoted: isQuoted, start: start)
        }

        private mutating func skip(while belongs: (UInt8) -> Bool) {
            while index < bytes.endIndex, belongs(bytes[index]) { index += 1 }
        }

        /// A value without quotes: more than a token, because clients write names in UTF-8 without quotes.
        private mutating func unquoted() throws(Fault) -> [UInt8] {
            let start = index
            skip { $0 != .semicolon && $0 != .quote && !$0.isBlank }
            guard index > start else { throw Fault(index: index, reason: "A parameter has no value.") }
            return Array(bytes[start..<index])
        }

        private mutating func quotedString() throws(Fault) -> [UInt8] {
            let start = index
            var value: [UInt8] = []
            index += 1
            while index < bytes.endIndex {
                let byte = bytes[index]
                index += 1
                if byte == .quote { return value }
                if byte == .backslash, index < bytes.endIndex, bytes[index] == .quote || bytes[index] == .backslash {
                    value.append(bytes[index])
                    index += 1
                } else {
                    value.append(byte)
                }
            }
            throw Fault(index: start, reason: "A quoted string is not closed.")
        }
    }
}
