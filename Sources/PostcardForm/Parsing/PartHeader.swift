/// The header of a part that was received.
public struct PartHeader: Sendable {
    /// The part's place in the form, from 0.
    public let index: Int

    /// Where the header begins, counted from the start of the body.
    public let offset: Int64

    /// The name of the form's field, as its sender meant it: `%22`, `%0D` and `%0A` undone as WHATWG's parser
    /// does, and `\"` and `\\` as RFC 9110 §5.6.4 has them. Bytes that are not UTF-8 are U+FFFD.
    public let name: String

    /// The name of the file without any path that came before it; `nil` where the part is a text field. It is
    /// data from a stranger: never use it as a path.
    public let filename: String?

    /// The media type, as it stands in the header; `nil` where there is none.
    public let contentType: String?

    /// What other receivers may read otherwise.
    public let warnings: [FormProblem]

    private let headerFields: [HeaderField]

    /// The charset that the Content-Type names.
    var charset: String? {
        guard let contentType, let parameters = try? HeaderParameters(Array(contentType.utf8)[...]) else { return nil }
        return parameters["charset"].map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// Whether the part is a file: it has a filename, be it empty.
    public var isFile: Bool { filename != nil }

    /// The header fields as they came, a folded line's breaks as spaces (RFC 9112 §5.2).
    public var fields: [(name: String, value: String)] {
        headerFields.map { ($0.name, String(decoding: $0.value, as: UTF8.self)) }
    }

    /// Reads a complete header.
    ///
    /// - Parameter fieldName: The name that the part has from the one that it is nested in.
    /// - Throws: ``FormProblem`` where it is malformed, or where two receivers could read it differently.
    init(_ block: HeaderBlock, index: Int, fieldName: String? = nil) throws(FormProblem) {
        self.index = index
        offset = block.offset
        headerFields = try HeaderField.all(in: block, partIndex: index)
        var disposition: ContentDisposition?
        var contentType: String?
        var warnings: [FormProblem] = []
        for field in headerFields {
            let place = block.offset + Int64(field.start)
            switch field.name.lowercased() {
            case "content-disposition":
                guard disposition == nil else { throw .duplicateContentDisposition(at: place, part: index) }
                disposition = try ContentDisposition(
                    field, headerOffset: block.offset, partIndex: index, fieldName: fieldName)
            case "content-type":
                if contentType == nil {
                    contentType = String(decoding: field.value, as: UTF8.self)
                } else {
                    warnings.append(.duplicatePartContentType(at: place, part: index))
                }
            case "content-transfer-encoding":
                warnings.append(.contentTransferEncoding(at: place, part: index))
            default:
                break
            }
        }
        guard let disposition else { throw .missingContentDisposition(at: block.offset, part: index) }
        name = disposition.name
        filename = disposition.filename
        self.contentType = contentType
        self.warnings = disposition.warnings + warnings
    }
}
