import Foundation
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Testing
import Tracing

@testable import PostcardReceiver

/// Requests as spans of the client's trace.
@Suite(.timeLimit(.minutes(10)))
struct TraceTests {
    private static let parent = TraceParent(trace: TraceParent.random(32), span: TraceParent.random(16))

    @Test func `a request is a span of the trace that the client names`() async throws {
        let tracer = RecordingTracer()
        try await withTracer(tracer) {
            try await withReceiver { receiver in
                _ = try await receiver.curl(
                    "-F", "a=b", "-H", "traceparent: \(Self.parent.text)", "\(receiver.url)/uploads?token=secret")
                _ = try await receiver.curl("\(receiver.url)/uploads/none?token=secret")
                try await eventually { tracer.spans.count == 2 }
            }
        }
        let (posted, read) = (tracer.spans[0], tracer.spans[1])
        #expect(posted.name == "POST /uploads" && posted.kind == .server && posted.parent == Self.parent)
        #expect(posted.attributes.get("http.response.status_code") == .int64(201))
        #expect(read.name == "GET /uploads/{id}" && read.parent == nil && !read.isError)
        #expect(read.attributes.get("http.response.status_code") == .int64(404))
        #expect(read.attributes.get("url.path") == .string("/uploads/none"))
        for span in tracer.spans {
            var texts: [String] = []
            span.attributes.forEach { name, value in texts.append("\(name)=\(value)") }
            #expect(!texts.joined().contains("secret"))
        }
    }

    @Test func `a request that is refused is a span with the code of the refusal`() async throws {
        let tracer = RecordingTracer()
        try await withTracer(tracer) {
            try await withReceiver { receiver in
                _ = try await receiver.curl("-d", "{}", "-H", "Content-Type: text/plain", "\(receiver.url)/uploads")
                try await eventually { tracer.spans.count == 1 }
            }
        }
        #expect(tracer.spans[0].attributes.get("error.type") == .string("not-form-data"))
        #expect(tracer.spans[0].attributes.get("http.response.status_code") == .int64(415))
        #expect(!tracer.spans[0].isError)
    }
}
