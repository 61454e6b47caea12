public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One entry of a form: its name, what describes it, and where its bytes come from.
public struct FormPart: Sendable {
    /// The name of the form's field, sent in UTF-8.
    ///
    /// A quote and line breaks are sent as browsers do (`%22`, `%0D`, `%0A`), and a backslash as `\\`. Because browsers do
    /// not escape the percent sign, receivers cannot tell a name that holds `%22`, `%0D` or `%0A` itself from an escaped
    /// one: they read a quote or a line break. Every other name is read back as it is. One that holds a NUL is an error
    /// when the form is laid out: receivers refuse it.
    public var name: String

    /// The name of the file, sent as ``name``; `nil` where the part is no file. Receivers drop everything up to the last
    /// slash (RFC 7578 §4.2).
    public var filename: String?

    /// The media type of the content. Where it is `nil`, a text has none, and for everything else it is found
    /// by the filename's extension, else by the first bytes, else it is `application/octet-stream`.
    public var contentType: MediaType?

    /// Header fields beside `Content-Disposition` and `Content-Type`. RFC 7578 §4.8 tells receivers to ignore
    /// them, so there is rarely a reason for one. Those two
    /// here are an error when the form is laid out.
    public var headerFields: HTTPFields

    /// Where the bytes come from.
    public var content: Content

    /// What is removed from the content while it is sent, if that is a file or bytes in memory. Defaults to
    /// ``MetadataPolicy/asIs``.
    public var metadata: MetadataPolicy

    /// Where the bytes of a part come from.
    public enum Content: Sendable {
        /// A text, sent in UTF-8, byte for byte as given.
        case text(String)
        /// Bytes in memory.
        case bytes(Data)
        /// A file on disk, read while it is sent.
        case file(URL)
        /// Bytes that are made while they are sent.
        case stream(FormStream)
    }

    /// Makes a part.
    ///
    /// - Parameters:
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file; for a file on disk without one, the last component of its path.
    ///   - contentType: The media type; found from the content where it is `nil`.
    ///   - headerFields: Further header fields.
    ///   - content: Where the bytes come from.
    ///   - metadata: What is removed from a picture or a video while it is sent. Defaults to nothing.
    public init(
        name: String, filename: String? = nil, contentType: MediaType? = nil, headerFields: HTTPFields = HTTPFields(),
        content: Content, metadata: MetadataPolicy = .asIs
    ) {
        self.name = name
        self.contentType = contentType
        self.headerFields = headerFields
        self.content = content
        self.metadata = metadata
        if case .file(let url) = content {
            self.filename = filename ?? url.lastPathComponent
        } else {
            self.filename = filename
        }
    }
}
