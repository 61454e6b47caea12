import HTTPTypes
import PostcardForm

/// One `-F` of the command line, in the grammar of `curl -F`.
///
/// It departs from curl where curl would lose something: a text keeps the blanks around it and whatever follows a
/// semicolon but `type=`, `filename=` and `headers=`, and a path may hold a comma.
struct FormArgument {
    /// What stands behind the equals sign.
    enum Source: Equatable {
        case text(String)
        /// A file, streamed; `-` is standard input.
        case file(path: String)
        /// A text field whose value is a file's text; `-` is standard input.
        case textOfFile(path: String)
    }

    let name: String
    let source: Source
    private(set) var contentType: MediaType?
    private(set) var filename: String?
    private(set) var headerFields = HTTPFields()

    /// Why an argument cannot be understood.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    init(_ argument: String) throws {
        // Bytes, because a character may be made of the equals sign and what follows it.
        let bytes = Array(argument.utf8)
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), equals > 0 else {
            throw Fault(description: "'\(argument)' is not written as name=value, name=@file or name=<file.")
        }
        name = String(decoding: bytes[..<equals], as: UTF8.self)
        let value = bytes[(equals + 1)...]
        var scanner = FormArgumentScanner(value)
        switch value.first {
        case UInt8(ascii: "@"):
            scanner = FormArgumentScanner(value.dropFirst())
            source = .file(path: scanner.word())
        case UInt8(ascii: "<"):
            scanner = FormArgumentScanner(value.dropFirst())
            source = .textOfFile(path: scanner.word())
        default:
            source = .text(scanner.word())
        }
        while let (attribute, value) = try scanner.nextAttribute() { try take(attribute, value) }
        switch source {
        case .file(""), .textOfFile(""): throw Fault(description: "'\(argument)' names no file.")
        default: break
        }
    }

    private mutating func take(_ attribute: FormArgumentScanner.Attribute, _ value: String) throws {
        switch attribute {
        case .type: contentType = try MediaType(value)
        case .filename: filename = value
        case .headers: headerFields.append(try HeaderArgument(value).field)
        case .encoder: throw Fault(description: "encoder= is not supported: RFC 7578 §4.7 retired such encodings.")
        }
    }
}
