/// The value of a text field that is held to its rule, byte by byte; none of them is kept.
struct FieldCheck: Sendable {
    private let rule: FormRules.Field
    private let header: PartHeader
    /// The offset of the next byte.
    private var offset: Int64
    private var characters = 0
    private var decoder = UTF8Decoder()
    private var match: PatternMatch?
    private var values: AllowedValues?

    init(_ rule: FormRules.Field, _ header: PartHeader, contentOffset: Int64) {
        self.rule = rule
        self.header = header
        offset = contentOffset
        match = (rule.pattern?.program).map { PatternMatch($0) }
        values = rule.oneOf.map { AllowedValues($0) }
    }

    mutating func append(_ byte: UInt8) throws(FormProblem) {
        if values?.advance(over: byte) == false {
            throw .valueNotAllowed(header, rule.oneOf ?? [], at: offset)
        }
        switch decoder.decode(byte) {
        case .incomplete:
            break
        case .malformed(let start):
            throw .fieldNotUTF8(header, at: offset - Int64(start))
        case .scalar(let scalar, let length):
            let start = offset - Int64(length - 1)
            characters += 1
            if let maximum = rule.maximumCharacters, characters > maximum {
                throw .fieldTooLong(header, maximum, at: start)
            }
            if let program = rule.pattern?.program, match?.advance(over: scalar, in: program) == false {
                throw .patternMismatch(header, rule.pattern, at: start)
            }
        }
        offset += 1
    }

    func end() throws(FormProblem) {
        if decoder.pending > 0 { throw .fieldNotUTF8(header, at: offset - Int64(decoder.pending)) }
        if values?.isComplete == false { throw .valueNotAllowed(header, rule.oneOf ?? [], at: offset) }
        if characters < rule.minimumCharacters {
            throw .fieldTooShort(header, rule.minimumCharacters, at: offset)
        }
        if match?.isComplete == false { throw .patternMismatch(header, rule.pattern, at: offset) }
    }
}

extension FormRules.Field {
    /// Whether the value must be checked.
    var isAboutText: Bool {
        minimumCharacters > 0 || maximumCharacters != nil || pattern != nil || oneOf != nil
    }
}

/// The allowed values that still match.
private struct AllowedValues: Sendable {
    /// Sorted, so that values with the same beginning are together.
    private let values: [[UInt8]]
    private var left: Range<Int>
    private var position = 0

    init(_ values: [String]) {
        self.values = values.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
        left = values.indices
    }

    /// - Returns: `false` if no value continues this way.
    mutating func advance(over byte: UInt8) -> Bool {
        var lower = left.lowerBound
        var upper = left.upperBound
        while lower < upper, values[lower].count <= position || values[lower][position] < byte { lower += 1 }
        while lower < upper, values[upper - 1][position] > byte { upper -= 1 }
        left = lower..<upper
        position += 1
        return lower < upper
    }

    /// Whether the value so far is one of the allowed values.
    var isComplete: Bool { !left.isEmpty && values[left.lowerBound].count == position }
}

/// Reads UTF-8 byte by byte (RFC 3629 §4).
private struct UTF8Decoder: Sendable {
    enum Result {
        case incomplete
        /// A character is complete, with its length in bytes.
        case scalar(Unicode.Scalar, length: Int)
        /// The bytes are not UTF-8, from this many bytes before this one.
        case malformed(start: Int)
    }

    /// How many bytes of an incomplete character have been read.
    private(set) var pending = 0
    private var missing = 0
    private var value: UInt32 = 0
    /// What the next byte may be, which is how overlong forms, surrogates and too large values are kept out.
    private var next: ClosedRange<UInt8> = 0x80...0xBF

    mutating func decode(_ byte: UInt8) -> Result {
        guard missing > 0 else { return begin(byte) }
        guard next.contains(byte) else { return .malformed(start: pending) }
        value = value << 6 | UInt32(byte & 0x3F)
        pending += 1
        missing -= 1
        next = 0x80...0xBF
        guard missing == 0 else { return .incomplete }
        let length = pending
        pending = 0
        return Unicode.Scalar(value).map { .scalar($0, length: length) } ?? .malformed(start: length - 1)
    }

    private mutating func begin(_ byte: UInt8) -> Result {
        switch byte {
        case 0..<0x80: return .scalar(Unicode.Scalar(byte), length: 1)
        case 0xC2...0xDF: expect(1, byte & 0x1F, 0x80...0xBF)
        case 0xE0: expect(2, byte & 0x0F, 0xA0...0xBF)
        case 0xED: expect(2, byte & 0x0F, 0x80...0x9F)
        case 0xE1...0xEF: expect(2, byte & 0x0F, 0x80...0xBF)
        case 0xF0: expect(3, byte & 0x07, 0x90...0xBF)
        case 0xF1...0xF3: expect(3, byte & 0x07, 0x80...0xBF)
        case 0xF4: expect(3, byte & 0x07, 0x80...0x8F)
        default: return .malformed(start: 0)
        }
        return .incomplete
    }

    private mutating func expect(_ count: Int, _ bits: UInt8, _ range: ClosedRange<UInt8>) {
        missing = count
        value = UInt32(bits)
        next = range
        pending = 1
    }
}
