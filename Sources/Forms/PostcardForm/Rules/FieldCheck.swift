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
