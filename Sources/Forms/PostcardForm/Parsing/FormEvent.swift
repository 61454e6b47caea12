import PostcardFoundation

/// An event that the parser found in the body.
public enum FormEvent: Sendable {
    /// A part begins, and its header is complete.
    case partBegan(PartHeader)
    /// Bytes of the part's content, at least one.
    case bytes(FormBytes)
    /// The part's content is complete, because the delimiter after it was read.
    case partEnded
}

/// Borrowed bytes of a part's content, as a range.
public enum FormBytes: Sendable, Hashable {
    /// A range of the current chunk.
    case chunk(Range<Int>)
    /// A range of ``FormParser/heldBytes``: bytes of earlier chunks that turned out not to begin a delimiter.
    case held(Range<Int>)

    /// The number of bytes in the range.
    public var count: Int {
        switch self {
        case .chunk(let range), .held(let range): range.count
        }
    }

    /// The range of the first `length` bytes.
    func prefix(_ length: Int) -> FormBytes {
        switch self {
        case .chunk(let range): .chunk(range.prefix(length))
        case .held(let range): .held(range.prefix(length))
        }
    }
}

/// The header of a received part.
public struct PartHeader: Sendable {
    /// The index of the part in the form, from 0.
    public let index: Int

    /// The offset of the header's first byte, counted from the start of the body.
    public let offset: Int64

    /// The name of the form's field, as its sender meant it. Browsers' escapes `%22`, `%0D` and `%0A` are decoded, and
    /// so are `\"` and `\\` (RFC 9110 §5.6.4). A final backslash is a character, as in a browser's `name="a\"`. Bytes
    /// that are not UTF-8 become U+FFFD.
    public let name: String

    /// The name of the file without its path, decoded like ``name``; `nil` if the part is a text field. A path ends at
    /// the last slash or backslash, other than an escaped `\\` or a final backslash. The name is untrusted: never use
    /// it as a path.
    public let filename: String?

    /// The media type, as written in the header; `nil` if there is none.
    public let contentType: String?

    /// Warnings about details that other receivers may read differently.
    public let warnings: [FormProblem]

    /// The complete and well-formed lines of the header, unfolded.
    private let bytes: ContiguousArray<UInt8>

    /// The filename with its path, such as `trip/day1/a.jpg` from an input for folders; `nil` if there is no path. It
    /// is decoded like ``filename``, and untrusted: never use it as a path.
    public var sentFilename: String? {
        guard let filename, let field = field("content-disposition") else { return nil }
        let sent = ContentDisposition.sentFilename(in: field, of: bytes.span)
        return sent.flatMap { $0.utf8.elementsEqual(filename.utf8) ? nil : $0 }
    }

    /// The label of the charset in the Content-Type, as bytes.
    package var charset: [UInt8]? {
        guard contentType != nil, let field = field("content-type"),
            let parameters = try? HeaderParameters(bytes.span, in: field.value).parameters
        else { return nil }
        let charset = parameters.first { bytes.span.holds("charset", in: $0.name) }
        return charset.map { $0.bytes(in: bytes.span) }
    }

    /// The first header field with a name.
    private func field(_ name: StaticString) -> HeaderField? {
        var start = 0
        while let field = try? HeaderField.next(in: bytes.span, at: &start, offset: offset, partIndex: index) {
            if bytes.span.holds(name, in: field.name) { return field }
        }
        return nil
    }

    /// Whether the part contains files in a nested `multipart/mixed` (RFC 7578 §4.3), which ``FormParser`` can read.
    public var holdsFiles: Bool {
        guard !isFile, let contentType else { return false }
        let type = contentType.prefix { $0 != ";" }.lowercased()
        return type.hasPrefix("multipart/mixed") && type.dropFirst(15).allSatisfy { $0 == " " || $0 == "\t" }
    }

    /// Whether the part is a file: it has a filename, which may be empty.
    public var isFile: Bool { filename != nil }

    /// The header fields as received, with folded lines joined by spaces (RFC 9112 §5.2).
    public var fields: [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        var start = 0
        while let field = try? HeaderField.next(in: bytes.span, at: &start, offset: offset, partIndex: index) {
            fields.append((bytes.span.repairedText(in: field.name), bytes.span.repairedText(in: field.value)))
        }
        return fields
    }

    /// Parses a complete header. `fieldName` is the name of the outer part, if this part is in a `multipart/mixed`.
    /// Throws ``FormProblem`` if the header is malformed, or if two receivers could read it differently.
    init(_ block: inout HeaderBlock, index: Int, fieldName: String? = nil) throws(FormProblem) {
        self.index = index
        offset = block.offset
        var warnings = block.hasFoldedLines ? [block.foldedLineWarning(partIndex: index)] : []
        let bytes = block.takeUnfoldedBytes()
        let header = bytes.span
        if !header.isASCII, let excess = CombiningMarks.firstExcess(in: bytes) {
            throw .tooManyCombiningMarks(at: block.offset + Int64(excess), part: index)
        }
        var start = 0
        var disposition: ContentDisposition?
        var contentType: String?
        while let field = try HeaderField.next(in: header, at: &start, offset: block.offset, partIndex: index) {
            let place = block.offset + Int64(field.start)
            if header.holds("content-disposition", in: field.name) {
                guard disposition == nil else {
                    throw FormProblem(
                        .duplicateContentDisposition, at: place, part: index,
                        "A part has a second Content-Disposition.")
                }
                disposition = try ContentDisposition(
                    field, in: header, headerOffset: block.offset, partIndex: index, fieldName: fieldName)
            } else if header.holds("content-type", in: field.name) {
                guard contentType == nil else {
                    throw FormProblem(
                        .duplicatePartContentType, at: place, part: index, "A part has a second Content-Type.")
                }
                contentType = header.repairedText(in: field.value)
            } else if header.holds("content-transfer-encoding", in: field.name) {
                warnings.append(
                    FormProblem(
                        .contentTransferEncoding, at: place, part: index,
                        "A part has a Content-Transfer-Encoding, which was not decoded."))
            }
        }
        guard let disposition else {
            throw FormProblem(
                .missingContentDisposition, at: block.offset, part: index, "A part has no Content-Disposition.")
        }
        name = disposition.name
        filename = disposition.filename
        self.contentType = contentType
        self.bytes = bytes
        self.warnings = warnings.isEmpty ? disposition.warnings : disposition.warnings + warnings
    }
}
