import HTTPTypes
import PostcardForm

/// One `-F` of the command line, in the grammar of `curl -F`.
///
/// It differs from curl where curl would lose something: a text keeps the blanks around it, and anything after a
/// semicolon except `type=`, `filename=` and `headers=`. A path may contain a comma.
struct FormArgument {
    /// What follows the equals sign.
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
        // Bytes, because the equals sign and what follows it may form one character.
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

/// Reads what follows the equals sign of a `-F`: a word, and attributes such as `;type=image/png`.
struct FormArgumentScanner {
    /// What may follow a word, ignoring case, with blanks around its semicolon.
    enum Attribute: String, CaseIterable {
        case type, filename, headers, encoder
    }

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    /// A word in quotes, or what comes before the next attribute.
    mutating func word() -> String {
        if let quoted = quotedWord() { return quoted }
        let end = rest.indices.first { attribute(at: $0) != nil } ?? rest.endIndex
        var word = rest[..<end]
        // Blanks before an attribute belong to it; those at the end of all belong to the word.
        while end < rest.endIndex, word.last?.isBlank == true { word.removeLast() }
        rest = rest[end...]
        return String(decoding: word, as: UTF8.self)
    }

    /// The next attribute; `nil` at the end.
    mutating func nextAttribute() throws -> (Attribute, value: String)? {
        guard !rest.isEmpty else { return nil }
        guard let (attribute, end) = attribute(at: rest.startIndex) else {
            throw FormArgument.Fault(
                description:
                    "'\(String(decoding: rest, as: UTF8.self))' is not understood; expected ;type=, ;filename= or "
                    + ";headers=.")
        }
        rest = rest[end...]
        return (attribute, word())
    }

    /// The attribute that begins at an index, after blanks, and where its value begins.
    private func attribute(at index: Int) -> (Attribute, end: Int)? {
        let start = rest[index...].drop(while: \.isBlank)
        guard start.first == UInt8(ascii: ";") else { return nil }
        let name = start.dropFirst().drop(while: \.isBlank)
        for attribute in Attribute.allCases {
            let expected = "\(attribute.rawValue)=".utf8
            if name.prefix(expected.count).elementsEqual(expected, by: { $0 | 0x20 == $1 | 0x20 }) {
                return (attribute, name.startIndex + expected.count)
            }
        }
        return nil
    }

    /// A word in quotes, with `\"` and `\\` unescaped, if only an attribute follows. A text such as `"yes" he said` is
    /// not such a word.
    private mutating func quotedWord() -> String? {
        guard rest.first == UInt8(ascii: "\"") else { return nil }
        var word: [UInt8] = []
        var index = rest.startIndex + 1
        while index < rest.endIndex {
            let byte = rest[index]
            index += 1
            if byte == UInt8(ascii: "\"") {
                let following = rest[index...]
                guard following.allSatisfy(\.isBlank) || attribute(at: index) != nil else { return nil }
                rest = following.allSatisfy(\.isBlank) ? following[following.endIndex...] : following
                return String(decoding: word, as: UTF8.self)
            }
            let isEscape = byte == UInt8(ascii: "\\") && index < rest.endIndex
            if isEscape, rest[index] == UInt8(ascii: "\"") || rest[index] == UInt8(ascii: "\\") {
                word.append(rest[index])
                index += 1
            } else {
                word.append(byte)
            }
        }
        return nil
    }
}

/// One `-H` of the command line: `Name: value`.
struct HeaderArgument {
    let field: HTTPField

    /// Why an argument cannot be understood.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    init(_ argument: String) throws {
        guard let colon = argument.firstIndex(of: ":"), let name = HTTPField.Name(String(argument[..<colon])) else {
            throw Fault(description: "'\(argument)' is not written as Name: value.")
        }
        let value = argument[argument.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        guard HTTPField.isValidValue(String(value)) else {
            throw Fault(description: "The value of the header field \(name) holds a control character.")
        }
        field = HTTPField(name: name, value: String(value))
    }
}
