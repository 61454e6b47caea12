import Foundation
import HTTPTypes
import PostcardForm

/// One `-F` of the command line, in the grammar of `curl -F`.
///
/// Where curl would drop what follows an unknown `;word`, a text keeps it: only `;type=`, `;filename=` and
/// `;headers=` end a text.
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
        guard let equals = argument.firstIndex(of: "="), equals > argument.startIndex else {
            throw Fault(description: "'\(argument)' is not written as name=value, name=@file or name=<file.")
        }
        name = String(argument[..<equals])
        let value = argument[argument.index(after: equals)...]
        var scanner: Scanner
        switch value.first {
        case "@":
            scanner = Scanner(value.dropFirst())
            source = .file(path: scanner.word(upTo: Attribute.starts))
        case "<":
            scanner = Scanner(value.dropFirst())
            source = .textOfFile(path: scanner.word(upTo: Attribute.starts))
        default:
            scanner = Scanner(value)
            source = .text(scanner.word(upTo: Attribute.starts))
        }
        while let attribute = try scanner.next() {
            try take(attribute.0, attribute.value)
        }
        if case .file(let path) = source, path.isEmpty { throw Fault(description: "'\(argument)' names no file.") }
        if case .textOfFile(let path) = source, path.isEmpty {
            throw Fault(description: "'\(argument)' names no file.")
        }
    }

    private mutating func take(_ attribute: Attribute, _ value: String) throws {
        switch attribute {
        case .type:
            contentType = try MediaType(value)
        case .filename:
            filename = value
        case .headers:
            headerFields.append(try HeaderArgument(value).field)
        }
    }

    /// What may follow a value.
    private enum Attribute: String, CaseIterable {
        case type, filename, headers

        /// What begins each of them.
        static let starts = allCases.map { ";\($0.rawValue)=" }
    }
}

extension FormArgument {
    /// Reads words that may stand in quotes.
    private struct Scanner {
        private var rest: Substring

        init(_ text: Substring) {
            rest = text
        }

        /// The next attribute; `nil` at the end.
        mutating func next() throws -> (Attribute, value: String)? {
            guard !rest.isEmpty else { return nil }
            for attribute in Attribute.allCases {
                let start = ";\(attribute.rawValue)="
                guard rest.hasPrefix(start) else { continue }
                rest.removeFirst(start.count)
                return (attribute, word(upTo: Attribute.starts))
            }
            throw Fault(description: "'\(rest)' follows a closing quote; expected ;type=, ;filename= or ;headers=.")
        }

        /// A word in quotes, or what comes before the first of the ends.
        mutating func word(upTo ends: [String]) -> String {
            if let quoted = quotedWord(before: ends) { return quoted }
            var index = rest.startIndex
            while index < rest.endIndex, !ends.contains(where: rest[index...].hasPrefix) {
                index = rest.index(after: index)
            }
            defer { rest = rest[index...] }
            return String(rest[..<index])
        }

        /// A word in quotes, `\"` and `\\` undone, where nothing but one of the ends follows; a text such as
        /// `"yes" he said` is no such word.
        private mutating func quotedWord(before ends: [String]) -> String? {
            guard rest.first == "\"" else { return nil }
            var word = ""
            var index = rest.index(after: rest.startIndex)
            while index < rest.endIndex {
                let character = rest[index]
                index = rest.index(after: index)
                if character == "\"" {
                    let following = rest[index...]
                    guard following.isEmpty || ends.contains(where: following.hasPrefix) else { return nil }
                    rest = following
                    return word
                }
                if character == "\\", index < rest.endIndex, rest[index] == "\"" || rest[index] == "\\" {
                    word.append(rest[index])
                    index = rest.index(after: index)
                } else {
                    word.append(character)
                }
            }
            return nil
        }
    }
}
