public import HTTPTypes
import PostcardClient
public import PostcardDoctor
public import PostcardFoundation
import PostcardWire
import Synchronization

/// A request that an app sent to a ``TestServer``.
///
/// ```swift
/// let sent = try server.upload()
/// #expect(sent.url.path() == "/pets")
/// #expect(sent.part(named: "name")?.text == "초코")
/// #expect(sent.explanation.isWellFormed)
/// ```
public struct SentUpload: Sendable {
    /// The URL.
    public let url: URL

    /// The method.
    public let method: HTTPRequest.Method

    /// The header fields, including those that interceptors have added, without `Host`.
    public let headerFields: HTTPFields

    /// The exact bytes of the body; empty for a request without a body.
    public let body: Data

    /// The parts of the form, in order; empty if the body is not a form.
    public let parts: [Part]

    /// The explanation of the exact bytes by `PostcardDoctor`.
    public let explanation: Explanation

    /// The number of the attempt, from 1. Requests with the same ``idempotencyKey`` are attempts of one upload.
    public internal(set) var attempt = 1

    /// The `Idempotency-Key`, which all attempts of an upload share; `nil` if the request has none.
    public var idempotencyKey: String? { headerFields[.idempotencyKey] }

    /// Whether the server received the whole form. `false` if the connection broke or the upload was cancelled first.
    public var isComplete: Bool { record.isComplete.withLock { $0 } }

    /// The data that all copies of the upload share.
    final class Record: Sendable {
        let isComplete = Mutex(false)
        /// The indices of the parts that the test expects.
        let expected = Mutex(Set<Int>())
    }

    let record = Record()
    let reporter: TestReporter
    var size: Int64 { Int64(body.count) }

    init(_ request: UploadRequest, _ body: [UInt8], reportingTo reporter: TestReporter) {
        self.init(
            request.method, request.url, request.headerFields, request.body == nil ? nil : Data(body),
            reportingTo: reporter)
    }

    package init(
        _ method: HTTPRequest.Method, _ url: URL, _ headerFields: HTTPFields, _ content: Data?,
        reportingTo reporter: TestReporter
    ) {
        let body = content ?? Data()
        self.url = url
        self.method = method
        self.headerFields = headerFields
        self.body = body
        self.reporter = reporter
        let path = url.path(percentEncoded: true)
        var head =
            "\(method.rawValue) \(path.isEmpty ? "/" : path)\(url.query(percentEncoded: true).map { "?\($0)" } ?? "")"
        head += " HTTP/1.1\r\nHost: \(url.host() ?? "")\(url.port.map { ":\($0)" } ?? "")\r\n"
        for field in headerFields { head += "\(field.name): \(field.value)\r\n" }
        if content != nil { head += "Content-Length: \(body.count)\r\n" }
        let explanation = Explanation(request: Array((head + "\r\n").utf8) + body)
        parts = explanation.parts.map { part in
            let start = min(Int(clamping: part.offset), body.count)
            return Part(part, bytes: Data(body[start..<min(start + Int(clamping: part.size), body.count)]))
        }
        self.explanation = explanation
    }

    /// Records that the server has the whole form.
    package func arrived() { record.isComplete.withLock { $0 = true } }

    /// The parts with a name, in order.
    public func parts(named name: String) -> [Part] { parts.filter { $0.name == name } }

    /// The first part with a name; `nil` if there is none.
    public func part(named name: String) -> Part? { parts.first { $0.name == name } }
}

extension SentUpload {
    /// A part of the form.
    public struct Part: Sendable {
        /// The name of the form's field.
        public let name: String

        /// The name of the file; `nil` if the part is a text field.
        public let filename: String?

        /// The media type, as written in the part's header; `nil` if the part has none.
        public let contentType: String?

        /// The header fields of the part, as written.
        public let headerFields: [(name: String, value: String)]

        /// The content.
        public let bytes: Data

        /// The SHA-256 digest of the content, in lower-case hexadecimal.
        public let sha256: String

        /// The number of bytes of the content.
        public var size: Int64 { Int64(bytes.count) }

        /// The content as text; `nil` if it is not in UTF-8.
        public var text: String? { String(validating: bytes, as: UTF8.self) }

        /// Whether the content is a picture or a video with a location; `nil` if its metadata cannot be read.
        public var hasLocation: Bool? {
            let edits = try? MetadataPolicy.withoutLocation.edits(ofLength: size) { offset, buffer in
                let rest = bytes.dropFirst(Int(clamping: offset)).prefix(buffer.count)
                buffer.copyBytes(from: rest)
                return rest.count
            }
            return edits?.removesPosition
        }

