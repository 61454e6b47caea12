import PostcardFoundation
import Testing

struct ASCIIReplacementTests {
    @Test(arguments: ["\u{300}", "\u{200D}", "\u{FE0F}", "", "한"])
    func `a character is replaced, whatever follows it`(next: String) {
        let text = "a'\(next)b\\\(next)"
        #expect(text.replacingASCII(["'": "''", "\\": ""]).utf8.elementsEqual("a''\(next)b\(next)".utf8))
        #expect(text.replacingASCII([:]) == text)
    }
}
