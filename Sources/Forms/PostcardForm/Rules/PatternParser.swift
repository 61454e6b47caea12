indirect enum PatternNode: Sendable {
    case empty
    case set(ScalarSet)
    case sequence([PatternNode])
    case choice([PatternNode])
    /// A node that is repeated at least `least` and at most `most` times. `nil` means no limit.
    case repetition(PatternNode, least: Int, most: Int?)
}

/// Parses a pattern by the grammar of ``TextPattern``.
struct PatternParser {
    private let scalars: [Unicode.Scalar]
    private var index = 0
    private var depth = 0

    /// The maximum depth of groups, because the parser is recursive.
    private static let maximumDepth = 50
    private static let maximumLength = 2000
    private static let maximumRepetitions = TextPattern.maximumStates

    init(_ source: String) {
        scalars = Array(source.unicodeScalars)
    }

    mutating func parse() throws(PatternError) -> PatternNode {
        guard scalars.count <= Self.maximumLength else {
            throw PatternError("it has more than \(Self.maximumLength) characters", advice: "Write a shorter one.")
        }
        let node = try choice()
        if index < scalars.count {
            throw PatternError("the ) at character \(index) closes nothing", advice: #"Write \) for the mark itself."#)
        }
        return node
    }

    private mutating func choice() throws(PatternError) -> PatternNode {
        var branches = [try sequence()]
        while take("|") { branches.append(try sequence()) }
        return branches.count == 1 ? branches[0] : .choice(branches)
    }

    private mutating func sequence() throws(PatternError) -> PatternNode {
        if depth == 0 { _ = take("^") }
        var items: [PatternNode] = []
        while let next = peek, next != "|", next != ")" {
            if depth == 0, next == "$", index + 1 == scalars.count || scalars[index + 1] == "|" {
                index += 1
                break
            }
            let item = try atom()
            items.append(try quantified(item))
        }
        return items.isEmpty ? .empty : .sequence(items)
    }

    private mutating func atom() throws(PatternError) -> PatternNode {
        let start = index
        guard let scalar = next() else { return .empty }
        switch scalar {
        case "(":
            return try group(from: start)
        case "[":
            return .set(try bracketed(from: start))
        case "\\":
            return .set(try escape())
        case ".":
            return .set(.allButLineBreaks)
        case "*", "+", "?", "{":
            throw PatternError(
                "there is nothing before the \(scalar) at character \(start) to repeat",
                advice: #"Write \\#(scalar) for the mark itself."#)
        case "^", "$":
            throw PatternError(
                "the \(scalar) at character \(start) is not at the pattern's own beginning or end",
                advice: #"A pattern matches the whole value. Leave it out, or write \\#(scalar) for the mark itself."#)
        default:
            return .set(ScalarSet(scalar))
        }
    }

    private mutating func group(from start: Int) throws(PatternError) -> PatternNode {
        if take("?"), !take(":") {
            throw PatternError(
                "the group at character \(start) is of a kind that needs going back over the text",
                advice: "Use only (…) or (?:…), and check the rest in the program that receives the form.")
        }
        guard depth < Self.maximumDepth else {
            throw PatternError("its groups are nested more than \(Self.maximumDepth) deep", advice: "Write it flatter.")
        }
        depth += 1
        let node = try choice()
        depth -= 1
        guard take(")") else {
            throw PatternError("the ( at character \(start) is not closed", advice: #"Close it, or write \(."#)
        }
        return node
    }

    private mutating func quantified(_ node: PatternNode) throws(PatternError) -> PatternNode {
        let start = index
        let result: PatternNode
        if take("*") {
            result = .repetition(node, least: 0, most: nil)
        } else if take("+") {
            result = .repetition(node, least: 1, most: nil)
        } else if take("?") {
            result = .repetition(node, least: 0, most: 1)
        } else if take("{") {
            result = try counted(node, from: start)
        } else {
            return node
        }
        if let mark = peek, ["*", "+", "?", "{"].contains(mark) {
            throw PatternError(
                "a quantifier follows a quantifier at character \(index)", advice: "Write one, or put a group around.")
        }
        return result
    }

    private mutating func counted(_ node: PatternNode, from start: Int) throws(PatternError) -> PatternNode {
        let error = PatternError(
            "the { at character \(start) begins no {2}, {2,} or {2,5} of at most \(Self.maximumRepetitions)",
            advice: #"Write it so, or \{ for the mark itself."#)
        guard let least = number() else { throw error }
        var most: Int? = least
        if take(",") { most = peek == "}" ? nil : number() ?? -1 }
        guard take("}"), least <= Self.maximumRepetitions, (most ?? least) >= least,
            (most ?? 0) <= Self.maximumRepetitions
        else { throw error }
        return .repetition(node, least: least, most: most)
    }

    private mutating func number() -> Int? {
        let start = index
        var value = 0
        while let digit = peek, ("0"..."9").contains(digit), index - start < 6 {
            value = value * 10 + Int(digit.value - 0x30)
            index += 1
        }
        return index > start ? value : nil
    }
}

// MARK: - Sets

extension PatternParser {
    private mutating func bracketed(from start: Int) throws(PatternError) -> ScalarSet {
        var set = ScalarSet()
        set.isNegated = take("^")
        var isFirst = true
        while let mark = peek, mark != "]" || isFirst {
            isFirst = false
            let itemStart = index
            guard let low = try setItem(into: &set) else { continue }
            // A dash at the end is a literal dash.
            guard peek == "-", index + 1 < scalars.count, scalars[index + 1] != "]" else {
                set.ranges.append(low...low)
                continue
            }
            index += 1
            guard let high = try setItem(into: &set), low <= high else {
                throw PatternError(
                    "the range at character \(itemStart) does not go from a character to a later one",
                    advice: #"Write the lower one first, or \- for the mark itself."#)
            }
            set.ranges.append(low...high)
        }
        guard take("]") else {
            throw PatternError("the [ at character \(start) is not closed", advice: #"Close it, or write \[."#)
        }
        return set
    }

    /// Reads an item of a set. Returns a single character, or adds a class of characters to the set and returns `nil`.
    private mutating func setItem(into set: inout ScalarSet) throws(PatternError) -> UInt32? {
        guard let scalar = next() else { return nil }
        guard scalar == "\\" else { return scalar.value }
        let escaped = try escape()
        if let single = escaped.single { return single }
        set.members.append(escaped)
        return nil
    }

    /// Reads an escape after its backslash, and returns the characters that it stands for.
    private mutating func escape() throws(PatternError) -> ScalarSet {
        let start = index - 1
        let unknown = PatternError(
            "the escape at character \(start) is not known here",
            advice: #"Known are \d \w \s \D \W \S \p{…} \P{…} \t \n \r \u{…} and a backslash before a mark."#)
        guard let scalar = next() else { throw unknown }
        switch scalar {
        case "d": return .digits
        case "D": return .digits.negated
        case "w": return .wordCharacters
        case "W": return .wordCharacters.negated
        case "s": return .whiteSpace
        case "S": return .whiteSpace.negated
        case "t": return ScalarSet("\t")
        case "n": return ScalarSet("\n")
        case "r": return ScalarSet("\r")
        case "u":
            guard let digits = braced(), digits.count <= 6, let value = UInt32(digits, radix: 16),
                let scalar = Unicode.Scalar(value)
            else { throw unknown }
            return ScalarSet(scalar)
        case "p", "P":
            guard let name = braced(), let set = ScalarSet(category: name) else { throw unknown }
            return scalar == "p" ? set : set.negated
        default:
            let isLetterOrDigit = scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
            if isLetterOrDigit { throw unknown }
            return ScalarSet(scalar)
        }
    }

    /// The text in braces; `nil` if no braces follow.
    private mutating func braced() -> String? {
        guard take("{"), let end = scalars[index...].firstIndex(of: "}") else { return nil }
        defer { index = end + 1 }
        return String(String.UnicodeScalarView(scalars[index..<end]))
    }

    private var peek: Unicode.Scalar? { index < scalars.count ? scalars[index] : nil }

    private mutating func next() -> Unicode.Scalar? {
        guard let scalar = peek else { return nil }
        index += 1
        return scalar
    }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard peek == scalar else { return false }
        index += 1
        return true
    }
}
