/// A pattern that the whole text of a field must match, written as a regular expression.
///
/// ```swift
/// let phone = try TextPattern(#"\d{2,3}-\d{3,4}-\d{4}"#)
/// phone.matches("010-1234-5678")  // true
/// ```
///
/// **Why not `Regex`.** Swift's `Regex` backtracks without a limit: `(a+)+` keeps a processor busy for minutes with 25
/// letters, which the sender chooses. A `TextPattern` tracks all possible positions in the pattern at once. For any
/// pattern and text, each character costs at most ``maximumStates`` comparisons, and the text need not be in memory.
///
/// **Syntax.** Characters; `.` (any but LF, CR, U+2028, U+2029); sets (`[a-z가-힣_]`, `[^<>]`); `\d` (0 to 9), `\w`
/// (letters and digits of ASCII, and `_`), `\s` (white space of Unicode) and their opposites `\D`, `\W`, `\S`; `\p{L}`
/// and `\P{L}` with a general category of Unicode of one letter or two; `\t`, `\n`, `\r`, `\u{1F415}`; a backslash
/// before any other punctuation mark; groups `(…)` and `(?:…)`; `|`; `*`, `+`, `?`, `{2}`, `{2,}`, `{2,5}`. A `^` at
/// the beginning and a `$` at the end change nothing. Syntax that needs backtracking (`\1`, `(?=…)`, `(?!…)`) is
/// refused, and so are lazy and possessive quantifiers, which would make no difference.
///
/// A character is a Unicode scalar, without normalization: `é` in one scalar is not `é` in two.
public struct TextPattern: Sendable {
    /// The pattern as it was written.
    public let source: String

    /// The maximum number of states of a pattern: 1,000. Each character, multiplied by its repetitions, is a state.
    public static let maximumStates = 1000

    let program: PatternProgram

    /// Compiles a pattern.
    ///
    /// - Throws: ``FormRulesError`` if the pattern breaks the grammar of ``TextPattern``, or has more states than
    ///   ``maximumStates``.
    public init(_ source: String) throws(FormRulesError) {
        self.source = source
        do {
            var parser = PatternParser(source)
            program = try PatternProgram(try parser.parse())
        } catch {
            throw FormRulesError(
                .invalidValue, "The pattern \(source.debugDescription) cannot be used: \(error.reason).",
                advice: error.advice)
        }
    }

    /// Whether the whole text matches the pattern.
    public func matches(_ text: String) -> Bool {
        var match = PatternMatch(program)
        for scalar in text.unicodeScalars {
            guard match.advance(over: scalar, in: program) else { return false }
        }
        return match.isComplete
    }
}

extension TextPattern: Hashable, CustomStringConvertible {
    public static func == (left: TextPattern, right: TextPattern) -> Bool {
        left.source == right.source
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(source)
    }

    public var description: String { source }
}

/// The reason why a text is not a valid pattern.
struct PatternError: Error {
    let reason: String
    let advice: String

    init(_ reason: String, advice: String) {
        self.reason = reason
        self.advice = advice
    }
}

/// A pattern as a nondeterministic automaton, as in K. Thompson, "Regular Expression Search Algorithm" (1968).
struct PatternProgram: Sendable {
    enum Instruction: Sendable {
        /// Matches one character of the set and continues with the next instruction.
        case take(ScalarSet)
        /// Continues at both of the given instructions.
        case split(Int, Int)
        case jump(Int)
        case accept
    }

    private(set) var instructions: [Instruction] = []

    init(_ node: PatternNode) throws(PatternError) {
        try append(node)
        instructions.append(.accept)
    }

    private mutating func append(_ node: PatternNode) throws(PatternError) {
        switch node {
        case .empty:
            break
        case .set(let set):
            try emit(.take(set))
        case .sequence(let items):
            for item in items { try append(item) }
        case .choice(let branches):
            try append(choice: branches[...])
        case .repetition(let body, let least, let most):
            try append(body, least: least, most: most)
        }
    }

    private mutating func append(choice branches: ArraySlice<PatternNode>) throws(PatternError) {
        var ends: [Int] = []
        for branch in branches.dropLast() {
            let split = instructions.count
            try emit(.jump(0))
            try append(branch)
            ends.append(instructions.count)
            try emit(.jump(0))
            instructions[split] = .split(split + 1, instructions.count)
        }
        if let last = branches.last { try append(last) }
        for end in ends { instructions[end] = .jump(instructions.count) }
    }

    private mutating func append(_ body: PatternNode, least: Int, most: Int?) throws(PatternError) {
        for _ in 0..<least {
            let start = instructions.count
            try append(body)
            // An empty node adds no instructions, so repeating it changes nothing.
            if instructions.count == start { return }
        }
        guard let most else {
            let split = instructions.count
            try emit(.jump(0))
            try append(body)
            try emit(.jump(split))
            instructions[split] = .split(split + 1, instructions.count)
            return
        }
        var splits: [Int] = []
        for _ in least..<most {
            splits.append(instructions.count)
            try emit(.jump(0))
            try append(body)
        }
        for split in splits { instructions[split] = .split(split + 1, instructions.count) }
    }

