import HTTPTypes
import PostcardForm

/// A `-F` or `--form-string` on the command line, in curl's syntax.
///
/// The syntax differs where curl would lose data. A text keeps surrounding blanks, and everything after a semicolon
/// except `type=`, `filename=`, `headers=` and `encoder=`. After a file, a final semicolon is ignored.
struct FormArgument {
    /// The field's name; `nil` if the text before the equals sign is empty.
    let name: ArgumentText?
    let content: Content
    /// The whole argument as it was given.
    let text: ArgumentText
    /// Whether the value is plain text without any syntax.
    let isLiteral: Bool

    enum Content {
        /// One part with the argument's name, or one such part for each file.
        case parts([Part])
        /// `(`, which begins a nested multipart with the following arguments.
        case groupStart(MediaType?, Headers)
        /// `)`, which ends a nested multipart.
        case groupEnd
    }

    /// A part of the form: the source of its bytes, and its attributes.
    struct Part {
        let source: Source
        var contentType: MediaType?
        var filename: ArgumentText?
        var headers = Headers()
        var encoding: ContentEncoding?
    }

    /// The source of a part's bytes.
    enum Source: Equatable {
        case text(ArgumentText)
        /// A file, which is streamed; `-` is standard input.
        case file(path: ArgumentText)
        /// A text field whose text is read from a file; `-` is standard input.
        case textOfFile(path: ArgumentText)
    }

    /// The header fields of a part.
    struct Headers {
        var fields = HTTPFields()
        /// Files with further header fields, one per line.
        var files: [ArgumentText] = []
    }

    /// The reason why an argument is invalid.
    struct SyntaxError: Error, CustomStringConvertible {
        let description: String
    }

    /// The parts in the argument; empty if it has none.
    var parts: [Part] {
        if case .parts(let parts) = content { parts } else { [] }
    }

    init(_ value: RawValue) throws {
        // The search is in bytes, because an equals sign and the next code point may be one character.
        let bytes = value.text.bytes
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")) else {
            throw SyntaxError(description: "'\(value.text)' is not written as name=value, name=@file or name=<file.")
        }
        let name = equals > 0 ? ArgumentText(bytes[..<equals]) : nil
        self.name = name
        text = value.text
        isLiteral = value.isLiteral
        content =
            isLiteral
            ? .parts([Part(source: .text(ArgumentText(bytes[(equals + 1)...])))])
            : try Self.content(bytes[(equals + 1)...], hasName: name != nil, in: value.text)
    }

    init(_ argument: String) throws {
        try self.init(RawValue(argument.utf8))
    }

    private static func content(
        _ value: ArraySlice<UInt8>, hasName: Bool, in argument: ArgumentText
    ) throws -> Content {
        if !hasName, value.elementsEqual(")".utf8) { return .groupEnd }
        var scanner = FormArgumentScanner(value.dropFirst())
        switch value.first {
        case UInt8(ascii: "@"):
            scanner.skipsEmptyAttributes = true
            var files: [Part] = []
            repeat {
                let file = Part(source: .file(path: scanner.word(before: UInt8(ascii: ","))))
                files.append(try part(file, &scanner, before: UInt8(ascii: ","), in: argument))
            } while scanner.skip(UInt8(ascii: ","))
            return .parts(files)
        case UInt8(ascii: "<"):
            scanner.skipsEmptyAttributes = true
            return .parts([try part(Part(source: .textOfFile(path: scanner.word())), &scanner, in: argument)])
        case UInt8(ascii: "(") where scanner.isAtAttribute:
            let group = try part(Part(source: .text("")), &scanner, in: argument)
            guard group.filename == nil, group.encoding == nil else {
                throw SyntaxError(description: "'\(argument)' begins a multipart, which has only ;type= and ;headers=.")
            }
            return .groupStart(group.contentType, group.headers)
        default:
            scanner = FormArgumentScanner(value)
            return .parts([try part(Part(source: .text(scanner.word())), &scanner, in: argument)])
        }
    }

    /// Adds the attributes after a word to its part.
    private static func part(
        _ part: Part, _ scanner: inout FormArgumentScanner, before end: UInt8? = nil, in argument: ArgumentText
    ) throws -> Part {
        if part.source == .file(path: "") || part.source == .textOfFile(path: "") {
            throw SyntaxError(description: "'\(argument)' names no file.")
        }
        var part = part
        while let (attribute, value, isFile) = try scanner.nextAttribute(before: end) {
            switch attribute {
            case .type: part.contentType = try MediaType(value.description)
            case .filename: part.filename = value
            case .headers:
                if isFile {
                    part.headers.files.append(value)
                } else {
                    guard let text = value.text else {
                        throw SyntaxError(description: "'\(value)' is not UTF-8, which header fields must be.")
                    }
                    part.headers.fields.append(try HeaderArgument(text).field)
                }
            case .encoder:
                guard let encoding = ContentEncoding(rawValue: value.description.lowercased()) else {
                    let known = ContentEncoding.allCases.map(\.rawValue).joined(separator: ", ")
                    throw SyntaxError(description: "'\(value)' is not an encoder. Write one of \(known).")
                }
                part.encoding = encoding
            }
        }
        return part
    }
}

/// Parses the value of a `-F`, after the equals sign: words, and attributes such as `;type=image/png`.
struct FormArgumentScanner {
    /// An attribute after a word. Its case is ignored, and blanks are allowed around its semicolon.
    enum Attribute: String, CaseIterable {
        case type, filename, headers, encoder
    }

