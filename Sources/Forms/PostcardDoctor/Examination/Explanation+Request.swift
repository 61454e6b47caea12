extension Explanation {
    /// Explains a request that a program made, before it is sent.
    ///
    /// A test of an uploader shows which byte of its request is wrong:
    ///
    /// ```swift
    /// let explanation = Explanation(headerFields: request.allHTTPHeaderFields, body: request.httpBody ?? Data())
    /// #expect(explanation.isWellFormed)
    /// ```
    ///
    /// - Parameters:
    ///   - headerFields: The request's header fields, as in `URLRequest.allHTTPHeaderFields`. Without a length, the
    ///     body's own is used, as HTTP libraries do.
    ///   - body: The request's body.
    public init(headerFields: [String: String]?, body: some Sequence<UInt8>) {
        let bytes = Array(body)
        var head = "POST / HTTP/1.1\r\n"
        let fields = (headerFields ?? [:]).sorted { $0.key < $1.key }
        for field in fields { head += "\(field.key): \(field.value)\r\n" }
        let tellsLength = fields.contains { ["content-length", "transfer-encoding"].contains($0.key.lowercased()) }
        if !tellsLength { head += "Content-Length: \(bytes.count)\r\n" }
        self.init(request: Array((head + "\r\n").utf8) + bytes)
    }

    /// Explains a body and the `Content-Type` it is sent with.
    ///
    /// - Parameters:
    ///   - contentType: The value of the header field; `nil` if the request has none.
    ///   - body: The request's body.
    public init(contentType: String?, body: some Sequence<UInt8>) {
        self.init(headerFields: contentType.map { ["Content-Type": $0] }, body: body)
    }

    /// Explains a request as it was sent.
    ///
    /// - Parameter request: The bytes of a raw HTTP/1.1 request: its head, a blank line, and its body.
    public init(request: some Sequence<UInt8>) {
        let bytes = ContiguousArray(request)
        var examination = RequestExamination()
        examination.read(bytes.span.bytes)
        self = examination.finish()
    }
}
