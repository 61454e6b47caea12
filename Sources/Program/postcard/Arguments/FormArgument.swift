import HTTPTypes
import PostcardForm

/// One `-F` or `--form-string` of the command line, in the grammar of `curl`.
///
/// It differs from curl where curl would lose something: a text keeps the blanks around it, and anything after a
/// semicolon except `type=`, `filename=`, `headers=` and `encoder=`. Behind a file, a semicolon alone is nothing.
struct FormArgument {
    /// The field's name; `nil` if there is nothing before the equals sign.
    let name: ArgumentText?
    let content: Content
    /// The argument as it was given.
    let text: ArgumentText
    /// Whether nothing in the value has a meaning.
    let isLiteral: Bool

    /// What an argument stands for.
    enum Content {
        /// Parts with the argument's name: one, or several files.
        case parts([Part])
        /// `(`: the following arguments are parts of a multipart of its own.
        case groupStart(MediaType?, Headers)
        /// `)`: the end of that multipart.
        case groupEnd
    }

    /// A part of the form: the source of its bytes, and what describes them.
    struct Part {
        let source: Source
        var contentType: MediaType?
        var filename: ArgumentText?
        var headers = Headers()
        var encoding: ContentEncoding?
    }

    /// A source of bytes.
    enum Source: Equatable {
        case text(ArgumentText)
        /// A file, streamed; `-` is standard input.
        case file(path: ArgumentText)
        /// A text field whose value is a file's content; `-` is standard input.
        case textOfFile(path: ArgumentText)
    }

    /// The header fields of a part.
    struct Headers {
        var fields = HTTPFields()
        /// Files that have one field a line.
        var files: [ArgumentText] = []
    }

    /// Why an argument cannot be understood.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    /// The parts, if the argument has any.
    var parts: [Part] {
        if case .parts(let parts) = content { parts } else { [] }
    }

    init(_ value: RawValue) throws {
        // Bytes, because the equals sign and what follows it may form one character.
        let bytes = value.text.bytes
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")) else {
            throw Fault(description: "'\(value.text)' is not written as name=value, name=@file or name=<file.")
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
                throw Fault(description: "'\(argument)' begins a multipart, which has only ;type= and ;headers=.")
            }
            return .groupStart(group.contentType, group.headers)
        default:
            scanner = FormArgumentScanner(value)
            return .parts([try part(Part(source: .text(scanner.word())), &scanner, in: argument)])
        }
    }

    /// The part with the attributes that follow it.
    private static func part(
        _ part: Part, _ scanner: inout FormArgumentScanner, before end: UInt8? = nil, in argument: ArgumentText
    ) throws -> Part {
        if part.source == .file(path: "") || part.source == .textOfFile(path: "") {
            throw Fault(description: "'\(argument)' names no file.")
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
                        throw Fault(description: "'\(value)' is not UTF-8, which header fields must be.")
                    }
                    part.headers.fields.append(try HeaderArgument(text).field)
                }
            case .encoder:
                guard let encoding = ContentEncoding(rawValue: value.description.lowercased()) else {
                    let known = ContentEncoding.allCases.map(\.rawValue).joined(separator: ", ")
                    throw Fault(description: "'\(value)' is not an encoder. Write one of \(known).")
                }
                part.encoding = encoding
            }
        }
        return part
    }
}

/// Reads what follows the equals sign of a `-F`: words, and attributes such as `;type=image/png`.
struct FormArgumentScanner {
    /// What may follow a word, ignoring case, with blanks around its semicolon.
    enum Attribute: String, CaseIterable {
        case type, filename, headers, encoder
    }

    private var rest: ArraySlice<UInt8>
    /// Whether a semicolon that nothing follows is ignored, as behind a file. In a text it is a character.
    var skipsEmptyAttributes = false

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    /// Whether an attribute or nothing is next.
    var isAtAttribute: Bool { rest.allSatisfy(\.isBlank) || attribute(at: rest.startIndex) != nil }

    /// Moves over a byte if it is next.
    mutating func skip(_ byte: UInt8) -> Bool {
        guard rest.first == byte else { return false }
        rest.removeFirst()
        return true
    }

    /// A word in quotes, or what comes before the next attribute.
    ///
    /// - Parameter end: A byte that also ends the word.
    mutating func word(before end: UInt8? = nil) -> ArgumentText {
        if end != nil { rest = rest.drop(while: \.isBlank) }
        if let quoted = quotedWord(before: end) { return quoted }
        let stop = endOfWord(before: end)
        var word = rest[..<stop]
        // Blanks before an attribute belong to it; those at the end of a text belong to the text.
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
            // An attribute is found from the first of the blanks before it. Looking from each of them would take a time
            // that grows with the square of their number.
            if isBlank { index = rest[index...].firstIndex { !$0.isBlank } ?? rest.endIndex }
        }
        return rest.endIndex
    }

    /// The next attribute, and whether its value names a file that holds it; `nil` at the end.
    ///
    /// - Parameter end: A byte that ends the attributes.
    mutating func nextAttribute(
        before end: UInt8? = nil
    ) throws -> (Attribute, value: ArgumentText, isFile: Bool)? {
        var found: Attribute?
        while found == nil {
            guard !rest.isEmpty, rest.first != end else { return nil }
            guard let (attribute, start) = attribute(at: rest.startIndex) else {
                throw FormArgument.Fault(
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

    /// The attribute that begins at an index, after blanks, and where its value begins; `nil` for an empty one.
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

    /// A word in quotes, with `\"` and `\\` unescaped, if only an attribute or the end follows. A text such as
    /// `"yes" he said` is not such a word.
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

/// One `-H` of the command line: `Name: value`, or `Name;` for an empty one, as in curl.
struct HeaderArgument {
    let field: HTTPField
    /// Whether nothing follows the colon: curl then sends no such field.
    let isRemoval: Bool

    /// Why an argument cannot be understood.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    init(_ argument: String) throws {
        let isEmpty = !argument.contains(":") && argument.hasSuffix(";")
        guard let colon = argument.firstIndex(of: isEmpty ? ";" : ":"),
            let name = HTTPField.Name(String(argument[..<colon]))
        else {
            throw Fault(description: "'\(argument)' is not written as Name: value.")
        }
        let value = argument[argument.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        isRemoval = !isEmpty && value.isEmpty
        guard HTTPField.isValidValue(String(value)) else {
            throw Fault(description: "The value of the header field \(name) holds a control character.")
        }
        field = HTTPField(name: name, value: String(value))
    }
}
