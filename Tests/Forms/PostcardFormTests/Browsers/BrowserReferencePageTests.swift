import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("The article about browsers' tests")
struct BrowserReferencePageTests {
    private static let file = Repository.sources(of: "PostcardForm")
        .appending(path: "PostcardForm.docc/BrowserTests.md")

    @Test
    func `matches the list of differences`() throws {
        if ProcessInfo.processInfo.environment["POSTCARD_WRITE_REFERENCE"] == "1" {
            try Data(Self.text.utf8).write(to: Self.file)
        }
        let written = try String(contentsOf: Self.file, encoding: .utf8)
        #expect(written == Self.text, "Run `make reference` to update it.")
    }

    private static var text: String {
        let lines =
            [
                "# What browsers' tests expect", "",
                "Where Postcard reads or writes a form differently from a browser, and why.", "",
                "## Overview", "",
                "Postcard is tested with 196 cases of browsers' tests: 110 bodies and 86 forms from web-platform-tests and "
                    + "bun, in `Tests/BrowserForms`. Bodies are read as browsers read them and forms are written as browsers "
                    + "write them, except for the cases in the tables below.", "",
                "`make reference` writes this page from the list that the tests use. A case that differs and is not in the "
                    + "list fails the tests, and so does a case that is in the list and does not differ.", "",
                "### Bodies", "",
            ] + table(BrowserDifference<ReadingOutcome>.all) + ["", "### Forms", ""]
            + table(BrowserDifference<WritingOutcome>.all)
        return lines.joined(separator: "\n") + "\n"
    }

    private static func table<Outcome>(_ differences: [BrowserDifference<Outcome>]) -> [String] {
        ["| what browsers do | what Postcard does | why | cases |", "| --- | --- | --- | --- |"]
            + differences.map { each in
                let cases = each.cases.map { "`\($0)`" }.joined(separator: ", ")
                return "| \(each.browsers) | \(each.postcard) | \(each.reason) | \(cases) |"
            }
    }
}
