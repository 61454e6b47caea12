import PostcardFoundation
import PostcardForm

/// A HAR 1.2 file, as browsers and proxies write them: the requests in it, and the bytes that one was sent as.
struct HTTPArchive {
    let entries: [Entry]

    /// - Throws: ``InputError`` if the bytes are not a HAR.
    init(_ bytes: [UInt8]) throws(InputError) {
        do {
            let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
            entries = try JSONDecoder().decode(File.self, from: Data(bytes[start...])).log.entries
        } catch {
            throw .malformedArchive(Self.reason(error, bytes), error)
        }
    }

    /// The chosen entry, with its number from 1.
    ///
    /// - Throws: ``InputError`` if there is no such entry, or if `number` is `nil` and there are several uploads.
    func choose(_ number: Int?) throws(InputError) -> (number: Int, entry: Entry) {
        if let number {
            guard number > 0, number <= entries.count else { throw .noEntry(number, of: entries.count) }
            return (number, entries[number - 1])
        }
        let numbered = entries.enumerated().map { (number: $0.offset + 1, entry: $0.element) }
        let forms = numbered.filter { $0.entry.isMultipart }
        let uploads = forms.isEmpty ? numbered.filter { $0.entry.hasBody } : forms
        switch uploads.count {
        case 0: throw .noUpload(entries: entries.count)
        case 1: return uploads[0]
        default:
            throw .severalUploads(
                uploads.map { "\($0.number)  \($0.entry.request.method) \($0.entry.request.url ?? "")" })
        }
    }

    private static func reason(_ error: any Error, _ bytes: [UInt8]) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, _): "It has no \"\(key.stringValue)\"."
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            "Its \"\(path(context))\" has another type."
        case DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty:
            "Its \"\(path(context))\" cannot be read."
        case _ where isTooDeep(bytes): "Its arrays and objects are nested more than \(maximumDepth) levels deep."
        default: "It is not JSON."
        }
    }

    private static func path(_ context: DecodingError.Context) -> String {
        context.codingPath.map(\.stringValue).joined(separator: ".")
    }

    /// How many arrays and objects within each other Foundation reads. Its error for more is that for broken JSON.
    private static let maximumDepth = 512

    private static func isTooDeep(_ json: [UInt8]) -> Bool {
        var depth = 0
        var isInString = false
        var isEscaped = false
        for byte in json {
            if isEscaped {
                isEscaped = false
            } else if isInString {
                isEscaped = byte == UInt8(ascii: "\\")
                isInString = byte != UInt8(ascii: "\"")
            } else if byte == UInt8(ascii: "\"") {
                isInString = true
            } else if byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{") {
                depth += 1
                if depth > maximumDepth { return true }
            } else if byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}") {
                depth -= 1
            }
        }
        return false
    }

    private struct File: Decodable {
        let log: Log

        struct Log: Decodable {
            let entries: [Entry]
        }
    }

    /// A request. The response is ignored.
    struct Entry: Decodable {
        let request: Request
    }

    struct Request: Decodable {
        let method: String
        let url: String?
        let headers: [Header]?
        let bodySize: Size?
        let postData: PostData?
    }

    /// A size in bytes; `nil` if it is not a whole number, which is no reason to refuse the file.
    struct Size: Decodable {
        let bytes: Int?

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            let number = try? container.decode(Double.self)
            bytes = (try? container.decode(Int.self)) ?? number.flatMap { Int(exactly: $0) }
        }
    }

    struct Header: Decodable {
        let name: String
        let value: String
    }

    struct PostData: Decodable {
        let mimeType: String?
        let text: String?
        /// `base64` if a proxy stores the bytes this way, as HAR 1.2 does for responses.
        let encoding: String?
        let params: [Param]?
    }

    struct Param: Decodable {}
}

extension HTTPArchive.Entry {
    var hasBody: Bool { request.postData != nil }

    var isMultipart: Bool {
        let types = request.values(of: "content-type") + [request.postData?.mimeType].compactMap { $0 }
        return types.contains { $0.lowercased().contains("multipart/") }
    }

    /// The request as it would be sent over HTTP/1.1, and what the archive lacks.
    func recording() -> HTTPArchive.Recording {
        let body = request.body
        var head = "\(HTTPArchive.onOneLine(request.method)) \(request.target) HTTP/1.1\r\n"
        var hasLength = false
        for field in request.headers ?? [] where !field.name.hasPrefix(":") {
            // The recorder joined the chunks of the body, and HTTP/2 has none.
            if field.name.lowercased() == "transfer-encoding" { continue }
            if field.name.lowercased() == "content-length" {
                hasLength = true
                if !body.isExact, body.missing == nil {
                    head += "\(field.name): \(body.bytes.count)\r\n"
                    continue
                }
            }
            head += HTTPArchive.onOneLine("\(field.name): \(field.value)") + "\r\n"
        }
        if !hasLength, hasBody, body.missing == nil { head += "Content-Length: \(body.bytes.count)\r\n" }
        return HTTPArchive.Recording(
            bytes: Array((head + "\r\n").utf8) + body.bytes, remark: body.remark, missingBody: body.missing,
            origin: request.origin)
    }
}

