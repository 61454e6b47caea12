import Foundation
import PostcardTesting
import Testing

@Suite struct FormTests {
    @Test func `a server is sent forms with each mistake`() async throws {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(TestPicture.landscape.data, named: "petImage", filename: "cat.jpg")
        let request = try await TestForm(form)
        for mistake in TestForm.Mistake.allCases {
            let wrong = request.with(mistake)
            let explanation = wrong.explanation
            #expect(explanation.findings.first?.code == mistake.code)
        }
    }
}
