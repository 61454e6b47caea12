import PostcardFoundation
import PostcardForm

/// The requests of a HAR 1.2 file, which browsers and proxies write, and the bytes of one request.
struct HTTPArchive {
    let entries: [Entry]

    /// Parses a HAR file. Throws ``InputError`` if the bytes are not a HAR.
    init(_ bytes: [UInt8]) throws(InputError) {
        let json: JSON
        do {
            json = try JSON(bytes)
        } catch {
            let reason =
                switch error.reason {
                case .notJSON: "It is not JSON."
                case .tooDeep: "Its arrays and objects are nested more than \(JSON.maximumDepth) levels deep."
                }
            throw .malformedArchive(reason)
        }
        do throws(Element.Mismatch) {
            var entries: [Entry] = []
            for entry in try Element(json: json, path: []).member("log").member("entries").elements {
                entries.append(Entry(request: try Request(entry.member("request"))))
            }
            self.entries = entries
        } catch {
            throw .malformedArchive(error.description)
        }
    }

    /// The chosen entry and its number, from 1. Throws ``InputError`` if there is no such entry, or if `number` is
    /// `nil` and there are several uploads.
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
                uploads.map { upload in
                    let words = [upload.entry.request.method, upload.entry.request.url ?? []]
                    return "\(upload.number)  \(words.map { String(streamSafe: $0) }.joined(separator: " "))"
                })
        }
    }

    /// A recorded request. Its response is ignored.
    struct Entry {
        let request: Request
    }

    /// The parts of a request that the archive records, as bytes.
    struct Request {
        let method: [UInt8]
        let url: [UInt8]?
        let headers: [Header]
        /// The size of the body; `nil` if the archive has no whole number for it.
        let bodySize: Int?
        let postData: PostData?
    }

    typealias Header = (name: [UInt8], value: [UInt8])

    struct PostData {
        var mimeType: [UInt8]?
        var text: [UInt8]?
        /// The encoding of the body's text. Some proxies write `base64`, which HAR 1.2 allows only for responses.
        var encoding: [UInt8]?
        var hasParams = false
        /// Whether the text is exactly the bytes that were sent.
        var isExact = false
    }
}

extension HTTPArchive.Request {
    fileprivate init(_ json: Element) throws(Element.Mismatch) {
        method = try json.member("method").string
        url = try json.optional("url")?.string
        headers =
            try json.optional("headers")?.elements.map { (field) throws(Element.Mismatch) in
                (try field.member("name").string, try field.member("value").string)
            } ?? []
        bodySize = try json.optional("bodySize")?.json.integer.flatMap { Int(exactly: $0) }
        postData = try json.optional("postData").map { (data) throws(Element.Mismatch) in
            HTTPArchive.PostData(
                mimeType: try data.optional("mimeType")?.string, text: try data.optional("text")?.string,
                encoding: try data.optional("encoding")?.string,
                hasParams: try data.optional("params")?.elements.isEmpty == false)
        }
    }
}

extension HTTPArchive.PostData {
    /// Makes the data of a body from the sent bytes.
    init(bytes: [UInt8]) {
        self.init(text: bytes, isExact: true)
    }

    init(base64: [UInt8]) {
        self.init(text: base64, encoding: Array("base64".utf8))
    }
}

/// A JSON value in an archive, with its path.
private struct Element {
    let json: JSON
    /// The names and indices that lead to the value.
    let path: [String]

    /// A mismatch with the HAR format, in a sentence.
    struct Mismatch: Error, CustomStringConvertible {
        let description: String
    }

    /// The value of the named member. Throws ``Mismatch`` if there is no such member.
    func member(_ name: StaticString) throws(Mismatch) -> Element {
        guard let member = try optional(name) else { throw Mismatch(description: "It has no \"\(name)\".") }
        return member
    }

    /// The value of the named member; `nil` if it is missing or `null`.
    func optional(_ name: StaticString) throws(Mismatch) -> Element? {
        guard case .object = json else { throw otherType }
        guard let value = json[name], value != .null else { return nil }
        return Element(json: value, path: path + ["\(name)"])
    }

