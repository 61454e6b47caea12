import NIOHTTP1
import Tracing

/// The span of one request to the store, in the trace of the request that needs it. If the process has no tracer, it
/// records and sends nothing.
struct StoreSpan {
    private let span: any Span

    /// Starts a span, and adds the header fields by which a store continues the trace. They are not signed.
    init(_ method: HTTPMethod, to bucket: S3Bucket, at host: String, bytes: Int, adding headers: inout HTTPHeaders) {
        let span = startSpan("S3 \(method.rawValue)", ofKind: .client)
        self.span = span
        if span.isRecording {
            span.updateAttributes { attributes in
                attributes["http.request.method"] = method.rawValue
                attributes["http.request.body.size"] = bytes
                attributes["server.address"] = host
                // Without the key: knowing that of an unfinished upload is enough to append to it.
                attributes["aws.s3.bucket"] = bucket.name
            }
        }
        InstrumentationSystem.instrument.inject(span.context, into: &headers, using: HeaderInjector())
    }

    func end(status: Int) {
        if span.isRecording { span.attributes["http.response.status_code"] = status }
        if status >= 400 { span.setStatus(SpanStatus(code: .error)) }
        span.end()
    }

    func end(_ error: any Error) {
        span.recordError(error)
        span.setStatus(SpanStatus(code: .error))
        span.end()
    }
}

private struct HeaderInjector: Injector {
    func inject(_ value: String, forKey key: String, into headers: inout HTTPHeaders) {
        headers.replaceOrAdd(name: key, value: value)
    }
}
