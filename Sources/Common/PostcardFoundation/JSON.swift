/// Untrusted JSON (RFC 8259).
///
/// Names and strings are UTF-8 bytes, because comparing Swift strings takes time by the square of their combining
/// marks. The reader needs no Foundation, and its time is linear for any depth and size.
package enum JSON: Sendable, Hashable {
    case null
    case bool(Bool)
    /// A number as the text writes it.
    case number([UInt8])
    /// A string with its escapes decoded. A lone surrogate becomes U+FFFD.
    case string([UInt8])
    case array([JSON])
    /// The members of an object, in the order of the text. A name that is repeated in the text has several members.
    case object([Member])

    package struct Member: Sendable, Hashable {
        package let name: [UInt8]
        package let value: JSON
    }

    /// The reason why a text is refused.
    package struct Malformed: Error, Sendable, Hashable {
        package enum Reason: Sendable, Hashable {
            case notJSON
            /// Arrays and objects are nested too deeply.
            case tooDeep
        }

        package let reason: Reason
        /// The offset of the first wrong byte.
        package let offset: Int
    }

    /// The default maximum depth of nested arrays and objects.
    package static let maximumDepth = 512

    /// Reads a JSON text, which may begin with a byte order mark.
    package init(_ text: some Collection<UInt8>, maximumDepth: Int = JSON.maximumDepth) throws(Malformed) {
        var reader = JSONReader(bytes: ContiguousArray(text), maximumDepth: maximumDepth)
        self = try reader.readText()
    }
}

extension JSON {
    /// The value of the last member with a name; `nil` if the value is not an object or has no such member.
    package subscript(name: StaticString) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return name.withUTF8Buffer { name in members.last { $0.name.elementsEqual(name) }?.value }
    }

    /// The bytes of the string; `nil` if the value is not a string.
    package var string: [UInt8]? {
        if case .string(let bytes) = self { bytes } else { nil }
    }

    /// The string as text, with U+034F after every 30 combining marks in a row; `nil` for other values.
    package var text: String? {
        if case .string(let bytes) = self { String(streamSafe: bytes) } else { nil }
    }

    /// The number as an integer; `nil` for other values and for numbers that do not fit.
    package var integer: Int64? {
        guard case .number(let digits) = self else { return nil }
        return Int64(String(decoding: digits, as: UTF8.self)) ?? double.flatMap { Int64(exactly: $0) }
    }

    /// The number as a `Double`; `nil` for other values.
    package var double: Double? {
        if case .number(let digits) = self { Double(String(decoding: digits, as: UTF8.self)) } else { nil }
    }

    /// The elements of the array; `nil` for other values.
    package var elements: [JSON]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// Whether all names and strings have at most 30 combining marks in a row.
    package var isStreamSafe: Bool {
        switch self {
        case .null, .bool, .number: true
        case .string(let bytes): CombiningMarks.firstExcess(in: bytes) == nil
        case .array(let elements): elements.allSatisfy { $0.isStreamSafe }
        case .object(let members):
            members.allSatisfy { CombiningMarks.firstExcess(in: $0.name) == nil && $0.value.isStreamSafe }
        }
    }

    /// The reason, in a sentence, why Foundation's decoder must not read a text; `nil` if the decoder may read it. Many
    /// combining marks in a row make the decoder slow. Encodings other than UTF-8 are refused, because their marks are
    /// not counted here.
    package static func reasonNotToDecode(_ text: some Collection<UInt8>) -> String? {
        var last: UInt8 = 0
        let isInUTF8WithoutEscapes = text.allSatisfy { byte in
            defer { last = byte }
            return byte > 0 && !(byte == UInt8(ascii: "u") && last == UInt8(ascii: "\\"))
        }
        // In UTF-8 without escapes, the strings have the same marks as the text itself.
        if isInUTF8WithoutEscapes, CombiningMarks.firstExcess(in: text) == nil { return nil }
        guard let json = try? JSON(text) else { return "It is not JSON in UTF-8." }
        return json.isStreamSafe
            ? nil : "It has a text with more than \(CombiningMarks.maximumInARow) combining marks in a row."
    }
}

/// Reads JSON values in a loop, with the unfinished arrays and objects in ``open``. Recursion could overflow the
/// thread's stack if untrusted JSON is deeply nested.
private struct JSONReader {
    let bytes: ContiguousArray<UInt8>
    let maximumDepth: Int
    var index = 0
    /// The unfinished arrays and objects, the innermost last.
    var open: [Open] = []

    /// An unfinished array, or an unfinished object with the name of its next value. It is changed in place, because a
    /// copy for each value would take quadratic time.
    struct Open {
        var elements: [JSON] = []
        var members: [JSON.Member] = []
        var name: [UInt8]?
    }

    mutating func readText() throws(JSON.Malformed) -> JSON {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
        while true {
            guard var value = try beginValue() else { continue }
            // One value may be the end of several nested arrays and objects.
            while true {
                skipBlanks()
                guard !open.isEmpty else {
                    guard index == bytes.count else { throw malformed() }
                    return value
                }
                guard let whole = try add(value) else { break }
                value = whole
            }
        }
    }

