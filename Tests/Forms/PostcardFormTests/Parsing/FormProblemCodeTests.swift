import Testing

@testable import PostcardForm

@Suite struct FormProblemCodeTests {
    private static func code<Code: PostcardErrorCode>(_ word: String, _ type: Code.Type = Code.self) -> Code {
        Code(rawValue: word)
    }

    @Test(arguments: FormProblem.Code.ofParser + FormProblem.Code.ofReceivers)
    func `a code is made from its word, with its status and its explanation`(code: FormProblem.Code) {
        let made: FormProblem.Code = Self.code("\(code)")
        #expect(made == code && made.status == code.status && made.cause == code.cause)
    }

    @Test func `a word of a later version makes a code too`() {
        let made: FormProblem.Code = Self.code("too-blue")
        #expect("\(made)" == "too-blue" && made.status.code == 400 && made != .truncated)
        #expect(FormProblem.Code.known("too-blue") == nil)
    }
}
