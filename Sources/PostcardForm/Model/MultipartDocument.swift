public import HTTPTypes

/// A body of type `multipart/mixed` (RFC 2046 §5.1.3) or `multipart/related` (RFC 2387): parts with header fields of
/// their own, in order, and no names. What takes a form's name, value and file is a ``MultipartForm``.
///
/// ```swift
/// var document = MultipartDocument(.related)
/// document.append(.text(#"{"name":"초코"}"#), headerFields: [.contentType: "application/json"])
/// document.append(.file(picture), headerFields: [.contentType: "image/jpeg"])
/// request.setValue(document.contentType, forHTTPHeaderField: "Content-Type")
/// ```
public struct MultipartDocument: Sendable {
    /// How the parts belong together.
    public enum Kind: String, Sendable, Hashable {
        /// One after the other.
        case mixed
        /// The first is the root, and refers to the others.
        case related
    }

    /// One of the parts.
    public struct Part: Sendable {
        /// Its header fields, written as they are.
        public var headerFields: HTTPFields
        /// Where its bytes come from.
        public var content: FormPart.Content
        /// What is removed from the content while it is sent.
        public var metadata: MetadataPolicy

        /// Makes a part.
        public init(
            headerFields: HTTPFields = HTTPFields(), content: FormPart.Content, metadata: MetadataPolicy = .asIs
        ) {
            self.headerFields = headerFields
            self.content = content
            self.metadata = metadata
        }
    }

    /// How the parts belong together.
    public let kind: Kind

    /// What separates the parts.
    public let boundary: Boundary

    /// The parts, in the order in which they are sent.
    public private(set) var parts: [Part] = []

    /// Makes a document without parts.
    public init(_ kind: Kind, boundary: Boundary = Boundary()) {
        self.kind = kind
        self.boundary = boundary
    }

    /// Appends a part.
    public mutating func append(
        _ content: FormPart.Content, headerFields: HTTPFields = HTTPFields(), metadata: MetadataPolicy = .asIs
    ) {
        parts.append(Part(headerFields: headerFields, content: content, metadata: metadata))
    }

    /// The value of the request's `Content-Type` header field. For `multipart/related` it names the root's type, which
    /// RFC 2387 §3.1 asks for.
    public var contentType: String {
        let root = kind == .related ? parts.first?.headerFields[.contentType] : nil
        let type = root.map { "; type=\"\($0.prefix { $0 != ";" })\"" } ?? ""
        return "multipart/\(kind.rawValue)\(type); boundary=\(boundary.parameterValue)"
    }

    /// Looks at the document's files and lays out its body.
    ///
    /// - Throws: ``FormError`` as ``MultipartForm/layout()`` does.
    public func layout() throws(FormError) -> FormLayout {
        try FormLayout(self)
    }
}