    var elements: [Element] {
        get throws(Mismatch) {
            guard let elements = json.elements else { throw otherType }
            return elements.enumerated().map { Element(json: $0.element, path: path + ["\($0.offset)"]) }
        }
    }

    var string: [UInt8] {
        get throws(Mismatch) {
            guard case .string(let bytes) = json else { throw otherType }
            return bytes
        }
    }

    private var otherType: Mismatch {
        Mismatch(description: "Its \"\(path.joined(separator: "."))\" has another type.")
    }
}

extension HTTPArchive.Entry {
    var hasBody: Bool { request.postData != nil }

    var isMultipart: Bool {
        (request.values(of: "content-type") + [request.postData?.mimeType].compactMap { $0 }).contains(
            where: HTTPArchive.isMultipart)
    }

    /// The request in HTTP/1.1, with remarks on what the archive lacks.
    func recording() -> HTTPArchive.Recording {
        let body = request.body
        var head = HTTPArchive.onOneLine(request.method) + [.space] + request.target + Array(" HTTP/1.1\r\n".utf8)
        var hasLength = false
        let length = Array("\(body.bytes.count)".utf8)
        for field in request.headers where field.name.first != .colon {
            // The recorder has joined the chunks of the body, and HTTP/2 has no chunks.
            if field.name.isEqualIgnoringCase("transfer-encoding") { continue }
            var value = field.value
            if field.name.isEqualIgnoringCase("content-length") {
                hasLength = true
                if !body.isExact, body.missing == nil { value = length }
            }
            head += HTTPArchive.onOneLine(field.name + [.colon, .space] + value) + Array("\r\n".utf8)
        }
        if !hasLength, hasBody, body.missing == nil {
            head += Array("Content-Length: ".utf8) + length + Array("\r\n".utf8)
        }
        return HTTPArchive.Recording(
            bytes: head + Array("\r\n".utf8) + body.bytes, remark: body.remark, missingBody: body.missing,
            origin: request.origin)
    }
}

extension HTTPArchive {
    /// The bytes of a request in an archive, and remarks on what is missing.
    struct Recording {
        let bytes: [UInt8]
        /// A remark on what the recorded request lacks, in a sentence.
        let remark: String?
        /// The message about the missing body, if the archive has no bytes of the body.
        var missingBody: String?
        let origin: Origin
    }

    /// The scheme and host of a request's URL. Each is `nil` if the archive has it only in the head, or not at all.
    struct Origin {
        let scheme: String?
        let authority: String?
    }

    /// Replaces line breaks with spaces. Some recorders separate the values of several fields with line breaks.
    fileprivate static func onOneLine(_ text: [UInt8]) -> [UInt8] {
        text.map { $0 == .carriageReturn || $0 == .lineFeed ? .space : $0 }
    }

    fileprivate static func isMultipart(_ type: [UInt8]) -> Bool {
        type.map { $0.asciiLowercased }.contains("multipart/".utf8)
    }
}

extension HTTPArchive.Request {
    fileprivate struct Body {
        var bytes: [UInt8]
        var isExact = true
        var remark: String?
        /// The message about the missing body, if no byte of it was recorded.
        var missing: String?
    }

    fileprivate func values(of name: String) -> [[UInt8]] {
        headers.filter { $0.name.isEqualIgnoringCase(name) }.map { $0.value }
    }

    /// The path and query of the URL for the request line, without blanks and line breaks.
    fileprivate var target: [UInt8] {
        rawTarget.reduce(into: []) { target, byte in
            if byte > 0x20, byte != 0x7F {
                target.append(byte)
            } else {
                target += "%".utf8
                target += [byte].hexadecimal.uppercased().utf8
            }
        }
    }

