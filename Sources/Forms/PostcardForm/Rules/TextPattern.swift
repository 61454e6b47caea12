/// A pattern that the whole text of a field must match, written as a regular expression.
///
/// ```swift
/// let phone = try TextPattern(#"\d{2,3}-\d{3,4}-\d{4}"#)
/// phone.matches("010-1234-5678")  // true
/// ```
///
/// **Why not `Regex`.** Swift's `Regex` backtracks without a limit and cannot be stopped: `(a+)+` keeps a processor
/// busy for minutes with 25 letters, and the sender chooses the letters. A `TextPattern` tracks all possible positions
/// in the pattern at once. A character costs at most ``maximumStates`` comparisons, for any pattern and text,
/// and the text need not be held.
///
/// **Syntax.** Characters; `.` (any but LF, CR, U+2028, U+2029); sets (`[a-z가-힣_]`, `[^<>]`); `\d` (0 to 9), `\w`
/// (letters and digits of ASCII, and `_`), `\s` (white space of Unicode) and their opposites `\D`, `\W`, `\S`; `\p{L}`
/// and `\P{L}` with a general category of Unicode of one letter or two; `\t`, `\n`, `\r`, `\u{1F415}`; a backslash
/// before any other mark; groups `(…)` and `(?:…)`; `|`; `*`, `+`, `?`, `{2}`, `{2,}`, `{2,5}`. A `^` at the beginning
/// and a `$` at the end change nothing. What needs backtracking (`\1`, `(?=…)`, `(?!…)`) is refused, and so are lazy
/// and possessive quantifiers, which would not change what matches.
///
/// A character is a Unicode scalar. Nothing is normalised: `é` in one scalar is not `é` in two.
public struct TextPattern: Sendable {
    /// The pattern as it was written.
    public let source: String

    /// The maximum number of states of a pattern: 1,000. Each of its characters is one, times its repetitions.
    public static let maximumStates = 1000

    let program: PatternProgram

    /// Compiles a pattern.
    ///
    /// - Throws: ``FormRulesError`` if it breaks the grammar above, or is larger than ``maximumStates``.
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

    /// Whether the whole text matches.
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

/// Why a text is not a valid pattern.
struct PatternFault: Error {
    let reason: String
    let advice: String

    init(_ reason: String, advice: String) {
        self.reason = reason
        self.advice = advice
    }
}
