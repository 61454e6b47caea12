public import PostcardFoundation

/// A completely received form: its parts in the order of the body.
///
/// ```swift
/// let form = try ReceivedForm(contentType: contentType, body: body)
/// let name = form.text(named: "name")
/// for picture in form.all(named: "petImage") { print(picture.header.filename ?? "") }
/// ```
///
/// A received form is for small bodies. Use ``FormParts`` for forms that are too large for memory. A ``FormDecoder``
/// decodes a value from a received form.
public struct ReceivedForm: Sendable {
    /// The parts, in the order of the body.
    public private(set) var parts: [Part] = []

    /// The indices of the parts with each name.
    private var indices: [String: [Int]] = [:]

    /// A received part: its header and its content.
    public struct Part: Sendable {
        /// The part's header.
        public let header: PartHeader

        /// The part's content.
        public let content: Content

        /// Makes a part.
        public init(header: PartHeader, content: Content) {
            self.header = header
            self.content = content
        }

        /// The charset of the text if the part's Content-Type does not name a charset (RFC 7578 §4.6).
        fileprivate var defaultCharset: Charset? = .utf8

        /// The content as text. Bytes that are UTF-8 are read as UTF-8. Other bytes are read in the named charset: that
        /// of the part's Content-Type, or else that of the form's field `_charset_` (RFC 7578 §4.6). If the named
        /// charset is UTF-16 or ISO-2022-JP, it is tried before UTF-8. `nil` if the content is on disk, the charset is
        /// unknown, or the bytes are not text in the charset. Charsets have the labels of the WHATWG Encoding Standard.
        /// iconv decodes them on Linux, and Core Foundation on Apple's systems.
        ///
        /// The text is unchanged. Many combining marks in a row make comparing it slow: compare its `utf8`, or use a
        /// ``FormDecoder``, which refuses such texts.
        public var text: String? {
            guard case .bytes(let bytes) = content else { return nil }
            return text(of: bytes)
        }

        /// The part's bytes as text; `nil` if they are not text in the charset.
        func text(of bytes: Data) -> String? {
            var decoder = CharsetDecoder()
            return decoder.text(
                of: bytes, in: header.charset.map { Charset($0) } ?? defaultCharset, repairing: false)
        }
    }

    /// The content of a part, in memory or in a file.
    public enum Content: Sendable, Hashable {
        /// Bytes in memory.
        case bytes(Data)
        /// A file that holds the content because it was too large for memory.
        case file(URL)
    }

    /// Makes a form from its parts, such as parts that a receiver wrote to disk.
    public init(parts: [Part] = []) {
        for part in parts { append(part) }
    }

    /// Reads a form whose body is in memory. The contents of its parts are copies. Files in a nested `multipart/mixed`
    /// become parts with the outer part's name (RFC 7578 §4.3).
    ///
    /// - Parameters:
    ///   - contentType: The value of the request's `Content-Type` header field.
    ///   - body: The body, from its first byte to its last.
    ///   - limits: The limits to enforce.
    /// - Throws: ``FormProblem`` if the Content-Type is not that of a form, or the body is broken or exceeds a limit.
    public init(contentType: String, body: Data, limits: FormLimits = FormLimits()) throws(FormProblem) {
        try read(body, with: try FormParser(contentType: contentType, limits: limits), limits: limits)
    }

    /// Reads a form while its body is received, and holds it in memory. Files in a nested `multipart/mixed` become
    /// parts with the outer part's name (RFC 7578 §4.3).
    ///
    /// - Parameters:
    ///   - body: The body of a request, in chunks of any size.
    ///   - contentType: The value of the request's `Content-Type` header field.
    ///   - limits: The limits to enforce. Defaults to ``FormLimits/inMemory``.
    /// - Throws: ``FormProblem`` if the Content-Type is not that of a form, or the body is broken or exceeds a limit;
    ///   errors of the body, unchanged.
    public init<Body: AsyncSequence>(
        of body: Body, contentType: String, limits: FormLimits = .inMemory
    ) async throws where Body.Element: FormChunk {
        for try await part in try FormParts(of: body, contentType: contentType, limits: limits) {
            let content = try await part.collect(upTo: .max)
            try append(Data(content), of: part.header, at: part.offset, limits: limits)
        }
    }

    private mutating func read(_ body: Data, with parser: FormParser, limits: FormLimits) throws(FormProblem) {
        var parser = CheckedFormParser(parser)
        var part: (header: PartHeader, offset: Int64, content: Data)?
        var position = 0
        while let event = try parser.nextEvent(in: body.bytes, at: &position) {
            switch event {
            case .partBegan(let header):
                part = (header, parser.offset, Data())
            case .bytes(let bytes):
                part?.content.append(parser.piece(bytes, of: body))
            case .partEnded:
                if let part { try append(part.content, of: part.header, at: part.offset, limits: limits) }
                part = nil
            }
        }
        try parser.finish()
    }

    /// Appends a part whose content is complete. A nested `multipart/mixed` becomes one part for each of its files.
    private mutating func append(
        _ content: Data, of header: PartHeader, at offset: Int64, limits: FormLimits
    ) throws(FormProblem) {
        var limits = limits
        limits.maximumParts -= parts.count
        if let parser = try FormParser(filesIn: header, at: offset, limits: limits) {
            try read(content, with: parser, limits: limits)
        } else {
            append(Part(header: header, content: .bytes(content)))
        }
    }

    /// Appends a part.
    public mutating func append(_ part: Part) {
        indices[part.header.name, default: []].append(parts.count)
        parts.append(part)
        parts[parts.count - 1].defaultCharset = defaultCharset
        // Only the first non-empty field `_charset_` counts, so the earlier parts are updated only once.
        if !hasCharset, part.header.name == "_charset_", !part.header.isFile, let name = part.text, !name.isEmpty {
            hasCharset = true
            defaultCharset = Charset(ofForm: name.utf8)
            for index in parts.indices { parts[index].defaultCharset = defaultCharset }
        }
    }

    /// The charset that the field `_charset_` names for all texts (RFC 7578 §4.6); `nil` if it is unknown.
    private var defaultCharset: Charset? = .utf8
    private var hasCharset = false

    /// The first part with a name.
    public func first(named name: String) -> Part? {
        indices[name]?.first.map { parts[$0] }
    }

    /// The parts with a name, in the order of the body.
    public func all(named name: String) -> [Part] {
        indices[name]?.map { parts[$0] } ?? []
    }

    /// The value of the first text field with a name; `nil` without such a field, or if its ``Part/text`` is `nil`.
    public func text(named name: String) -> String? {
        indices[name]?.first { !parts[$0].header.isFile }.flatMap { parts[$0].text }
    }
}