    /// Reads the beginning of a value. Returns `nil` if a non-empty array or object begins.
    private mutating func beginValue() throws(JSON.Malformed) -> JSON? {
        skipBlanks()
        switch byte {
        case UInt8(ascii: "\""): return .string(try readString())
        case .some(UInt8(ascii: "-")), .some(UInt8(ascii: "0")...UInt8(ascii: "9")): return .number(try readNumber())
        case UInt8(ascii: "t"): return try read("true", .bool(true))
        case UInt8(ascii: "f"): return try read("false", .bool(false))
        case UInt8(ascii: "n"): return try read("null", .null)
        case UInt8(ascii: "["):
            try descend()
            if take(UInt8(ascii: "]")) { return .array([]) }
            open.append(Open())
            return nil
        case UInt8(ascii: "{"):
            try descend()
            if take(UInt8(ascii: "}")) { return .object([]) }
            open.append(Open(name: try readName()))
            return nil
        default: throw malformed()
        }
    }

    private mutating func descend() throws(JSON.Malformed) {
        guard open.count < maximumDepth else { throw JSON.Malformed(reason: .tooDeep, offset: index) }
        index += 1
        skipBlanks()
    }

    /// Adds a value to the innermost array or object. Returns that array or object if it is finished.
    private mutating func add(_ value: JSON) throws(JSON.Malformed) -> JSON? {
        let last = open.count - 1
        guard let name = open[last].name else {
            open[last].elements.append(value)
            if take(UInt8(ascii: "]")) { return .array(open.removeLast().elements) }
            guard take(UInt8(ascii: ",")) else { throw malformed() }
            return nil
        }
        open[last].members.append(JSON.Member(name: name, value: value))
        if take(UInt8(ascii: "}")) { return .object(open.removeLast().members) }
        guard take(UInt8(ascii: ",")) else { throw malformed() }
        skipBlanks()
        open[last].name = try readName()
        return nil
    }

    private mutating func readName() throws(JSON.Malformed) -> [UInt8] {
        guard byte == UInt8(ascii: "\"") else { throw malformed() }
        let name = try readString()
        skipBlanks()
        guard take(UInt8(ascii: ":")) else { throw malformed() }
        return name
    }

    private mutating func read(_ word: StaticString, _ value: JSON) throws(JSON.Malformed) -> JSON {
        let isRead = word.withUTF8Buffer { bytes[index...].starts(with: $0) }
        guard isRead else { throw malformed() }
        index += word.utf8CodeUnitCount
        return value
    }

    private mutating func readNumber() throws(JSON.Malformed) -> [UInt8] {
        let start = index
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { try readDigits() }
        if take(UInt8(ascii: ".")) { try readDigits() }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try readDigits()
        }
        return Array(bytes[start..<index])
    }

    private mutating func readDigits() throws(JSON.Malformed) {
        let start = index
        while let byte, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { index += 1 }
        guard index > start else { throw malformed() }
    }

    private mutating func readString() throws(JSON.Malformed) -> [UInt8] {
        let first = index
        index += 1
        var string: [UInt8] = []
        while true {
            let start = index
            while index < bytes.count, bytes[index] >= 0x20, bytes[index] != UInt8(ascii: "\""),
                bytes[index] != UInt8(ascii: "\\")
            {
                index += 1
            }
            string += bytes[start..<index]
            switch byte {
            case UInt8(ascii: "\""):
                guard String(validating: bytes[first..<index], as: UTF8.self) != nil else {
                    throw JSON.Malformed(reason: .notJSON, offset: first)
                }
                index += 1
                return string
            case UInt8(ascii: "\\"):
                index += 1
                try readEscape(into: &string)
            default: throw malformed()
            }
        }
    }

    private mutating func readEscape(into string: inout [UInt8]) throws(JSON.Malformed) {
        guard let letter = byte else { throw malformed() }
        index += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): string.append(letter)
        case UInt8(ascii: "b"): string.append(0x08)
        case UInt8(ascii: "f"): string.append(0x0C)
        case UInt8(ascii: "n"): string.append(0x0A)
        case UInt8(ascii: "r"): string.append(0x0D)
        case UInt8(ascii: "t"): string.append(0x09)
        case UInt8(ascii: "u"): string += String(try readScalar()).utf8
        default:
            index -= 1
            throw malformed()
        }
    }

    /// The character of a `\u` escape, or of a surrogate pair of two escapes (RFC 8259 §7).
    private mutating func readScalar() throws(JSON.Malformed) -> Unicode.Scalar {
        let unit = try readCodeUnit()
        guard UTF16.isLeadSurrogate(unit), bytes[index...].starts(with: [UInt8(ascii: "\\"), UInt8(ascii: "u")]) else {
            return Unicode.Scalar(unit) ?? "\u{FFFD}"
        }
        let start = index
        index += 2
        let second = try readCodeUnit()
        guard UTF16.isTrailSurrogate(second) else {
            index = start
            return "\u{FFFD}"
        }
        let value = 0x10000 + (UInt32(unit & 0x3FF) << 10 | UInt32(second & 0x3FF))
        return Unicode.Scalar(value) ?? "\u{FFFD}"
    }

    private mutating func readCodeUnit() throws(JSON.Malformed) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = byte.flatMap({ Character(Unicode.Scalar($0)).hexDigitValue }) else { throw malformed() }
            unit = unit << 4 | UInt16(digit)
            index += 1
        }
        return unit
    }

    private var byte: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func take(_ expected: UInt8) -> Bool {
        guard byte == expected else { return false }
        index += 1
        return true
    }

    private mutating func skipBlanks() {
        while let byte, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
    }

    private func malformed() -> JSON.Malformed { JSON.Malformed(reason: .notJSON, offset: index) }
}