        init(_ part: Explanation.Part, bytes: Data) {
            name = part.name
            filename = part.filename
            contentType = part.contentType
            headerFields = part.headerFields
            sha256 = part.sha256
            self.bytes = bytes
        }
    }
}

extension SentUpload {
    /// The form as text, the same in each run, for a snapshot that a reviewer reads in a diff.
    ///
    /// ```
    /// url = "https://api.example.com/pets"
    /// form-string = "name=초코"
    /// # 20113 bytes, sha256 9f2c…, without a position
    /// form = "petImage=@cat.jpg;type=image/jpeg"
    /// ```
    ///
    /// The text is the `form.txt` of `postcard explain --edit`, with a digest instead of each file. Keys, lengths,
    /// boundaries and the values of secret header fields are left out, because they differ in each run.
    public var snapshot: String {
        var lines = [Self.line("url", url.absoluteString)]
        if method != .post { lines.append(Self.line("request", method.rawValue)) }
        for field in headerFields where !Self.varying.contains(field.name.canonicalName) {
            let isSecret = Self.secret.contains(field.name.canonicalName)
            lines.append("# " + Self.line("header", "\(field.name): \(isSecret ? "…" : field.value)"))
        }
        for part in parts { lines += part.lines }
        if parts.isEmpty { lines.append("# \(explanation)") }
        return lines.map { "\($0)\n" }.joined()
    }

    private static let varying: Set = ["content-type", "content-length", "idempotency-key", "repr-digest"]
    private static let secret: Set = ["authorization", "cookie", "proxy-authorization", "x-api-key"]

    /// A line with an option, as in a configuration file of curl.
    fileprivate static func line(_ option: String, _ value: String) -> String {
        String(decoding: CurlWord.line(option, value.utf8).dropLast(), as: UTF8.self)
    }
}

extension SentUpload.Part {
    fileprivate var lines: [String] {
        if filename == nil, let text {
            guard let contentType else { return [SentUpload.line("form-string", "\(name)=\(text)")] }
            return [SentUpload.line("form", "\(name)=\(CurlWord.quoted(text));type=\(contentType)")]
        }
        let place = hasLocation.map { $0 ? ", with a position" : ", without a position" } ?? ""
        let type = contentType.map { ";type=\($0)" } ?? ""
        return [
            "# \(size) bytes, sha256 \(sha256)\(place)",
            SentUpload.line("form", "\(name)=\(filename == nil ? "<" : "@")\(filename ?? name)\(type)"),
        ]
    }
}

extension SentUpload: CustomStringConvertible {
    /// The request on one line, such as `POST https://api.example.com/pets, with "name" (text, "초코")`.
    public var description: String {
        "\(method.rawValue) \(url.withoutQuery)" + (parts.isEmpty ? "" : ", with \(PartList(parts))")
    }
}

/// Describes parts in a message. Parts with the same name are grouped.
struct PartList: CustomStringConvertible {
    let parts: [SentUpload.Part]

    init(_ parts: [SentUpload.Part]) {
        self.parts = parts
    }

    var description: String {
        var names: [String] = []
        for part in parts where !names.contains(part.name) { names.append(part.name) }
        let items = names.map { name in
            let same = parts.filter { $0.name == name }
            let what = same.count == 1 ? same[0].summary : "\(same.count) \(same[0].isFile ? "files" : "texts")"
            return "\(name.debugDescription) (\(what))"
        }
        if items.count < 2 { return items.first ?? "no parts" }
        return items.dropLast().joined(separator: ", ") + " and " + (items.last ?? "")
    }
}

extension SentUpload.Part {
    var isFile: Bool { filename != nil }

    /// A short description of the part, such as `text, "초코"` or `cat.jpg, image/jpeg, 20,113 bytes`.
    var summary: String {
        if !isFile, let text { return "text, \(Self.shortened(text).debugDescription)" }
        return [filename ?? "no text", contentType, Self.bytes(size)].compactMap(\.self).joined(separator: ", ")
    }

    static func shortened(_ text: String) -> String { text.count > 60 ? "\(text.prefix(60))…" : text }

    /// A number of bytes as text, such as `20,113 bytes`.
    static func bytes(_ count: Int64) -> String { "\(number(count)) byte\(count == 1 ? "" : "s")" }

    /// A number as text, with commas.
    static func number(_ number: Int64) -> String {
        let digits = Array(String(number))
        return digits.indices.map { index in
            let isGroup = index > 0 && (digits.count - index).isMultiple(of: 3) && digits[index - 1] != "-"
            return (isGroup ? "," : "") + String(digits[index])
        }.joined()
    }
}
