import PostcardForm
import PostcardTestSupport
import Testing

@Suite("A pattern for text")
struct TextPatternTests {
    static let matches: [(pattern: String, matching: [String], other: [String])] = [
        ("", [""], ["a"]),
        ("abc", ["abc"], ["", "ab", "abcd", "xabc", "ABC"]),
        ("^abc$", ["abc"], ["abc$", "ab"]),
        ("^a$|^b$", ["a", "b"], ["ab", ""]),
        ("a|bc|", ["a", "bc", ""], ["b", "abc"]),
        ("a*", ["", "a", "aaaa"], ["b", "aab"]),
        ("a+b?", ["a", "ab", "aab"], ["", "b", "abb"]),
        ("(ab){2}", ["abab"], ["ab", "ababab"]),
        ("(?:ab){1,}", ["ab", "abab"], ["", "aba"]),
        ("a{0,2}", ["", "a", "aa"], ["aaa"]),
        ("a{0}", [""], ["a"]),
        ("(){9}a", ["a"], [""]),
        ("(a*)*b", ["b", "aab"], ["aa", ""]),
        ("(a|b|)+", ["", "abab"], ["c"]),
        (".", ["a", "가", "🐕"], ["", "\n", "\r", "\u{2028}", "ab"]),
        ("[a-c가-힣_]+", ["abc", "초코_"], ["d", "a-c", ""]),
        ("[^<>]*", ["", "a&b\n"], ["a<b"]),
        ("[]a-]+", ["]a-"], ["b"]),
        (#"[\]\-\d]+"#, ["]-7"], ["a"]),
        (#"[\D5]"#, ["a", "5"], ["4"]),
        (#"\d{2,3}-\d{4}"#, ["02-1234", "010-1234"], ["1-1234", "010-12345", "０１０-1234"]),
        (#"\w\W\s\S\D"#, ["_- \u{61}b", "9é\u{3000}.x"], ["é- ab", "a- a1"]),
        (#"\p{L}+\p{Nd}\P{L}"#, ["초코1!", "aé٣ "], ["1!", "a1b"]),
        (#"\t\n\r\u{1F415}\.\{"#, ["\t\n\r🐕.{"], ["tnr🐕.{"]),
        ("caf\u{E9}", ["caf\u{E9}"], ["cafe\u{301}"]),
    ]

    @Test(arguments: matches)
    func `it matches the whole text or not`(source: String, matching: [String], other: [String]) throws {
        let pattern = try TextPattern(source)
        for text in matching { #expect(pattern.matches(text), "\(text.debugDescription)") }
        for text in other { #expect(!pattern.matches(text), "\(text.debugDescription)") }
    }

    @Test(arguments: [
        "(", ")", "a)", "(a", "[", "[a", "[b-a]", #"[a-\w]"#, "*", "a**", "a+?",
        "a{", "a{b}", "a{2,1}", "a{1001}", "{2}", "a^", "$a", "(^a)", #"\"#, #"\1"#, #"\b"#, #"\p{Xx}"#, #"\p{"#,
        #"\u{110000}"#, #"\u0041"#, "(?=a)", "(?!a)", "(?<n>a)", "(?i)a", "(a{40}){40}", "((a{9,99}){99}){99}",
        String(repeating: "(", count: 60) + String(repeating: ")", count: 60), String(repeating: "a", count: 1001),
        String(repeating: "|", count: 2001),
    ])
    func `what is no pattern, or would need going back, is refused`(source: String) {
        #expect(throws: FormRulesError.self) { try TextPattern(source) }
    }

    @Test
    func `as many states as are allowed are allowed`() throws {
        let text = String(repeating: "a", count: TextPattern.maximumStates)
        #expect(try TextPattern("a{1000}").matches(text))
        #expect(try !TextPattern("a{1000}").matches(text + "a"))
        #expect(throws: FormRulesError.self) { try TextPattern("a{1000}b") }
    }

    @Test(arguments: ["(a+)+", "(a*)*", "(a|a)*", "(a|aa)+", "(.*a){20}", "((a?){20})(a{20})", "(a*)*(a*)*(a*)*"])
    func `patterns that keep others busy for ever are answered at once`(source: String) throws {
        let text = String(repeating: "a", count: 10_000)
        #expect(try !TextPattern(source).matches(text + "!"))
    }

    @Test(arguments: 0..<40)
    func `on small texts it agrees with the standard library's Regex`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<25 {
            let source = Self.pattern(depth: 3, using: &random)
            let pattern = try TextPattern(source)
            let regex = try Regex(source).matchingSemantics(.unicodeScalar)
            for _ in 0..<20 {
                let text = String(
                    (0..<Int.random(in: 0...6, using: &random)).map { _ in "abc".randomElement(using: &random) ?? "a" })
                let expected = try regex.wholeMatch(in: text) != nil
                #expect(pattern.matches(text) == expected, "\(source) over \(text)")
            }
        }
    }

    private static func pattern(depth: Int, using random: inout SeededGenerator) -> String {
        let atoms = ["a", "b", "c", ".", "[ab]", "[^a]"]
        guard depth > 0 else { return atoms.randomElement(using: &random) ?? "a" }
        let first = pattern(depth: depth - 1, using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return first + pattern(depth: depth - 1, using: &random)
        case 1: return "(" + first + "|" + pattern(depth: depth - 1, using: &random) + ")"
        case 2: return "(" + first + ")*"
        case 3: return "(" + first + ")?"
        case 4: return "(?:" + first + "){1,2}"
        default: return first
        }
    }
}
