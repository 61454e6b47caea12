import PostcardFoundation

/// The types of Structured Field Values (RFC 9651) that uploads need: integers, booleans, strings and bytes. Values
/// of other types are checked and become ``other``.
///
/// swift-http-structured-headers is not used, because it also reads decimals, parameters and fields of any length.
/// Uploads do not need these.
package enum StructuredField: Equatable {
    case integer(Int64)
    case boolean(Bool)
    case string(String)
    case bytes([UInt8])
    case other

    /// The largest integer, of 15 digits (§3.3.1).
    static let maximumInteger: Int64 = 999_999_999_999_999

    /// The maximum length of a value, in bytes, far above that of any upload's field. Longer values are ignored.
    private static let maximumBytes = 4 << 10

    /// Reads a field that is one item (§4.2.3), without the item's parameters.
    package static func item(_ text: String) -> StructuredField? {
        read(text) { reader throws(StructuredFieldReader.Malformed) in try reader.item() }
    }

    /// Reads a field that is a dictionary (§4.2.2). The last value of a repeated key counts.
    static func dictionary(_ text: String) -> [String: StructuredField]? {
        read(text) { reader throws(StructuredFieldReader.Malformed) in try reader.dictionary() }
    }

    private static func read<Value>(
        _ text: String, _ body: (inout StructuredFieldReader) throws(StructuredFieldReader.Malformed) -> Value
    ) -> Value? {
        guard text.utf8.count <= maximumBytes else { return nil }
        var reader = StructuredFieldReader(text)
        reader.skipSpaces()
        guard let value = try? body(&reader) else { return nil }
        reader.skipSpaces()
        return reader.isAtEnd ? value : nil
    }

    static func text(_ number: Int64) -> String { String(number) }
    static func text(_ truth: Bool) -> String { truth ? "?1" : "?0" }
}

/// Reads a whole field value by the algorithms of RFC 9651 §4.2.
struct StructuredFieldReader {
    struct Malformed: Error {}

    private var rest: ArraySlice<UInt8>

    init(_ text: String) {
        rest = ArraySlice(text.utf8)
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skipSpaces() {
        rest = rest.drop { $0 == UInt8(ascii: " ") }
    }

    private mutating func skipOptionalWhitespace() {
        rest = rest.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    }

    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func next() throws(Malformed) -> UInt8 {
        guard let byte = rest.popFirst() else { throw Malformed() }
        return byte
    }

    private mutating func take(while isWanted: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let taken = rest.prefix(while: isWanted)
        rest = rest[taken.endIndex...]
        return taken
    }

    // MARK: - Structures

    mutating func dictionary() throws(Malformed) -> [String: StructuredField] {
        var members: [String: StructuredField] = [:]
        while !isAtEnd {
            let key = try key()
            if skip("=") {
                members[key] = try itemOrInnerList()
            } else {
                members[key] = .boolean(true)
                try skipParameters()
            }
            skipOptionalWhitespace()
            guard !isAtEnd else { break }
            guard skip(",") else { throw Malformed() }
            skipOptionalWhitespace()
            guard !isAtEnd else { throw Malformed() }
        }
        return members
    }

    mutating func item() throws(Malformed) -> StructuredField {
        let value = try bareItem()
        try skipParameters()
        return value
    }

    private mutating func itemOrInnerList() throws(Malformed) -> StructuredField {
        guard skip("(") else { return try item() }
        while true {
            skipSpaces()
            if skip(")") { break }
            _ = try item()
            guard rest.first == UInt8(ascii: " ") || rest.first == UInt8(ascii: ")") else { throw Malformed() }
        }
        try skipParameters()
        return .other
    }

    private mutating func skipParameters() throws(Malformed) {
        while skip(";") {
            skipSpaces()
            _ = try key()
            if skip("=") { _ = try bareItem() }
        }
    }

    private mutating func key() throws(Malformed) -> String {
        guard let first = rest.first, first.isLowercase || first == UInt8(ascii: "*") else { throw Malformed() }
        let key = take { $0.isLowercase || $0.isDigit || "_-.*".utf8.contains($0) }
        return String(decoding: key, as: UTF8.self)
    }

    // MARK: - Values

    private mutating func bareItem() throws(Malformed) -> StructuredField {
        switch rest.first {
        case UInt8(ascii: "?"):
            rest.removeFirst()
            switch try next() {
            case UInt8(ascii: "0"): return .boolean(false)
            case UInt8(ascii: "1"): return .boolean(true)
            default: throw Malformed()
            }
        case UInt8(ascii: "-"): return try number()
        case let byte? where byte.isDigit: return try number()
        case UInt8(ascii: "\""): return try string()
        case UInt8(ascii: "%"): try skipDisplayString()
        case UInt8(ascii: ":"): return try bytes()
        case UInt8(ascii: "@"):
            rest.removeFirst()
            guard case .integer = try number() else { throw Malformed() }
        case let byte? where byte.isLetter || byte == UInt8(ascii: "*"):
            _ = take { $0.isLetter || $0.isDigit || "!#$%&'*+-.^_`|~:/".utf8.contains($0) }
        default: throw Malformed()
        }
        return .other
    }

    /// Reads an integer of at most 15 digits, or a decimal with at most 12 digits before its point and 3 after it
    /// (§4.2.4).
    private mutating func number() throws(Malformed) -> StructuredField {
        let isNegative = skip("-")
        let digits = take(while: \.isDigit)
        guard (1...15).contains(digits.count) else { throw Malformed() }
        guard skip(".") else {
            let magnitude = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
            return .integer(isNegative ? -magnitude : magnitude)
        }
        guard digits.count <= 12, (1...3).contains(take(while: \.isDigit).count) else { throw Malformed() }
        return .other
    }

    private mutating func string() throws(Malformed) -> StructuredField {
        rest.removeFirst()
        var text = ""
        while true {
            var byte = try next()
            switch byte {
            case UInt8(ascii: "\""): return .string(text)
            case UInt8(ascii: "\\"):
                byte = try next()
                guard ["\"", "\\"].contains(Unicode.Scalar(byte)) else { throw Malformed() }
            case 0x20...0x7E: break
            default: throw Malformed()
            }
            text.unicodeScalars.append(Unicode.Scalar(byte))
        }
    }

    private mutating func skipDisplayString() throws(Malformed) {
        rest.removeFirst()
        guard skip("\"") else { throw Malformed() }
        var text: [UInt8] = []
        while true {
            switch try next() {
            case UInt8(ascii: "\""):
                guard String(validating: text, as: UTF8.self) != nil else { throw Malformed() }
                return
            case UInt8(ascii: "%"):
                let digits = [try next(), try next()]
                guard digits.allSatisfy({ $0.isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0) }),
                    let byte = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
                else { throw Malformed() }
                text.append(byte)
            case let byte where (0x20...0x7E).contains(byte): text.append(byte)
            default: throw Malformed()
            }
        }
    }

    /// Reads bytes in base64 (§4.2.7), with or without padding.
    private mutating func bytes() throws(Malformed) -> StructuredField {
        rest.removeFirst()
        let text = take { $0.isLetter || $0.isDigit || "+/=".utf8.contains($0) }
        guard skip(":") else { throw Malformed() }
        let missing = (4 - text.count % 4) % 4
        let padded = Data(text) + Data(repeating: UInt8(ascii: "="), count: missing)
        guard let bytes = Data(base64Encoded: padded) else { throw Malformed() }
        return .bytes(Array(bytes))
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
    fileprivate var isLowercase: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) }
    fileprivate var isLetter: Bool { isLowercase || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) }
}
