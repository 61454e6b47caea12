import Foundation

/// The string catalog of a module, read from its sources.
package struct StringCatalog {
    private struct File: Decodable {
        struct Entry: Decodable {
            struct Localization: Decodable {
                struct Unit: Decodable {
                    let state: String
                    let value: String
                }
                let stringUnit: Unit
            }
            let localizations: [String: Localization]
        }
        let sourceLanguage: String
        let strings: [String: Entry]
    }

    private let file: File

    /// - Parameter module: The module's name, such as `PostcardClient`.
    package init(of module: String) throws {
        let url = Repository.sources(of: module).appending(path: "Resources/Localizable.xcstrings")
        file = try JSONDecoder().decode(File.self, from: Data(contentsOf: url))
    }

    package var sourceLanguage: String { file.sourceLanguage }

    package var keys: [String] { file.strings.keys.sorted() }

    package func text(_ key: String, in language: String = "en") -> String? {
        file.strings[key]?.localizations[language]?.stringUnit.value
    }

    /// The words of the codes that a file of a module declares.
    package static func codes(in file: String, of module: String) throws -> [String] {
        try String(contentsOf: Repository.sources(of: module).appending(path: file), encoding: .utf8)
            .matches(of: /static let \w+ = (?:\w+\.)?Code\(rawValue: "([a-z-]+)"\)/).map { String($0.output.1) }
    }

    /// What is wrong with a text: each is a sentence in English and one in Korean, with the same placeholders.
    package func mistakes(in key: String) -> [String] {
        guard let entry = file.strings[key] else { return ["\(key) is missing"] }
        let languages = entry.localizations.keys.sorted()
        guard languages == ["en", "ko"], let english = text(key), let korean = text(key, in: "ko") else {
            return ["\(key) is in \(languages)"]
        }
        var mistakes: [String] = []
        if !entry.localizations.values.allSatisfy({ $0.stringUnit.state == "translated" }) {
            mistakes.append("\(key) is not translated")
        }
        if placeholders(english) != placeholders(korean) { mistakes.append("\(key) has different placeholders") }
        if !korean.contains(where: { ("가"..."힣").contains($0) }) { mistakes.append("\(key) is not in Korean") }
        // What follows a colon is the server's own sentence.
        for text in [english, korean] where !text.hasSuffix("@") && !text.hasSuffix(".") {
            mistakes.append("\(key) has no full stop: \(text)")
        }
        return mistakes
    }

    private func placeholders(_ text: String) -> [String] {
        text.matches(of: /%\d\$@/).map { String($0.output) }.sorted()
    }
}
