import Foundation
import PostcardCLibrary
import PostcardForm
import PostcardServer
import SystemPackage

/// The standard streams. Results go to standard output, and everything else to standard error.
enum Terminal {
    /// Whether standard error is a terminal.
    static var isInteractive: Bool { isatty(STDERR_FILENO) == 1 }

    static var isOutputInteractive: Bool { isatty(STDOUT_FILENO) == 1 }

    /// The columns and rows of the terminal at standard error.
    static var size: (columns: Int, rows: Int) { size(of: STDERR_FILENO) }

    /// The columns of the terminal at standard output; 80 if it is not a terminal.
    static var outputColumns: Int { size(of: STDOUT_FILENO).columns }

    private static func size(of descriptor: CInt) -> (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Writes a result to standard output. Throws ``CommandFailure`` if standard output is closed or full.
    static func write(_ bytes: some Sequence<UInt8>) throws {
        do {
            try FileDescriptor.standardOutput.writeAll(bytes)
        } catch {
            throw CommandFailure.output(error)
        }
    }

    /// Writes untrusted text: unchanged to a file or pipe, and without control characters to a terminal.
    static func write(foreign bytes: some Sequence<UInt8>) throws {
        guard isOutputInteractive else { return try write(bytes) }
        let text = String(decoding: Array(bytes), as: UTF8.self).replacing("\r\n", with: "\n")
        try write(
            text.split(separator: "\t", omittingEmptySubsequences: false).map { printable(String($0)) }
                .joined(separator: "\t").utf8)
        // A missing line break is added, so that the shell's prompt begins on a new line.
        if let last = text.last, last != "\n" { try writeLine("") }
    }

    /// Writes JSON and a line break. Characters that control a terminal are escaped, which keeps the JSON's meaning.
    static func write(json: Data) throws {
        try writeLine(DisplayText.escapingSteering(inJSON: json))
    }

    /// Writes a value as JSON with sorted keys, and with times in ISO 8601.
    static func write(encoded value: some Encodable) throws {
        try write(json: try JSONEncoder.forResponses.encode(value))
    }

    /// Writes a line of a result to standard output.
    static func writeLine(_ text: String) throws {
        try write((text + "\n").utf8)
    }

    /// Prints a message to standard error, ignoring errors.
    static func say(_ text: String) {
        saySequence(printable(text) + "\n")
    }

    /// Writes text that may contain terminal control sequences.
    static func saySequence(_ text: String) {
        _ = try? FileDescriptor.standardError.writeAll(text.utf8)
    }

    /// Untrusted text without characters that control the terminal or change the reading direction. Joiners are kept,
    /// because emoji use them.
    static func printable(_ text: String) -> String {
        DisplayText.replacingSteering(in: text, with: "\u{FFFD}", keepsLines: true)
    }
}

/// Applies styles to text on a terminal.
struct TextStyle {
    let isColored: Bool

    /// The role of a text, which determines its style.
    enum Role: String {
        case error = "1;31"
        case warning = "1;33"
        case good = "1;32"
        case heading = "1"
        case faint = "2"
        case fix = "32"
    }

    /// The style for standard output: with colors on a terminal that supports them, unless `NO_COLOR` is set.
    static var standardOutput: TextStyle {
        let environment = ProcessInfo.processInfo.environment
        let isAllowed = (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
        return TextStyle(isColored: isAllowed && Terminal.isOutputInteractive)
    }

    /// The text with the style of a role. The text must be printable.
    func callAsFunction(_ text: String, _ role: Role) -> String {
        isColored && !text.isEmpty ? "\u{1B}[\(role.rawValue)m\(text)\u{1B}[0m" : text
    }
}

/// Lines at the bottom of the terminal at standard error, which each drawing replaces.
struct RedrawnLines {
    private var count = 0

    /// Draws lines in place of the last drawing.
    mutating func draw(_ lines: [String]) {
        // Moves the cursor up to the first line, and clears the rest of each line after writing it.
        let start = count > 0 ? "\u{1B}[\(count)A\r" : ""
        Terminal.saySequence(start + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J")
        count = lines.count
    }

    /// Removes the lines, to write others in their place.
    mutating func clear() {
        draw([])
    }
}
