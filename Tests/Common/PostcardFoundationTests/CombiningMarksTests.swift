import PostcardFoundation
import Testing

struct CombiningMarksTests {
    private static func marks(_ count: Int, _ mark: Unicode.Scalar = "\u{300}") -> String {
        String(String.UnicodeScalarView(repeatElement(mark, count: count)))
    }

    /// Texts, and the offset of the first mark that is one too many.
    static let texts: [(text: String, excess: Int?)] = [
        ("", nil), ("plain letters of no interest, and more than eight of them", nil), ("a" + marks(30), nil),
        ("a" + marks(31), 61), (marks(31), 60), (marks(30) + "b" + marks(30), nil), (marks(30) + "b" + marks(31), 121),
        ("제주도" + marks(31), 69), ("中" + marks(30) + "文" + marks(31), 66 + 60), (marks(15) + marks(16, "\u{316}"), 60),
        ("a" + marks(31, "\u{1D165}"), 121), ("か" + marks(31, "\u{3099}"), 93),
        // These extend a character, and are no marks that a normal form sorts.
        ("a" + marks(100, "\u{200D}"), nil), ("a" + marks(100, "\u{FE0F}"), nil), (marks(100, "\u{1F1F0}"), nil),
        // Languages whose letters have marks.
        ("नमस्ते दुनिया, यह एक परीक्षण है", nil), ("שָׁלוֹם עוֹלָם", nil), ("สวัสดีชาวโลก", nil), ("Tiếng Việt", nil),
    ]

    @Test(arguments: texts)
    func `more than thirty marks in a row are found wherever they are`(text: String, excess: Int?) {
        #expect(CombiningMarks.firstExcess(in: text.utf8) == excess)
        for padding in 1...9 {
            let padded = String(repeating: "-", count: padding) + text + "--"
            #expect(CombiningMarks.firstExcess(in: padded.utf8) == excess.map { $0 + padding })
        }
        #expect((text.streamSafe == text) == (excess == nil))
    }

    @Test func `bytes that are not UTF-8 end a row of marks, as the character does that is shown for them`() {
        let bytes = Array(Self.marks(30).utf8) + [0xFF] + Array(Self.marks(30).utf8) + [0xCC]
        #expect(CombiningMarks.firstExcess(in: bytes) == nil)
        #expect(CombiningMarks.firstExcess(in: bytes.dropLast() + Array(Self.marks(1).utf8)) == 121)
    }

    @Test(arguments: [31, 60, 61, 1000])
    func `a stream-safe text has all its characters, and a separator after every thirty marks`(count: Int) {
        let text = "a" + Self.marks(count) + "b"
        let safe = text.streamSafe
        #expect(CombiningMarks.firstExcess(in: safe.utf8) == nil)
        #expect(String(safe.unicodeScalars.filter { $0 != "\u{34F}" }) == text)
        #expect(safe.unicodeScalars.count { $0 == "\u{34F}" } == (count - 1) / 30)
        #expect(safe.streamSafe.utf8.elementsEqual(safe.utf8))
        #expect(String(streamSafe: text.utf8) == safe)
    }

    @Test func `bytes are made a text as the standard library makes it if they are safe`() {
        let bytes: [UInt8] = [0x61, 0xFF, 0xCC, 0x80, 0xC3]
        #expect(String(streamSafe: bytes).utf8.elementsEqual(String(decoding: bytes, as: UTF8.self).utf8))
    }
}
