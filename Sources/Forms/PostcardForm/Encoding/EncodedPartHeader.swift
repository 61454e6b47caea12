package import HTTPTypes
package import PostcardFoundation

/// The bytes before a part's content: the delimiter's line, the header fields and the blank line.
///
/// Order and spelling follow WHATWG's multipart/form-data encoding algorithm, except for backslashes in names.
package struct EncodedPartHeader {
    /// The bytes so far. Unlike `Data`, an array is fast for few bytes.
    private var text: [UInt8] = []

    var bytes: Data { Data(text) }

    /// Writes the header of a part. The delimiter of the first part has no line break before it.
    init(of part: FormPart, contentType: MediaType?, boundary: Boundary, isFirst: Bool) {
        // Enough for most headers, so that the array rarely grows.
        text.reserveCapacity(256)
        append(isFirst ? "--" : "\r\n--")
        append(boundary.value)
        append("\r\n")
        if let lines = part.headerLines {
            text.append(contentsOf: lines)
        } else {
            appendDisposition("form-data", name: part.name.utf8, filename: part.filename?.utf8)
            appendFields(contentType, part.headerFields)
        }
        append("\r\n")
    }

    /// Writes the lines of a header in ways that browsers cannot: with any `Content-Disposition` or none, and with a
    /// name and a filename in any encoding.
    package static func lines(
        disposition: String?, name: [UInt8]?, filename: [UInt8]?, contentType: MediaType?, headerFields: HTTPFields
    ) -> Data {
        var header = EncodedPartHeader()
        if let disposition { header.appendDisposition(disposition, name: name, filename: filename) }
        header.appendFields(contentType, headerFields)
        return header.bytes
    }

    private init() {}

    private mutating func appendDisposition(
        _ disposition: String, name: (some Sequence<UInt8>)?, filename: (some Sequence<UInt8>)?
    ) {
        append("Content-Disposition: ")
        append(disposition)
        if let name { appendParameter("name", name) }
        if let filename { appendParameter("filename", filename) }
        append("\r\n")
    }

    private mutating func appendParameter(_ parameter: String, _ value: some Sequence<UInt8>) {
        append("; ")
        append(parameter)
        append("=\"")
        appendEscaped(value)
        append("\"")
    }

    private mutating func appendFields(_ contentType: MediaType?, _ fields: HTTPFields) {
        if let contentType {
            append("Content-Type: ")
            append(contentType.value)
            append("\r\n")
        }
        for field in fields {
            append(field.name.rawName)
            append(": ")
            append(field.value)
            append("\r\n")
        }
    }

    private mutating func append(_ text: String) {
        self.text.append(contentsOf: text.utf8)
    }

    /// Appends a name with escapes: quotes and line breaks as in WHATWG's algorithm, backslashes as in a quoted string
    /// (RFC 9110 §5.6.4). WHATWG leaves backslashes unescaped, so a final backslash escapes the closing quote, and Go,
    /// Werkzeug, busboy and PHP lose the part or misread its name. All four decode `\\` correctly.
    private mutating func appendEscaped(_ text: some Sequence<UInt8>) {
        for byte in text {
            switch byte {
            case .quote: append("%22")
            case .carriageReturn: append("%0D")
            case .lineFeed: append("%0A")
            case .backslash: append(#"\\"#)
            default: self.text.append(byte)
            }
        }
    }
}
