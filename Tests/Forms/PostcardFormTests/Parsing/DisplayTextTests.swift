import PostcardForm
import Testing

struct DisplayTextTests {
    @Test(arguments: [
        ("a", "\"a\""), ("é\"", "\"é\\\"\""), (String(repeating: "a", count: 100), nil),
        (String(repeating: "a", count: 101), "\"\(String(repeating: "a", count: 100))…\""),
        ("a" + String(repeating: "\u{300}", count: 7000), "\"a\(String(repeating: "\u{300}", count: 99))…\""),
    ])
    func `a message repeats at most a hundred characters of a text, each mark counted`(text: String, quoted: String?) {
        #expect(Array(text.quoted.utf8) == Array((quoted ?? text.debugDescription).utf8))
    }

    @Test func `what is plain by its block is neither a control character nor unassigned`() {
        for scalar in (0...0x10FFFF).lazy.compactMap(Unicode.Scalar.init(_:)) where DisplayText.isPlain(scalar) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
                Issue.record("U+\(String(scalar.value, radix: 16))")
            default: continue
            }
        }
        #expect(DisplayText.isSteering("\u{202E}") && DisplayText.isSteering("\u{AD}"))
    }
}
