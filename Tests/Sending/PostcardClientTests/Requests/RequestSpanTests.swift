import Foundation
import HTTPTypes
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing
import Tracing

@testable import PostcardClient

/// Requests as spans of the caller's trace.
@Suite(.timeLimit(.minutes(10)))
struct RequestSpanTests {
    private static func form() -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        return form
    }

    @Test(arguments: Carrier.allCases)
    func `each attempt is a span of the caller's, and the server learns which`(carrier: Carrier) async throws {
        let tracer = RecordingTracer()
        try await Responses.run([("503 Service Unavailable", ["Retry-After": "0"]), ("201 Created", [:])]) { server in
            try await withTracer(tracer) {
                let client = UploadClient(
                    transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 3))
                try await withSpan("a picture") { _ in
                    _ = try await client.upload(Self.form(), to: server.url)
                }
            }
            let caller = try #require(tracer.spans.first { $0.name == "a picture" })
            let requests = tracer.spans.filter { $0.name == "POST" }
            #expect(tracer.spans.count == 3)
            #expect(requests.map { $0.attributes.get("http.response.status_code") } == [.int64(503), .int64(201)])
            #expect(requests.map(\.isError) == [true, false])
            #expect(requests.allSatisfy { $0.parent == caller.identity && $0.kind == .client })
            #expect(server.requests.heads.map { $0["traceparent"] } == requests.map { $0.identity.text })
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a span has the code of an error, and no address that may be secret`(carrier: Carrier) async throws {
        let tracer = RecordingTracer()
        // The connection is closed without a response.
        try await Responses.run([nil]) { server in
            let url = try #require(URL(string: "\(server.url.absoluteString)?token=secret"))
            await withTracer(tracer) {
                let client = UploadClient(transport: carrier.transport())
                _ = try? await client.upload(Self.form(), to: url)
            }
            let span = try #require(tracer.spans.first)
            #expect(span.parent == nil && span.isError)
            #expect(span.attributes.get("error.type") == .string("connection-lost"))
            #expect(span.attributes.get("server.address") == .string("127.0.0.1"))
            var texts: [String] = []
            span.attributes.forEach { name, value in texts.append("\(name)=\(value)") }
            #expect(!texts.joined().contains("secret"))
        }
    }

    @Test(arguments: Carrier.allCases)
    func `without a tracer nothing is added`(carrier: Carrier) async throws {
        try await Responses.run([("201 Created", [:]), ("201 Created", [:])]) { server in
            let client = UploadClient(transport: carrier.transport())
            _ = try await client.upload(Self.form(), to: server.url)
            let name = try #require(HTTPField.Name("traceparent"))
            _ = try await client.upload(Self.form(), to: server.url, headerFields: [name: "own"])
            #expect(server.requests.heads.map { $0["traceparent"] } == [nil, "own"])
        }
    }
}
