import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The bytes that stand before a part's content: the delimiter's line, the header fields, the blank line.
///
/// The order and the spelling are those of WHATWG's multipart/form-data encoding algorithm, which is what
/// every receiver has been tested with, but for backslashes in names.
struct PartHead {
    /// In a place of their own, because Data takes long over few bytes.
    private var text: [UInt8] = []

    var bytes: Data { Data(text) }

    /// - Parameters:
    ///   - part: The part.
    ///   - contentType: Its media type, where it has one.
    ///   - boundary: The form's boundary.
    ///   - isFirst: Whether it is the form's first part, before which no line has to be ended.
    init(of part: FormPart, contentType: MediaType?, boundary: Boundary, isFirst: Bool) {
        appendDelimiter(boundary, isFirst: isFirst)
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
        append(part.headerFields)
    }

    /// - Parameters:
    ///   - headerFields: The part's header fields, written as they are.
    ///   - boundary: The document's boundary.
    ///   - isFirst: Whether it is the first part, before which no line has to be ended.
    init(of headerFields: HTTPFields, boundary: Boundary, isFirst: Bool) {
        appendDelimiter(boundary, isFirst: isFirst)
        append(headerFields)
    }

    private mutating func appendDelimiter(_ boundary: Boundary, isFirst: Bool) {
        append(isFirst ? "--" : "\r\n--")
        append(boundary.value)
        append("\r\n")
    }

    /// Appends header fields and the blank line behind them.
    private mutating func append(_ headerFields: HTTPFields) {
        for field in headerFields {
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
    /// has it (RFC 9110 §5.6.4). WHATWG leaves the backslash as it is, and so a name that ends in one swallows its closing
    /// quote: Go, Werkzeug, busboy and PHP then lose the part or read another name. They undo `\\`.
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
