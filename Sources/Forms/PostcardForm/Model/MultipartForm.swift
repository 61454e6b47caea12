public import PostcardFoundation

/// A form of type `multipart/form-data` (RFC 7578): parts in order, and one boundary.
///
/// ```swift
/// var form = MultipartForm(.text("초코", named: "name"), .file(at: photo, named: "petImage"))
/// form.append(filesAt: more, named: "petImage")
/// ```
///
/// The form is a value. Its ``contentType`` and its body (``layout()``) use the same boundary, so they always match,
/// and every layout gives the same bytes. Field names may repeat. Parts are sent in the order of appending.
public struct MultipartForm: Sendable {
    /// The boundary that separates the parts.
    public let boundary: Boundary

    /// The handling of line breaks in texts and names.
    public let lineBreaks: LineBreaks

    /// The parts, in the order in which they are sent.
    public internal(set) var parts: [FormPart]

    /// Makes a form.
    ///
    /// - Parameters:
    ///   - parts: The first parts of the form. Defaults to none.
    ///   - boundary: The boundary between the parts. Defaults to a random one.
    ///   - lineBreaks: The handling of line breaks in texts and names. Defaults to leaving them unchanged.
    public init(_ parts: FormPart..., boundary: Boundary = Boundary(), lineBreaks: LineBreaks = .asGiven) {
        self.parts = parts
        self.boundary = boundary
        self.lineBreaks = lineBreaks
    }

    /// The value of the request's `Content-Type` header field.
    public var contentType: String {
        "multipart/form-data; boundary=\(boundary.parameterValue)"
    }

    /// A copy of the form with its fields before its files, so that receivers can check all fields before the first
    /// file. Files are parts with a filename. Fields keep their order, and files too.
    public func fieldsFirst() -> MultipartForm {
        var form = self
        form.parts = parts.filter { $0.filename == nil } + parts.filter { $0.filename != nil }
        return form
    }

    /// Appends a part.
    public mutating func append(_ part: FormPart) {
        parts.append(part)
    }

    /// Appends a text field. The text is sent unchanged.
    ///
    /// - Parameters:
    ///   - text: The value.
    ///   - name: The name of the field.
    ///   - contentType: The media type. Defaults to none; some receivers require `application/json` for a field with
    ///     JSON.
    public mutating func append(_ text: String, named name: String, contentType: MediaType? = nil) {
        append(.text(text, named: name, contentType: contentType))
    }

    /// Appends bytes in memory.
    ///
    /// - Parameters:
    ///   - bytes: The content.
    ///   - name: The name of the field.
    ///   - filename: The name of the file. Most receivers read a part without a filename as a text field.
    ///   - contentType: The media type. Defaults to the type of the filename extension or the first bytes.
    ///   - metadata: The metadata to remove from a picture or video. Defaults to its location and owner.
    public mutating func append(
        _ bytes: Data, named name: String, filename: String?, contentType: MediaType? = nil,
        metadata: MetadataPolicy = .picturesWithoutLocation
    ) {
        append(.bytes(bytes, named: name, filename: filename, contentType: contentType, metadata: metadata))
    }

    /// Appends a file on disk, which is read while it is sent and never held in memory as a whole.
    ///
    /// - Parameters:
    ///   - url: The URL of the file. It is first accessed by ``layout()``.
    ///   - name: The name of the field.
    ///   - filename: The filename to send. Defaults to the last component of the path.
    ///   - contentType: The media type. Defaults to the type of the extension or the first bytes.
    ///   - metadata: The metadata to remove from a picture or video. Defaults to its location and owner.
    public mutating func append(
        fileAt url: URL, named name: String, filename: String? = nil, contentType: MediaType? = nil,
        metadata: MetadataPolicy = .picturesWithoutLocation
    ) {
        append(.file(at: url, named: name, filename: filename, contentType: contentType, metadata: metadata))
    }

    /// Appends several files under one name, as in RFC 7578 §4.3.
    ///
    /// - Parameters:
    ///   - urls: The URLs of the files.
    ///   - name: The name of the field, the same for every file.
    ///   - metadata: The metadata to remove from pictures and videos. Defaults to their locations and owners.
    public mutating func append(
        filesAt urls: [URL], named name: String, metadata: MetadataPolicy = .picturesWithoutLocation
    ) {
        for url in urls { append(fileAt: url, named: name, metadata: metadata) }
    }

    /// Appends bytes that are produced while they are sent.
    ///
    /// - Parameters:
    ///   - stream: The content.
    ///   - name: The name of the field.
    ///   - filename: The name of the file. Most receivers read a part without a filename as a text field.
    ///   - contentType: The media type. Defaults to the type of the filename extension.
    public mutating func append(
        _ stream: FormStream, named name: String, filename: String?, contentType: MediaType? = nil
    ) {
        append(FormPart(name: name, filename: filename, contentType: contentType, content: .stream(stream)))
    }
}

/// The handling of line breaks in a form's texts and names.
public enum LineBreaks: Sendable, Hashable {
    /// Line breaks are sent unchanged.
    case asGiven
    /// Every line break becomes CRLF, as in browsers that send a `textarea` (HTML, "constructing the entry list" and
    /// "multipart/form-data encoding algorithm"). Filenames and files are sent unchanged.
    case normalized

    package func applied(to text: String) -> String {
        switch self {
        case .asGiven: text
        case .normalized: String(decoding: Self.normalized(text.utf8), as: UTF8.self)
        }
    }

    /// The text with its line breaks converted, in any encoding that extends ASCII.
    package func applied(to text: [UInt8]) -> [UInt8] {
        switch self {
        case .asGiven: text
        case .normalized: Self.normalized(text)
        }
    }

    private static func normalized(_ text: some Collection<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        var follows: UInt8?
        for byte in text {
            switch (follows, byte) {
            case (.carriageReturn, .lineFeed): break
            case (_, .carriageReturn), (_, .lineFeed): result += [.carriageReturn, .lineFeed]
            default: result.append(byte)
            }
            follows = byte
        }
        return result
    }
}
