import Foundation

/// How text on a terminal stands out, where it may.
struct TextStyle {
    /// Whether colours are used.
    let isColored: Bool

    /// What a text is, which decides how it looks.
    enum Role: String {
        case error = "1;31"
        case warning = "1;33"
        case good = "1;32"
        case heading = "1"
        case faint = "2"
        case mend = "32"
    }

    /// For standard output: colours where a person reads it, unless `NO_COLOR` or a simple terminal asks for none.
    static var standardOutput: TextStyle {
        let environment = ProcessInfo.processInfo.environment
        let isAllowed = (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
        return TextStyle(isColored: isAllowed && Terminal.isOutputInteractive)
    }

    /// The text as it is written; it must be printable.
    func callAsFunction(_ text: String, _ role: Role) -> String {
        isColored && !text.isEmpty ? "\u{1B}[\(role.rawValue)m\(text)\u{1B}[0m" : text
    }
}
