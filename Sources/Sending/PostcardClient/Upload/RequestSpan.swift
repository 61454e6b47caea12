import HTTPTypes

#if Tracing || CommandLine
import PostcardFoundation
import PostcardWire
import Tracing

/// The span of one request in the caller's trace. Without a tracer in the process, the span does nothing.
struct RequestSpan {
    private let span: any Span

    /// Starts a span, and adds the header fields by which a server continues the trace, such as `traceparent`.
    init(of request: inout UploadRequest) {
        let span = startSpan(request.method.rawValue, ofKind: .client)
        self.span = span
        if span.isRecording {
            let (method, url, body) = (request.method.rawValue, request.url, request.body)
            span.updateAttributes { attributes in
                attributes["http.request.method"] = method
                // The path and the query are left out, because either may give access to the upload on the server.
                attributes["url.scheme"] = url.scheme?.lowercased()
                attributes["server.address"] = url.host()
                attributes["server.port"] = url.portOrDefault
                attributes["http.request.body.size"] = body?.contentLength
            }
        }
        var fields = HTTPFields()
        InstrumentationSystem.instrument.inject(span.context, into: &fields, using: HTTPFieldInjector())
        for field in fields { request.headerFields[field.name] = field.value }
    }

    func end(_ response: UploadResponse) {
        let status = response.status.code
        if span.isRecording { span.attributes["http.response.status_code"] = status }
        if status >= 400 { span.setStatus(SpanStatus(code: .error)) }
        span.end()
    }

    /// Ends the span with an error.
    ///
    /// - Parameter error: The error. Only its code is recorded, because its message may quote the form.
    func end(_ error: any Error) {
        let code = (error as? UploadError).map { "\($0.code)" } ?? "\(type(of: error))"
        span.attributes["error.type"] = code
        span.setStatus(SpanStatus(code: .error, message: code))
        span.end()
    }
}

private struct HTTPFieldInjector: Injector {
    func inject(_ value: String, forKey key: String, into fields: inout HTTPFields) {
        if let name = HTTPField.Name(key) { fields[name] = value }
    }
}
#else
/// A span that does nothing, for builds without the package trait `Tracing`.
struct RequestSpan {
    init(of request: inout UploadRequest) {}

    func end(_ response: UploadResponse) {}

    func end(_ error: any Error) {}
}
#endif
