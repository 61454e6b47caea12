import Foundation
import HTTPTypes
import PostcardFoundation
import Testing

@testable import PostcardClient

/// A server is a stranger too: what it responds is compared and searched.
struct ResponseTextTests {
    private static let marks = "a" + String(repeating: "\u{316}\u{300}", count: 100)
    private static let escapes = "a" + String(repeating: #"\u0316\u0300"#, count: 100)

    private static func response(_ type: String, _ body: String) -> UploadResponse {
        UploadResponse(
            status: .badRequest, headerFields: [.contentType: type, .location: "/\(marks)", .server: "é"],
            body: Data(body.utf8))
    }

    private static func isSafe(_ text: String?) -> Bool {
        text.map { CombiningMarks.firstExcess(in: $0.utf8) == nil } ?? false
    }

    @Test func `header fields and texts are safe to compare, and others stay as they are`() {
        let response = Self.response("text/plain", Self.marks)
        #expect(Self.isSafe(response.headerFields[.location]))
        #expect(response.headerFields[.server] == "é")
        #expect(Self.isSafe(response.text))
        #expect(response.body == Data(Self.marks.utf8))
    }

    @Test(arguments: [
        ("text/plain", marks), ("text/html", "<title>\(marks)</title>"),
        ("application/json", "{\"error\":\"\(escapes)\"}"),
        ("application/xml", "<Error><Code>\(marks)</Code><Message>x</Message></Error>"),
    ])
    func `the reason of a refusal is safe to compare`(type: String, body: String) {
        #expect(Self.isSafe(Self.response(type, body).reason))
    }

    @Test func `a problem is read whatever its names and texts are`() {
        let json =
            "{\"title\":\"no\",\"\(Self.escapes)\":{\"\(Self.marks)\":[\"\(Self.marks)\"]},\"status\":400,\"code\":\"x\"}"
        let problem = Self.response("application/problem+json", json).problem
        #expect(problem?.title == "no")
        #expect(problem?.status == 400)
        #expect(problem?["code"]?.text == "x")
        #expect(problem?.extensions.keys.allSatisfy(Self.isSafe) == true)
    }

    @Test(arguments: [
        "{\"\(marks)\":1,\"id\":2}", "{\"id\":2,\"l\":[{\"\(escapes)\":1}]}", "{\"id\":2,\"t\":\"\(marks)\"}",
    ])
    func `texts that take long to compare are an error of decoding`(json: String) throws {
        struct Answer: Decodable { let id: Int }
        let error = #expect(throws: UploadError.self) {
            try Self.response("application/json", json).decode(Answer.self)
        }
        #expect(error?.code == .decoding)
        #expect(try Self.response("application/json", "{\"id\":2,\"t\":\"é\"}").decode(Answer.self).id == 2)
    }
}
