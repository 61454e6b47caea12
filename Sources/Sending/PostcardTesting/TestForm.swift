public import HTTPTypes
public import PostcardClient
public import PostcardDoctor
public import PostcardFoundation

/// The request of a form as a server receives it, to test the server: whole, in odd chunks, or with a mistake.
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
    /// The header fields of the request: `Content-Type` and `Content-Length`, unless a mistake removes or changes them.
    public internal(set) var headerFields: HTTPFields

    /// The bytes of the body.
    public internal(set) var body: Data

    let boundary: String

    /// Makes the request of a form.
    ///
    /// - Parameter form: The form.
    /// - Throws: `FormError` if a file cannot be read; errors of the form's streams, unchanged.
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

    /// The Doctor's explanation of the request.
    public var explanation: Explanation { Explanation(request: request) }

    /// The body in chunks of odd sizes, as a network may deliver it. The sizes are the same in each run. A server must
    /// not depend on the ends of chunks.
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

    /// The same request on a connection that breaks.
    ///
    /// - Parameter bytes: The number of bytes of the body that arrive. The `Content-Length` is still that of the whole
    ///   body.
    public func cut(after bytes: Int) -> TestForm {
        var form = self
        form.body = Data(body.prefix(max(bytes, 0)))
        return form
    }

    mutating func noteLength() { headerFields[.contentLength] = "\(body.count)" }
}

extension TestForm {
    /// The mistakes of clients that write requests by hand.
    public enum Mistake: String, Sendable, CaseIterable {
        /// The `Content-Type` is missing.
        case noContentType
        /// The `Content-Type` is that of JSON.
        case jsonContentType
        /// The `Content-Type` names no boundary.
        case noBoundary
        /// The `Content-Type` names another boundary than the body has.
        case otherBoundary
        /// The boundary of the `Content-Type` begins with the two dashes of the delimiters.
        case dashesInContentType
        /// The delimiters have no dashes before the boundary.
        case noDashes
        /// The last delimiter, which ends the form, is missing.
        case noLastBoundary
        /// The lines end in LF instead of CRLF.
        case lineFeeds
        /// There is no blank line between the header of a part and its content.
        case noBlankLine
        /// There is no line break between the content of a part and the next delimiter.
        case noLineBreakBeforeDelimiter
        /// The parts have no names.
        case noNames
        /// The files have no filenames. A form without files stays unchanged.
        case noFilenames
        /// The `Content-Length` is one byte more than the body has.
        case longContentLength
        /// The `Content-Length` is one byte less than the body has.
        case shortContentLength
        /// The body ends in the middle.
        case cut
        /// A line of text follows the form.
        case epilogue

        /// The code of the problem that the Doctor reports for the mistake, such as `missing-close-delimiter`.
        public var code: FormProblem.Code {
            switch self {
            case .noContentType: .missingContentType
            case .jsonContentType: .notFormData
            case .noBoundary: .missingBoundary
            case .otherBoundary: .boundaryMismatch
            case .dashesInContentType: .boundaryWithDashes
            case .noDashes: .delimiterWithoutDashes
            case .noLastBoundary: .missingCloseDelimiter
            case .lineFeeds: .bareLineBreak
            case .noBlankLine: .missingBlankLine
            case .noLineBreakBeforeDelimiter: .missingLineBreakBeforeDelimiter
            case .noNames: .missingName
            case .noFilenames: .fileWithoutFilename
            case .longContentLength, .shortContentLength: .contentLengthMismatch
            case .cut: .truncated
            case .epilogue: .epilogue
            }
        }
    }

    /// The same request with a mistake. Its `Content-Length` is that of the changed body, unless the `Content-Length`
    /// is the mistake.
    public func with(_ mistake: Mistake) -> TestForm {
        var form = self
        let delimiter = "--\(boundary)"
        switch mistake {
        case .noContentType: form.headerFields[.contentType] = nil
        case .jsonContentType: form.headerFields[.contentType] = "application/json"
        case .noBoundary: form.headerFields[.contentType] = "multipart/form-data"
        case .otherBoundary: form.headerFields[.contentType] = "multipart/form-data; boundary=other\(boundary.count)"
        case .dashesInContentType: form.headerFields[.contentType] = "multipart/form-data; boundary=\(delimiter)"
        case .noDashes: form.changeFraming { $0.replacing(delimiter.utf8, with: Array(boundary.utf8)) }
        case .noLastBoundary:
            form.changeFraming { $0.replacing("\r\n\(delimiter)--\r\n".utf8, with: Array("\r\n".utf8)) }
        case .lineFeeds: form.changeFraming { $0.replacing("\r\n".utf8, with: Array("\n".utf8)) }
        case .noBlankLine: form.changeFraming { $0.replacing("\r\n\r\n".utf8, with: Array("\r\n".utf8)) }
        case .noLineBreakBeforeDelimiter:
            form.changeFraming { $0.replacing("\r\n\(delimiter)".utf8, with: Array(delimiter.utf8)) }
        case .noNames: form.changeFraming { Self.removing("name", of: $0) }
        case .noFilenames: form.changeFraming { Self.removing("filename", of: $0) }
        case .cut: form.body = Data(body.prefix(body.count / 2))
        case .epilogue: form.body += Data("That was the form.".utf8)
        case .longContentLength, .shortContentLength: break
        }
        form.noteLength()
        if mistake == .longContentLength { form.headerFields[.contentLength] = "\(body.count + 1)" }
        if mistake == .shortContentLength { form.headerFields[.contentLength] = "\(body.count - 1)" }
        return form
    }

    /// Changes the delimiters and the headers of the parts, but not the contents of the parts.
    private mutating func changeFraming(_ change: ([UInt8]) -> [UInt8]) {
        var changed: [UInt8] = []
        var position = 0
        for part in explanation.parts {
            let content = Int(clamping: part.offset)..<Int(clamping: part.offset + part.size)
            changed += change(Array(body[position..<content.lowerBound])) + body[content]
            position = content.upperBound
        }
        body = Data(changed + change(Array(body[position...])))
    }

    /// Removes a quoted parameter from a header.
    private static func removing(_ parameter: String, of header: [UInt8]) -> [UInt8] {
        let start = Array("; \(parameter)=\"".utf8)
        guard let found = header.firstRange(of: start) else { return header }
        let rest = header[found.upperBound...]
        guard let end = rest.firstIndex(of: UInt8(ascii: "\"")) else { return header }
        return Array(header[..<found.lowerBound]) + header[(end + 1)...]
    }
}