    private mutating func emit(_ instruction: Instruction) throws(PatternError) {
        guard instructions.count < TextPattern.maximumStates else {
            throw PatternError(
                "it has more than \(TextPattern.maximumStates) states",
                advice: "Repeat less, and say how long the value may be by maximumCharacters.")
        }
        instructions.append(instruction)
    }
}

/// The state of matching a text: the instructions of the pattern that may match the text's next character.
struct PatternMatch: Sendable {
    private var places: [Int] = []
    private var next: [Int] = []
    private var pending: [Int] = []
    /// The step in which each instruction was last reached, so that no instruction is followed twice in a step.
    private var reached: [Int]
    private var step = 0

    /// Whether the text read so far matches as a whole.
    private(set) var isComplete = false

    init(_ program: PatternProgram) {
        reached = [Int](repeating: -1, count: program.instructions.count)
        reach(0, in: program)
        swap(&places, &next)
    }

    /// Matches the next character. Returns `false` if no text with this beginning can match.
    mutating func advance(over scalar: Unicode.Scalar, in program: PatternProgram) -> Bool {
        step += 1
        isComplete = false
        next.removeAll(keepingCapacity: true)
        for place in places {
            if case .take(let set) = program.instructions[place], set.contains(scalar) { reach(place + 1, in: program) }
        }
        swap(&places, &next)
        return isComplete || !places.isEmpty
    }

    private mutating func reach(_ place: Int, in program: PatternProgram) {
        pending.append(place)
        while let place = pending.popLast() {
            if reached[place] == step { continue }
            reached[place] = step
            switch program.instructions[place] {
            case .take: next.append(place)
            case .split(let first, let second):
                pending.append(second)
                pending.append(first)
            case .jump(let target): pending.append(target)
            case .accept: isComplete = true
            }
        }
    }
}

/// The characters that match at one position in a pattern.
struct ScalarSet: Sendable {
    var ranges: [ClosedRange<UInt32>] = []
    var categories: Set<Unicode.GeneralCategory> = []
    var takesWhiteSpace = false
    /// Sets within the set, such as `\D` in `[\D5]`.
    var members: [ScalarSet] = []
    var isNegated = false

    init() {}

    init(_ scalar: Unicode.Scalar) {
        ranges = [scalar.value...scalar.value]
    }

    private init(_ ranges: [ClosedRange<Unicode.Scalar>]) {
        self.ranges = ranges.map { $0.lowerBound.value...$0.upperBound.value }
    }

    /// Makes the set of a general category of Unicode, such as `Lu`, or of all categories with the same first letter,
    /// such as `L`. `nil` if there is no such category.
    init?(category name: String) {
        categories = Set(Self.categories.filter { $0.key == name || $0.key.prefix(1) == name }.values)
        if categories.isEmpty { return nil }
    }

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        let isMember =
            ranges.contains { $0.contains(scalar.value) }
            || (!categories.isEmpty && categories.contains(scalar.properties.generalCategory))
            || (takesWhiteSpace && scalar.properties.isWhitespace) || members.contains { $0.contains(scalar) }
        return isMember != isNegated
    }

    var negated: ScalarSet {
        var set = self
        set.isNegated.toggle()
        return set
    }

    /// The only character of the set; `nil` if the set has more or none.
    var single: UInt32? {
        guard ranges.count == 1, ranges[0].count == 1, !isNegated else { return nil }
        return ranges[0].lowerBound
    }

    static let digits = ScalarSet(["0"..."9"])
    static let wordCharacters = ScalarSet(["0"..."9", "A"..."Z", "a"..."z", "_"..."_"])
    static let allButLineBreaks = ScalarSet(["\n"..."\n", "\r"..."\r", "\u{2028}"..."\u{2029}"]).negated
    static let whiteSpace = {
        var set = ScalarSet()
        set.takesWhiteSpace = true
        return set
    }()

    private static let categories: [String: Unicode.GeneralCategory] = [
        "Lu": .uppercaseLetter, "Ll": .lowercaseLetter, "Lt": .titlecaseLetter, "Lm": .modifierLetter,
        "Lo": .otherLetter, "Mn": .nonspacingMark, "Mc": .spacingMark, "Me": .enclosingMark, "Nd": .decimalNumber,
        "Nl": .letterNumber, "No": .otherNumber, "Pc": .connectorPunctuation, "Pd": .dashPunctuation,
        "Ps": .openPunctuation, "Pe": .closePunctuation, "Pi": .initialPunctuation, "Pf": .finalPunctuation,
        "Po": .otherPunctuation, "Sm": .mathSymbol, "Sc": .currencySymbol, "Sk": .modifierSymbol, "So": .otherSymbol,
        "Zs": .spaceSeparator, "Zl": .lineSeparator, "Zp": .paragraphSeparator, "Cc": .control, "Cf": .format,
        "Cs": .surrogate, "Co": .privateUse, "Cn": .unassigned,
    ]
}
