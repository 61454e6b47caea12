import HTTPTypes
import PostcardFoundation

/// The bytes before a part's content: the delimiter's line, the header fields and the blank line.
///
/// Order and spelling follow WHATWG's multipart/form-data encoding algorithm, which every receiver was tested with,
/// except for backslashes in names.
struct EncodedPartHeader {
    /// An array, because Data is slow for a few bytes.
    private var text: [UInt8] = []

    var bytes: Data { Data(text) }

    /// - Parameters:
    ///   - part: The part.
    ///   - contentType: Its media type, if it has one.
    ///   - boundary: The form's boundary.
    ///   - isFirst: Whether it is the form's first part, which has no line to end before it.
    init(of part: FormPart, contentType: MediaType?, boundary: Boundary, isFirst: Bool) {
        // Enough for most headers, so that the array does not grow with each piece.
        text.reserveCapacity(256)
        append(isFirst ? "--" : "\r\n--")
        append(boundary.value)
        append("\r\n")
        if let lines = part.headerLines {
            text.append(contentsOf: lines)
            append("\r\n")
            return
        }
        append("Content-Disposition: form-data; name=\"")
        appendEscaped(part.name)
        if let filename = part.filename {
            append("\"; filename=\"")
            appendEscaped(filename)
        }
        append("\"\r\n")
        if let contentType {
            append("Content-Type: ")
            append(contentType.value)
            append("\r\n")
        }
        for field in part.headerFields {
            append(field.name.rawName)
            append(": ")
            append(field.value)
            append("\r\n")
        }
        append("\r\n")
    }

    private mutating func append(_ text: String) {
        self.text.append(contentsOf: text.utf8)
    }

    /// Escapes the three characters that WHATWG's algorithm escapes, as it does, and the backslash as a quoted string
    /// has it (RFC 9110 §5.6.4). WHATWG leaves the backslash as it is, and so a name that ends in one swallows its
    /// closing quote: Go, Werkzeug, busboy and PHP then lose the part or read another name. They undo `\\`.
    private mutating func appendEscaped(_ text: String) {
        for byte in text.utf8 {
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
