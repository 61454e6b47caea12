import Testing

@testable import PostcardWire

/// Strings of structured fields (RFC 9651 §4.2.5).
struct StructuredStringTests {
    @Test(arguments: [
        (#""""#, ""), (#""a b""#, "a b"), (#"  "a"  "#, "a"), (#""a\"b\\c""#, #"a"b\c"#), (#""a";b=1"#, "a"),
    ])
    func `a string is what is between its quotes`(text: String, expected: String) {
        #expect(StructuredField.item(text) == .string(expected))
    }

    @Test(arguments: [#"""#, #""a"#, #""a\"#, #""a\b""#, "\"a\tb\"", "\"é\"", #""a"b"#, #""a" "b""#])
    func `what is no string is refused`(text: String) {
        #expect(StructuredField.item(text) == nil)
    }
}
