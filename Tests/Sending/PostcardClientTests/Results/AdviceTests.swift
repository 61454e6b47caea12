import Foundation
import HTTPTypes
import PostcardForm
import Testing

@testable import PostcardClient

@Suite struct AdviceTests {
    private func advice(on status: Int, _ fields: HTTPFields = HTTPFields()) throws -> String? {
        let response = UploadResponse(status: HTTPResponse.Status(code: status), headerFields: fields, body: Data())
        return UploadError.refused(response, by: try #require(URL(string: "http://a.example/"))).advice
    }

    @Test(arguments: [
        (400, "compare the exact request"), (401, "let an interceptor get a fresh token"), (403, "not allowed"),
        (404, "Check the path"), (405, "this method"), (408, "too slowly"), (409, "still in progress"),
        (411, "Give the form's streams a length"), (413, "client_max_body_size"), (415, "the type of each file"),
        (422, "a field is missing"), (429, "send fewer at a time"), (500, "The server failed"), (502, "A proxy"),
        (503, "Try again later"), (504, "A proxy"), (507, "no room"), (599, "The server failed"),
    ])
    func `a refusal comes with what to try`(status: Int, words: String) throws {
        #expect(try advice(on: status)?.contains(words) == true)
    }

    @Test func `it includes the methods and the delay that the server names`() throws {
        #expect(try advice(on: 405, [.allow: "GET, PUT"])?.contains("It accepts GET, PUT.") == true)
        #expect(try advice(on: 429, [.retryAfter: "7"])?.contains("Wait for 7 seconds before") == true)
        #expect(try advice(on: 503, [.retryAfter: "1"])?.hasSuffix("Try again later, in 1 second.") == true)
        #expect(try advice(on: 418) == nil)
    }

    @Test func `a failed connection says that nothing was sent`() throws {
        let error = UploadError.connectionFailed(to: try #require(URL(string: "http://a.example/")), "no")
        #expect(error.advice?.hasPrefix("Nothing was sent.") == true)
    }

    @Test func `whoever has a retry policy is not told to set one`() throws {
        let url = try #require(URL(string: "http://a.example/"))
        var lost = UploadError(.connectionLost, "It broke.")
        lost.delivery = .responseLost
        for var error in [
            .connectionFailed(to: url, "no"), .connectionLost(to: url, "no"), .tls(.passes, with: url, "no"), lost,
        ] as [UploadError] {
            #expect(error.advice?.contains("a retry policy") == true)
            error.attempts = 4
            #expect(error.advice?.hasSuffix(": 4 attempts have failed.") == true)
        }
    }
}
