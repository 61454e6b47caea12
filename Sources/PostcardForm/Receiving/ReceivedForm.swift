#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A form that was received whole: its parts in the order in which they came.
///
/// ```swift
/// let form = try ReceivedForm(contentType: contentType, body: body)
/// let name = form.text(named: "name")
/// for picture in form.all(named: "petImage") { print(picture.header.filename ?? "") }
/// ```
///
/// For small forms. One that is too large for memory is read part by part as it comes in, with ``FormParts``. A ``FormDecoder`` makes a
/// value of it.
public struct ReceivedForm: Sendable {
    /// The parts, in the order in which they came.
    public private(set) var parts: [Part] = []

    /// Which parts have a name.
    private var indices: [String: [Int]] = [:]

    /// A part that was received: what its header says, and its content.
    public struct Part: Sendable {
        /// The part's header.
        public let header: PartHeader

        /// The part's content.
        public let content: Content

        /// Puts a part together.
        public init(header: PartHeader, content: Content) {
            self.header = header
            self.content = content
        }

        /// The charset of the text, where the part's own Content-Type names none (RFC 7578 §4.6).
        fileprivate var defaultCharset: Charset? = .utf8

        /// The content as a text, in the charset that the part's Content-Type names, else in the form's, else in
        /// UTF-8; `nil` where it lies on disk, the charset is unknown, or the bytes are no text in it. UTF-8 and
        /// ISO-8859-1 are known.
        public var text: String? {
            guard case .bytes(let bytes) = content else { return nil }
            guard let name = header.charset else { return defaultCharset?.decode(bytes) }
            return Charset(name.utf8)?.decode(bytes)
        }
    }

    /// Where the content of a part lies.
    public enum Content: Sendable, Hashable {
        /// Bytes in memory.
        case bytes(Data)
        /// A file that the content was written to, because it was too large to be held.
        case file(URL)
    }

    /// Makes a form of parts, such as those that a receiver wrote to disk.
    public init(parts: [Part] = []) {
        for part in parts { append(part) }
    }

    /// Reads a form whose body is in memory. The contents of its parts are copies. Files that a part holds in a
    /// `multipart/mixed` of its own become parts of its name (RFC 7578 §4.3).
    ///
    /// - Parameters:
    ///   - contentType: The value of the request's `Content-Type` header field.
    ///   - body: The body, from its first byte to its last.
    ///   - limits: How much of everything to take.
    /// - Throws: ``FormProblem`` where the Content-Type is not that of a form, or the body is broken or goes over a
    ///   limit.
    public init(contentType: String, body: Data, limits: FormLimits = FormLimits()) throws(FormProblem) {
        var parser = try FormParser(contentType: contentType, limits: limits)
        try read(body, &parser, limits: limits)
    }

    /// Reads a form as its body comes in, and holds it whole. Files that a part holds in a `multipart/mixed` of its own
    /// become parts of its name (RFC 7578 §4.3).
    ///
    /// - Parameters:
    ///   - body: The body of a request, in chunks of any size.
    ///   - contentType: The value of the request's `Content-Type` header field.
    ///   - limits: How much of everything to take; what can be held in memory unless given.
    /// - Throws: ``FormProblem`` where the Content-Type is not that of a form, or the body is broken or goes over a
    ///   limit; what the body throws, unchanged.
    public init<Body: AsyncSequence>(
        of body: Body, contentType: String, limits: FormLimits = .inMemory
    ) async throws where Body.Element: FormChunk {
        for try await part in try FormParts(of: body, contentType: contentType, limits: limits) {
            let content = try await part.collect(upTo: .max)
            try append(Data(content), of: part.header, at: part.offset, limits: limits)
        }
    }

    private mutating func read(_ body: Data, _ parser: inout FormParser, limits: FormLimits) throws(FormProblem) {
        var part: (header: PartHeader, offset: Int64, content: Data)?
        var position = 0
        while let event = try parser.nextEvent(in: body.bytes, at: &position) {
            switch event {
            case .partBegan(let header):
                part = (header, parser.offset, Data())
            case .bytes(.chunk(let range)):
                part?.content.append(body.piece(range))
            case .bytes(.held(let range)):
                part?.content.append(contentsOf: parser.heldBytes[range])
            case .partEnded:
                if let part { try append(part.content, of: part.header, at: part.offset, limits: limits) }
                part = nil
            }
        }
        try parser.finish()
    }

    /// Appends a part whose content is complete, or the files that it holds.
    private mutating func append(
        _ content: Data, of header: PartHeader, at offset: Int64, limits: FormLimits
    ) throws(FormProblem) {
        var limits = limits
        limits.maximumParts -= parts.count
        if var parser = try FormParser(filesIn: header, at: offset, limits: limits) {
            try read(content, &parser, limits: limits)
        } else {
            append(Part(header: header, content: .bytes(content)))
        }
    }

    /// Appends a part.
    public mutating func append(_ part: Part) {
        indices[part.header.name, default: []].append(parts.count)
        parts.append(part)
        parts[parts.count - 1].defaultCharset = defaultCharset
        // The first field that names one counts, so that the parts before it are gone over once.
        if !hasCharset, part.header.name == "_charset_", !part.header.isFile, let name = part.text, !name.isEmpty {
            hasCharset = true
            defaultCharset = Charset(name.utf8)
            for index in parts.indices { parts[index].defaultCharset = defaultCharset }
        }
    }

    /// The charset that a field `_charset_` names for all texts (RFC 7578 §4.6); `nil` where it is unknown.
    private var defaultCharset: Charset? = .utf8
    private var hasCharset = false

    /// The first part of a name.
    public func first(named name: String) -> Part? {
        indices[name]?.first.map { parts[$0] }
    }

    /// The parts of a name, in the order in which they came.
    public func all(named name: String) -> [Part] {
        indices[name]?.map { parts[$0] } ?? []
    }

    /// The value of the first text field of a name; `nil` where there is none, or its bytes are not UTF-8.
    public func text(named name: String) -> String? {
        indices[name]?.first { !parts[$0].header.isFile }.flatMap { parts[$0].text }
    }
}
