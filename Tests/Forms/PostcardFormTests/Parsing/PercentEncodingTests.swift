import PostcardForm
import Testing

struct PercentEncodingTests {
    @Test(arguments: [
        ("", "", true), ("a/b", "a/b", true), ("%41%4a%4A", "AJJ", true), ("%25%34%31", "%41", true),
        ("%EC%B4%88%EC%BD%94", "초코", true), ("100%", "100%", false), ("%4", "%4", false), ("%zz%41", "%zzA", false),
        ("%+1%-0% 1", "%+1%-0% 1", false), ("%%41", "%A", false),
    ])
    func `escapes are undone, and what is none stays`(text: String, decoded: String, isWellFormed: Bool) {
        let (bytes, isRight) = PercentEncoding.decoded(text.utf8)
        #expect(String(decoding: bytes, as: UTF8.self) == decoded)
        #expect(isRight == isWellFormed)
    }

    @Test func `a target with too many marks is refused where the first is written that is one too many`() {
        let target = "/%41" + String(repeating: "%cc%80", count: 31)
        #expect(RequestFieldGrammar.refusal(ofTarget: target.utf8) == .tooManyMarks(offset: 4 + 30 * 6))
        #expect(RequestFieldGrammar.refusal(ofTarget: target.utf8.dropLast(6)) == nil)
    }
}