    private var rest: ArraySlice<UInt8>
    /// Whether a semicolon without an attribute is ignored, as after a file. Otherwise it belongs to the text.
    var skipsEmptyAttributes = false

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    /// Whether an attribute is next, or only blanks.
    var isAtAttribute: Bool { rest.allSatisfy(\.isBlank) || attribute(at: rest.startIndex) != nil }

    mutating func skip(_ byte: UInt8) -> Bool {
        guard rest.first == byte else { return false }
        rest.removeFirst()
        return true
    }

    /// The next word: a word in quotes, or everything before the next attribute or the byte `end`.
    mutating func word(before end: UInt8? = nil) -> ArgumentText {
        if end != nil { rest = rest.drop(while: \.isBlank) }
        if let quoted = quotedWord(before: end) { return quoted }
        let stop = endOfWord(before: end)
        var word = rest[..<stop]
        // Blanks before an attribute belong to it; blanks at the end of a text belong to the text.
        if stop < rest.endIndex || end != nil {
            word = word[..<(word.lastIndex { !$0.isBlank }.map { $0 + 1 } ?? word.startIndex)]
        }
        rest = rest[stop...]
        return ArgumentText(word)
    }

    /// The index at which a word without quotes ends.
    private func endOfWord(before end: UInt8?) -> Int {
        var index = rest.startIndex
        while index < rest.endIndex {
            if rest[index] == end || attribute(at: index) != nil { return index }
            let isBlank = rest[index].isBlank
            index += 1
            // Only the first of several blanks is checked for an attribute: checking all would take quadratic time.
            if isBlank { index = rest[index...].firstIndex { !$0.isBlank } ?? rest.endIndex }
        }
        return rest.endIndex
    }

    /// The next attribute and its value; `nil` at the end, or at the byte `end`. If `isFile` is `true`, the value is
    /// the name of a file with the actual value.
    mutating func nextAttribute(
        before end: UInt8? = nil
    ) throws -> (Attribute, value: ArgumentText, isFile: Bool)? {
        var found: Attribute?
        while found == nil {
            guard !rest.isEmpty, rest.first != end else { return nil }
            guard let (attribute, start) = attribute(at: rest.startIndex) else {
                throw FormArgument.SyntaxError(
                    description: "'\(ArgumentText(rest))' is not understood; expected ;type=, ;filename=, ;headers= or "
                        + ";encoder=.")
            }
            rest = rest[start...].drop(while: \.isBlank)
            found = attribute
        }
        guard let attribute = found else { return nil }
        skipsEmptyAttributes = true
        let isFile =
            attribute == .headers && (rest.first == UInt8(ascii: "@") || rest.first == UInt8(ascii: "<"))
        if isFile { rest = rest.dropFirst().drop(while: \.isBlank) }
        return (attribute, word(before: end), isFile)
    }

    /// The attribute at an index, after blanks, and the index of its value. The attribute is `nil` if none follows the
    /// semicolon; the result is `nil` if there is no semicolon.
    private func attribute(at index: Int) -> (Attribute?, end: Int)? {
        let start = rest[index...].drop(while: \.isBlank)
        guard start.first == UInt8(ascii: ";") else { return nil }
        let name = start.dropFirst().drop(while: \.isBlank)
        for attribute in Attribute.allCases {
            let expected = "\(attribute.rawValue)=".utf8
            if name.prefix(expected.count).elementsEqual(expected, by: { $0 | 0x20 == $1 | 0x20 }) {
                return (attribute, name.startIndex + expected.count)
            }
        }
        let isEmpty = name.first.map { ",;".utf8.contains($0) } ?? true
        return skipsEmptyAttributes && isEmpty ? (nil, name.startIndex) : nil
    }

    /// A word in quotes with `\"` and `\\` unescaped; `nil` if other text follows the quotes, as in `"yes" he said`.
    private mutating func quotedWord(before end: UInt8?) -> ArgumentText? {
        guard rest.first == UInt8(ascii: "\"") else { return nil }
        var word: [UInt8] = []
        var index = rest.startIndex + 1
        while index < rest.endIndex {
            let byte = rest[index]
            index += 1
            if byte == UInt8(ascii: "\"") {
                let blanks = rest[index...].prefix(while: \.isBlank)
                let isAtEnd = blanks.endIndex == rest.endIndex || rest[blanks.endIndex] == end
                guard isAtEnd || attribute(at: index) != nil else { return nil }
                rest = rest[(isAtEnd ? blanks.endIndex : index)...]
                return ArgumentText(word)
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

/// A `-H` on the command line: `Name: value`, or `Name;` for a field with an empty value, as in curl.
struct HeaderArgument {
    let field: HTTPField
    /// Whether the colon has no value after it, so that curl sends no such field.
    let isRemoval: Bool

    /// The reason why an argument is invalid.
    struct SyntaxError: Error, CustomStringConvertible {
        let description: String
    }

    init(_ argument: String) throws {
        let isEmpty = !argument.contains(":") && argument.hasSuffix(";")
        guard let colon = argument.firstIndex(of: isEmpty ? ";" : ":"),
            let name = HTTPField.Name(String(argument[..<colon]))
        else {
            throw SyntaxError(description: "'\(argument)' is not written as Name: value.")
        }
        let value = argument[argument.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        isRemoval = !isEmpty && value.isEmpty
        guard HTTPField.isValidValue(String(value)) else {
            throw SyntaxError(description: "The value of the header field \(name) holds a control character.")
        }
        field = HTTPField(name: name, value: String(value))
    }
}