    private var rawTarget: ArraySlice<UInt8> {
        guard let url, let rest = parts(of: url)?.rest else { return url?[...] ?? [.slash] }
        guard let path = rest.firstIndex(where: Self.endsAuthority) else { return [.slash] }
        let target = rest[path...].prefix { $0 != UInt8(ascii: "#") }
        return target.first == .slash ? target : [.slash] + target
    }

    /// The parts of a URL before and after `://`; `nil` if the URL has no `://`.
    private func parts(of url: [UInt8]) -> (scheme: ArraySlice<UInt8>, rest: ArraySlice<UInt8>)? {
        let separator = Array("://".utf8)
        return url.indices.first { url[$0...].starts(with: separator) }.map { (url[..<$0], url[($0 + 3)...]) }
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool { "/?#".utf8.contains(byte) }

    /// The scheme and host of the URL. Without a URL, both come from HTTP/2 pseudo-header fields, which the head lacks.
    fileprivate var origin: HTTPArchive.Origin {
        if let url, let (scheme, rest) = parts(of: url) {
            // A name and password before the host are left out, because people may share the curl command.
            let authority = rest.prefix { !Self.endsAuthority($0) }.split(separator: UInt8(ascii: "@")).last ?? []
            let isVisible = authority.allSatisfy { $0 > 0x20 && $0 != 0x7F }
            if let scheme = Self.known(scheme), !authority.isEmpty, isVisible {
                return HTTPArchive.Origin(scheme: scheme, authority: String(streamSafe: authority))
            }
        }
        return HTTPArchive.Origin(
            scheme: values(of: ":scheme").lazy.compactMap { Self.known($0[...]) }.first,
            authority: values(of: "host").isEmpty
                ? values(of: ":authority").first.map { String(streamSafe: $0) } : nil)
    }

    private static func known(_ scheme: ArraySlice<UInt8>) -> String? {
        ["http", "https"].first { scheme.isEqualIgnoringCase($0) }
    }

    /// The bytes of the body. HAR stores a body as text. Some recorders write each byte that is not UTF-8 as a
    /// character, and others leave it out. The recorded sizes show what the recorder did.
    fileprivate var body: Body {
        guard let postData, let bytes = postData.text, !bytes.isEmpty else {
            return Body(bytes: [], missing: missingBody)
        }
        if postData.isExact { return Body(bytes: bytes) }
        if postData.encoding?.isEqualIgnoringCase("base64") == true {
            guard let data = Data(base64Encoded: Data(bytes)) else {
                return Body(bytes: bytes, isExact: false, remark: Self.notBase64)
            }
            return Body(bytes: Array(data))
        }
        let size = sizes.first { $0 > 0 }
        if size == bytes.count { return Body(bytes: bytes) }
        let text = String(decoding: bytes, as: UTF8.self).unicodeScalars
        if bytes.contains(where: { $0 > 0x7F }), text.allSatisfy({ $0.value < 0x100 }),
            size == nil || size == text.count
        {
            return Body(bytes: text.map { UInt8(truncatingIfNeeded: $0.value) })
        }
        let isReplaced = text.contains("\u{FFFD}")
        guard let size, isReplaced || size > bytes.count else {
            return isReplaced ? Body(bytes: bytes, isExact: false, remark: Self.replaced) : Body(bytes: bytes)
        }
        return Body(
            bytes: bytes, isExact: false,
            remark:
                "The HAR has only \(bytes.count) of the body's \(size) bytes: browsers leave out a file's content, "
                + "or replace what is not text. Offsets and sizes are those in the HAR.")
    }

    /// The sizes of the body in the archive, in bytes; -1 if the recorder did not know the size.
    private var sizes: [Int] {
        [bodySize, values(of: "content-length").first.flatMap { Int(String(streamSafe: $0)) }].compactMap { $0 }
    }

    /// The message about a body without recorded bytes; `nil` if the request had no body.
    private var missingBody: String? {
        let isUpload = postData != nil || values(of: "content-type").contains(where: HTTPArchive.isMultipart)
        guard isUpload || sizes.contains(where: { $0 > 0 }), !sizes.contains(0) else { return nil }
        return postData?.hasParams == true
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
