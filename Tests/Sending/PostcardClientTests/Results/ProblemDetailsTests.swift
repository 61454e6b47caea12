import Foundation
import HTTPTypes
import PostcardClient
import Testing

@Suite struct ProblemDetailsTests {
    private func problem(_ json: String, as type: String = "application/problem+json") -> ProblemDetails? {
        UploadResponse(status: .badRequest, headerFields: [.contentType: type], body: Data(json.utf8)).problem
    }

    @Test func `the members that RFC 9457 names are read, and the others kept`() throws {
        let found = try #require(
            problem(
                #"{"type":"https://a.example/large","title":"Too large","status":413,"detail":"At most 10 MB.","#
                    + #""instance":"/log/7","code":"body-too-large","limit":{"name":"maximumBytes","value":10000000},"#
                    + #""also":[true,null,1.5,"x"]}"#))
        #expect(found.type == "https://a.example/large")
        #expect(found.title == "Too large")
        #expect(found.status == 413)
        #expect(found.detail == "At most 10 MB.")
        #expect(found.instance == "/log/7")
        #expect(found.extensions.keys.sorted() == ["also", "code", "limit"])
        #expect(found["code"]?.text == "body-too-large")
        #expect(found["limit"]?["value"]?.number == 10_000_000)
        #expect(found["also"] == .array([.bool(true), .null, .number(1.5), .string("x")]))
    }

    @Test func `a member of another type counts as absent`() throws {
        let found = try #require(problem(#"{"type":7,"title":["a"],"status":"413","detail":null}"#))
        #expect(found.type == "about:blank")
        #expect(found.title == nil)
        #expect(found.status == nil)
        #expect(found.detail == nil)
        #expect(found.extensions.isEmpty)
    }

    @Test(arguments: [
        ("[]", "application/problem+json"), ("", "application/problem+json"), ("not", "application/problem+json"),
        ("{}", "application/json"), ("{}", "text/html"),
        (String(repeating: "[", count: 100_000), "application/problem+json"),
        ("{\"a\":\"\(String(repeating: "a", count: 1 << 20))\"}", "application/problem+json"),
    ])
    func `what is no problem is none`(body: String, type: String) {
        #expect(problem(body, as: type) == nil)
    }

    @Test func `the type's case and its parameters say nothing`() {
        #expect(problem("{}", as: "Application/Problem+JSON ; charset=utf-8") != nil)
    }
}
