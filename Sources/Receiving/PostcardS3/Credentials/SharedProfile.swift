/// A profile of the files that the AWS command line shares with other programs.
struct SharedProfile: Sendable {
    /// The settings of the profile, those of the credentials file first.
    let settings: [String: String]

    init?(_ name: String, credentialsFile: String?, configFile: String?) {
        let first = credentialsFile.flatMap { Self.sections($0)[name] }
        let sections = configFile.map(Self.sections)
        var second = sections?["profile \(name)"]
        if name == "default" { second = sections?["default"] ?? second }
        guard first != nil || second != nil else { return nil }
        settings = (first ?? [:]).merging(second ?? [:]) { first, _ in first }
    }

    /// Reads a file: sections in brackets, below each its settings. Indented lines belong to a nested setting, which
    /// none of those here is.
    static func sections(_ text: String) -> [String: [String: String]] {
        var sections: [String: [String: String]] = [:]
        var section: String?
        for line in text.split(whereSeparator: \.isNewline) {
            let trimmed = trim(line)
            guard let first = trimmed.first, first != "#", first != ";" else { continue }
            if first == "[" {
                // A comment may follow the bracket.
                guard let end = trimmed.firstIndex(of: "]") else { continue }
                let words = trimmed[..<end].dropFirst().split(whereSeparator: \.isWhitespace)
                section = words.joined(separator: " ").replacing("\"", with: "")
                if let section { sections[section] = sections[section] ?? [:] }
            } else if let section, let equals = trimmed.firstIndex(of: "="), line.first?.isWhitespace != true {
                var value = trim(trimmed[trimmed.index(after: equals)...])
                if let comment = value.firstRange(of: " #") { value = trim(value[..<comment.lowerBound]) }
                sections[section]?[trim(trimmed[..<equals]).lowercased()] = String(value)
            }
        }
        return sections
    }

    private static func trim(_ text: Substring) -> Substring {
        var text = text
        while text.first?.isWhitespace == true { text.removeFirst() }
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }
}
