package import Foundation
import Testing

/// A body and what a browser reads of it, from `Tests/BrowserForms/parsing.jsonl`.
package struct BrowserReading: Decodable, Sendable {
    package let id: String
    package let description: String
    package let contentType: String
    package let body: Data
    /// What a browser reads; `nil` if it rejects the body.
    package let entries: [Entry]?

    /// An entry of a browser's `FormData`.
    package struct Entry: Decodable, Sendable {
        package let name: String
        package let value: Value

        package enum Value: Sendable {
            case text(String)
            case file(File)
        }

        package init(from decoder: any Decoder) throws {
            var pair = try decoder.unkeyedContainer()
            name = try pair.decode(String.self)
            value =
                if let text = try? pair.decode(String.self) { .text(text) } else { .file(try pair.decode(File.self)) }
        }
    }

    package struct File: Decodable, Sendable {
        package let filename: String
        /// The media type as a browser has it; `nil` if the test does not look at it.
        package let type: String?
        package let bytes: Data

        private enum CodingKeys: String, CodingKey {
            case filename, type
            case bytes = "body_b64"
        }
    }

    private enum CodingKeys: String, CodingKey {
        case id, description, contentType, entries
        case body = "body_b64"
    }

    /// All cases, in the order of the file.
    package static func all() throws -> [BrowserReading] { try BrowserForms.lines(of: "parsing.jsonl") }
}

/// A form and the bytes that a browser sends for it, from `Tests/BrowserForms/writing.jsonl`.
package struct BrowserWriting: Decodable, Sendable {
    package let id: String
    package let description: String
    package let entries: [Entry]
    private let bytes: Data

    package struct Entry: Decodable, Sendable {
        package let name: String
        /// The name of a file; `nil` for a text.
        package let filename: String?
        /// The media type of a file; empty if it has none.
        package let type: String?
        package let value: String
    }

    private enum CodingKeys: String, CodingKey {
        case id, description, entries
        case bytes = "expected_b64"
    }

    /// The bytes that a browser sends with a boundary.
    package func bytes(boundary: String) -> [UInt8] {
        Array(bytes).replacing(Array("{B}".utf8), with: Array(boundary.utf8))
    }

    /// All cases, in the order of the file.
    package static func all() throws -> [BrowserWriting] { try BrowserForms.lines(of: "writing.jsonl") }
}

extension BrowserReading: CustomTestStringConvertible {
    package var testDescription: String { "\(id): \(description)" }
}

extension BrowserWriting: CustomTestStringConvertible {
    package var testDescription: String { "\(id): \(description)" }
}

private enum BrowserForms {
    /// The cases in a file, one a line.
    static func lines<Case: Decodable>(of filename: String) throws -> [Case] {
        let folder = Repository.url("Tests/BrowserForms")
        let text = try Data(contentsOf: folder.appending(path: filename))
        return try text.split(separator: UInt8(ascii: "\n")).map { try JSONDecoder().decode(Case.self, from: $0) }
    }
}