extension HTTPArchive {
    /// What an archive contains of a request.
    struct Recording {
        let bytes: [UInt8]
        /// What the recorded request lacks, in a sentence.
        let remark: String?
        /// The message if it contains nothing of the body.
        let missingBody: String?
        let origin: Origin
    }

    /// The scheme and the host of a request's URL; `nil` if the archive does not have them, or only in the head.
    struct Origin {
        let scheme: String?
        let authority: String?
    }

    /// Removes line breaks: some recorders join the values of several fields, one per line.
    fileprivate static func onOneLine(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0 == "\r" || $0 == "\n" ? " " : $0 }))
    }
}

extension HTTPArchive.Request {
    fileprivate struct Body {
        var bytes: [UInt8]
        var isExact = true
        var remark: String?
        /// The message if no byte was recorded.
        var missing: String?
    }

    fileprivate func values(of name: String) -> [String] {
        (headers ?? []).filter { $0.name.lowercased() == name }.map(\.value)
    }

    /// The part of the URL for the request line, without blanks and line breaks.
    fileprivate var target: String {
        rawTarget.unicodeScalars.reduce(into: "") { target, scalar in
            let isVisible = scalar.value > 0x20 && scalar.value != 0x7F
            target += isVisible ? String(scalar) : "%" + [UInt8(scalar.value)].hexadecimal.uppercased()
        }
    }

    private var rawTarget: String {
        guard let url, let scheme = url.firstRange(of: "://") else { return url ?? "/" }
        let rest = url[scheme.upperBound...]
        guard let path = rest.firstIndex(where: { "/?#".contains($0) }) else { return "/" }
        let target = rest[path...].prefix { $0 != "#" }
        return target.hasPrefix("/") ? String(target) : "/" + target
    }

    /// The scheme and the host of the URL. If it has none, HTTP/2's own fields may, which are left out of the head.
    fileprivate var origin: HTTPArchive.Origin {
        if let url, let separator = url.firstRange(of: "://") {
            let scheme = url[..<separator.lowerBound].lowercased()
            // A name and a password before the host are left out, because the line for curl may be shared.
            let authority = url[separator.upperBound...].prefix { !"/?#".contains($0) }.split(separator: "@").last ?? ""
            let isVisible = authority.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x7F }
            if ["http", "https"].contains(scheme), !authority.isEmpty, isVisible {
                return HTTPArchive.Origin(scheme: scheme, authority: String(authority))
            }
        }
        return HTTPArchive.Origin(
            scheme: values(of: ":scheme").first { ["http", "https"].contains($0) },
            authority: values(of: "host").isEmpty ? values(of: ":authority").first : nil)
    }

    /// The body's bytes. HAR stores a body as text. For bytes that are not UTF-8, some recorders write one character
    /// per byte and others leave them out; the sizes show which.
    fileprivate var body: Body {
        let text = postData?.text ?? ""
        guard let postData, !text.isEmpty else { return Body(bytes: [], missing: missingBody) }
        if postData.encoding?.lowercased() == "base64" {
            guard let data = Data(base64Encoded: text) else {
                return Body(bytes: Array(text.utf8), isExact: false, remark: Self.notBase64)
            }
            return Body(bytes: Array(data))
        }
        let size = sizes.first { $0 > 0 }
        let bytes = Array(text.utf8)
        if size == bytes.count { return Body(bytes: bytes) }
        let scalars = text.unicodeScalars
        if bytes.contains(where: { $0 > 0x7F }), scalars.allSatisfy({ $0.value < 0x100 }),
            size == nil || size == scalars.count
        {
            return Body(bytes: scalars.map { UInt8(truncatingIfNeeded: $0.value) })
        }
        let isReplaced = scalars.contains("\u{FFFD}")
        guard let size, isReplaced || size > bytes.count else {
            return isReplaced ? Body(bytes: bytes, isExact: false, remark: Self.replaced) : Body(bytes: bytes)
        }
        return Body(
            bytes: bytes, isExact: false,
            remark:
                "The HAR has only \(bytes.count) of the body's \(size) bytes: browsers leave out a file's content, "
                + "or replace what is not text. Offsets and sizes are those in the HAR.")
    }

    /// The size of the body by the archive, in bytes; -1 if its recorder did not know it.
    private var sizes: [Int] {
        [bodySize?.bytes, values(of: "content-length").first.flatMap { Int($0) }].compactMap { $0 }
    }

    /// The message about a body without recorded bytes; `nil` if the request had no body.
    private var missingBody: String? {
        let isUpload = postData != nil || values(of: "content-type").contains { $0.lowercased().contains("multipart/") }
        guard isUpload || sizes.contains(where: { $0 > 0 }), !sizes.contains(0) else { return nil }
        return postData?.params?.isEmpty == false
            ? "The HAR lists the form's fields, but has none of the body's bytes: only the head can be checked."
            : "The HAR has none of the body's bytes: only the head can be checked."
    }

    private static let notBase64 =
        "The HAR says that the body is in base64, but its text is not. The text is read as the body. Offsets and sizes "
        + "are those in the HAR."

    private static let replaced =
        "The HAR has the body as text, in which bytes that are not UTF-8 were replaced. Offsets and sizes are those "
        + "in the HAR."
}
