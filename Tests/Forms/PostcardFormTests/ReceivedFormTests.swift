import Foundation
import PostcardForm
import Testing

@Suite("A form that was received whole")
struct ReceivedFormTests {
    @Test
    func `its parts are found by name, in the order in which they came`() throws {
        let form = try ReceivedForm(["a=1", "picture=@1.jpg:one", "a=2", "picture=@2.jpg:", "b=@f:file", "b=text"])
        #expect(form.lines == ["a=1", "picture=@1.jpg:one", "a=2", "picture=@2.jpg:", "b=@f:file", "b=text"])
        #expect(form.first(named: "a")?.text == "1")
        #expect(form.all(named: "picture").map(\.header.filename) == ["1.jpg", "2.jpg"])
        #expect(form.text(named: "a") == "1")
        #expect(form.text(named: "b") == "text")
        #expect(form.text(named: "picture") == nil)
        #expect(form.first(named: "c") == nil)
        #expect(form.all(named: "c").isEmpty)
    }

    @Test
    func `a form put together of parts is the same form`() throws {
        let lines = ["a=1", "b=@f:file", "a=2"]
        let form = ReceivedForm(parts: try ReceivedForm(lines).parts)
        #expect(form.lines == lines)
        #expect(form.all(named: "a").map(\.text) == ["1", "2"])
    }

    @Test
    func `content that nearly holds a delimiter is whole`() throws {
        let content = "\r\n--X\r\n--XY\r\n-\r\r\n"
        #expect(try ReceivedForm(["a=\(content)"]).text(named: "a") == content)
    }

    @Test
    func `a body from the middle of other data is read from its own beginning`() throws {
        let body = Data("before--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--XX--".utf8).dropFirst(6)
        let form = try ReceivedForm(contentType: "multipart/form-data; boundary=XX", body: body)
        #expect(form.lines == ["a=1"])
        #expect(form.parts.first?.header.offset == 6)
    }

    @Test
    func `a body that is broken or too large gives no form`() throws {
        let type = "multipart/form-data; boundary=XX"
        let body = Data("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n123\r\n--XX".utf8)
        let problem = #expect(throws: FormProblem.self) { try ReceivedForm(contentType: type, body: body) }
        #expect(problem?.code == .truncated)
        var limits = FormLimits()
        limits.maximumFieldBytes = 2
        let tooLarge = #expect(throws: FormProblem.self) {
            try ReceivedForm(contentType: type, body: body, limits: limits)
        }
        #expect(tooLarge?.code == .fieldTooLarge)
        let wrongType = #expect(throws: FormProblem.self) { try ReceivedForm(contentType: "text/plain", body: body) }
        #expect(wrongType?.code == .notFormData)
    }
}
