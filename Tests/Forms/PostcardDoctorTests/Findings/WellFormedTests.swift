import Foundation
import PostcardDoctor
import PostcardForm
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("A request in a test")
struct WellFormedTests {
    private static let url = URL(filePath: "/")

    /// An uploader as people write it by hand.
    private func uploadRequest(lineBreak: String) -> URLRequest {
        var request = URLRequest(url: Self.url)
        request.httpMethod = "POST"
        request.setValue("multipart/form-data; boundary=XX", forHTTPHeaderField: "Content-Type")
        request.httpBody = Data(
            ["--XX", #"Content-Disposition: form-data; name="name""#, "", "초코", "--XX--", ""]
                .joined(separator: lineBreak).utf8)
        return request
    }

    @Test
    func `is judged by one expectation`() {
        let request = uploadRequest(lineBreak: "\r\n")
        let explanation = Explanation(headerFields: request.allHTTPHeaderFields, body: request.httpBody ?? Data())
        #expect(explanation.isWellFormed)
    }

    @Test
    func `fails it with the byte, the reason and the fix`() {
        let request = uploadRequest(lineBreak: "\n")
        withKnownIssue {
            let explanation = Explanation(headerFields: request.allHTTPHeaderFields, body: request.httpBody ?? Data())
            #expect(explanation.isWellFormed)
        } matching: { issue in
            let words = "\(issue)"
            return words.contains("bare-line-break") && words.contains("byte 4") && words.contains("CRLF")
        }
    }

    @Test
    func `says nothing of a length that the sender's library adds, and all of one that is there`() {
        let body = Array("--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--XX--\r\n".utf8)
        let type = "multipart/form-data; boundary=XX"
        #expect(Explanation(contentType: type, body: body).isWellFormed)
        let explanation = Explanation(headerFields: ["Content-Type": type, "Content-Length": "5"], body: body)
        #expect(explanation.findings.first?.code == .contentLengthMismatch)
        #expect(Explanation(contentType: nil, body: body).findings.first?.code == .missingContentType)
    }

    @Test
    func `is well-formed with backslashes in its names, which are shown as they were meant`() async throws {
        var form = MultipartForm()
        form.append(Data([1]), named: #"a\"#, filename: #"b\c\"#, contentType: .octetStream)
        let explanation = Explanation(contentType: form.contentType, body: Array(try await form.layout().data()))
        #expect(explanation.problems.isEmpty)
        #expect(explanation.parts.map(\.name) == [#"a\"#])
        #expect(explanation.parts.map(\.filename) == [#"b\c\"#])
    }

    @Test
    func `is described by what is wrong with it`() {
        let body = Array("--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--XX--\r\n".utf8)
        let explanation = Explanation(contentType: "multipart/form-data; boundary=XX", body: body)
        #expect(explanation.description == "a well-formed form of 1 part")
    }
}
