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
/// For small forms. One that is too large for memory is read part by part as it comes in. A ``FormDecoder`` makes a
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

        /// The content as a text; `nil` where it lies on disk or its bytes are not UTF-8.
        public var text: String? {
            switch content {
            case .bytes(let bytes): String(validating: bytes, as: UTF8.self)
            case .file: nil
            }
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

    /// Reads a form whose body is in memory. The contents of its parts are copies.
    ///
    /// - Parameters:
    ///   - contentType: The value of the request's `Content-Type` header field.
    ///   - body: The body, from its first byte to its last.
    ///   - limits: How much of everything to take.
    /// - Throws: ``FormProblem`` where the Content-Type is not that of a form, or the body is broken or goes over a
    ///   limit.
    public init(contentType: String, body: Data, limits: FormLimits = FormLimits()) throws(FormProblem) {
        var parser = try FormParser(contentType: contentType, limits: limits)
        var part: (header: PartHeader, content: Data)?
        var position = 0
        while let event = try parser.nextEvent(in: body.bytes, at: &position) {
            switch event {
            case .partBegan(let header):
                part = (header, Data())
            case .bytes(.chunk(let range)):
                part?.content.append(body.piece(range))
            case .bytes(.held(let range)):
                part?.content.append(contentsOf: parser.heldBytes[range])
            case .partEnded:
                if let part { append(Part(header: part.header, content: .bytes(part.content))) }
                part = nil
            }
        }
        try parser.finish()
    }

    /// Appends a part.
    public mutating func append(_ part: Part) {
        indices[part.header.name, default: []].append(parts.count)
        parts.append(part)
    }

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
