public import HTTPTypes
public import PostcardClient
public import PostcardDoctor
public import PostcardFoundation

/// A form as it arrives at a server, for the tests of what receives it: whole, in odd chunks, or with a mistake.
///
/// ```swift
/// var form = MultipartForm()
/// form.append("초코", named: "name")
/// form.append(TestPicture.landscape.data, named: "petImage", filename: "cat.jpg")
/// let request = try await TestForm(form)
/// try await app.test(.router) { client in
///     for mistake in TestForm.Mistake.allCases {
///         let wrong = request.with(mistake)
///         let response = try await client.execute(
///             uri: "/pets", method: .post, headers: wrong.headerFields, body: ByteBuffer(bytes: wrong.body))
///         #expect(response.status.code < 500, "\(mistake)")
///     }
/// }
/// ```
public struct TestForm: Sendable {
    /// The header fields of the request: `Content-Type` and `Content-Length`, as far as the mistake leaves them.
    public internal(set) var headerFields: HTTPFields

    /// The bytes of the body.
    public internal(set) var body: Data

    let boundary: String

    /// Makes the request of a form.
    ///
    /// - Parameter form: The form.
    /// - Throws: `FormError` if a file cannot be read; errors of its streams, unchanged.
    public init(_ form: MultipartForm) async throws {
        body = try await form.layout().data(maximumBytes: .max)
        boundary = form.boundary.value
        headerFields = [.contentType: form.contentType]
        noteLength()
    }

    /// The raw HTTP/1.1 request: its head, a blank line, and the body.
    public var request: [UInt8] {
        var head = "POST / HTTP/1.1\r\nHost: localhost\r\n"
        for field in headerFields { head += "\(field.name): \(field.value)\r\n" }
        return Array((head + "\r\n").utf8) + body
    }

    /// What the Doctor says of it.
    public var explanation: Explanation { Explanation(request: request) }

    /// The body in chunks of odd sizes, the same in each run, as a network may deliver it: a receiver must not depend on
    /// where they end.
    ///
    /// - Parameter bytes: The maximum size of a chunk; at least 1. Defaults to 7, which cuts most delimiters.
    public func chunks(ofAtMost bytes: Int = 7) -> [Data] {
        var chunks: [Data] = []
        var rest = body[...]
        var size = 0
        while !rest.isEmpty {
            size = size % max(bytes, 1) + 1
            chunks.append(Data(rest.prefix(size)))
            rest = rest.dropFirst(size)
        }
        return chunks
    }

    /// The request whose connection breaks.
    ///
    /// - Parameter bytes: How many bytes of the body arrive. The `Content-Length` stays that of the whole body.
    public func cut(after bytes: Int) -> TestForm {
        var form = self
        form.body = Data(body.prefix(max(bytes, 0)))
        return form
    }

    mutating func noteLength() { headerFields[.contentLength] = "\(body.count)" }
}
