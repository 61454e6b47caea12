import Foundation
import PostcardDoctor
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("The reference of problems")
struct ReferencePageTests {
    private static let file = Repository.sources(of: "PostcardDoctor")
        .appending(path: "PostcardDoctor.docc/Problems.md")

    @Test
    func `matches the entries in the code`() throws {
        let page = ReferencePage().text
        if ProcessInfo.processInfo.environment["POSTCARD_WRITE_REFERENCE"] == "1" {
            try Data(page.utf8).write(to: Self.file)
        }
        let written = try String(contentsOf: Self.file, encoding: .utf8)
        #expect(written == page, "Run `make reference` to update it.")
    }

    @Test(arguments: FormProblem.Code.explained)
    func `has a title, a cause, an example and a fix for every code`(code: FormProblem.Code) {
        for text in [code.title, code.cause, code.example, code.advice] { #expect(!text.isEmpty) }
        #expect(code.cause.hasSuffix(".") && code.advice.hasSuffix("."))
    }

    @Test
    func `has each code once`() {
        let codes = FormProblem.Code.explained.map(\.rawValue)
        #expect(Set(codes).count == codes.count)
        #expect(codes.count > 60)
    }
}
