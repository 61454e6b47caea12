import Foundation
import PostcardTesting
import Testing

@Suite struct TestFormTests {
    private static func form() async throws -> TestForm {
        var form = MultipartForm()
        form.append("초코\r\n갈색", named: "name")
        form.append("2", named: "age")
        form.append(TestPicture.landscape.data, named: "petImage", filename: "cat.jpg", contentType: .jpeg)
        form.append(TestPicture.transparent.data, named: "petImage", filename: "stamp.png", contentType: .png)
        return try await TestForm(form)
    }

    @Test func `a form without a mistake is well-formed`() async throws {
        let form = try await Self.form()
        #expect(form.explanation.isWellFormed, "\(form.explanation)")
        let received = try ReceivedForm(contentType: form.headerFields[.contentType] ?? "", body: form.body)
        #expect(received.text(named: "name") == "초코\r\n갈색")
    }

    @Test(arguments: TestForm.Mistake.allCases)
    func `the Doctor finds each mistake, first of all`(mistake: TestForm.Mistake) async throws {
        let form = try await Self.form().with(mistake)
        #expect(form.explanation.findings.first?.code == mistake.code, "\(form.explanation)")
    }

    @Test(arguments: [1, 2, 7, 100, 100_000]) func `chunks are the body`(bytes: Int) async throws {
        let form = try await Self.form()
        let chunks = form.chunks(ofAtMost: bytes)
        #expect(chunks.reduce(Data(), +) == form.body)
        #expect(chunks.allSatisfy { (1...bytes).contains($0.count) })
        #expect(Set(chunks.map(\.count)).count >= min(bytes, 7))
    }

    @Test func `a cut leaves the length of the whole`() async throws {
        let form = try await Self.form()
        let cut = form.cut(after: 100)
        #expect(cut.body.count == 100)
        #expect(cut.headerFields[.contentLength] == "\(form.body.count)")
        #expect(!cut.explanation.isValid)
    }
}
