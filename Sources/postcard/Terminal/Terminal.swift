import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#endif

/// The standard streams. Results go to standard output, everything else to standard error.
enum Terminal {
    /// Whether standard error is seen by a person.
    static var isInteractive: Bool { isatty(STDERR_FILENO) == 1 }

    /// Whether standard output is seen by a person.
    static var isOutputInteractive: Bool { isatty(STDOUT_FILENO) == 1 }

    /// The columns and rows of the terminal at standard error.
    static var size: (columns: Int, rows: Int) { size(of: STDERR_FILENO) }

    /// The columns of the terminal at standard output; 80 where it is none.
    static var outputColumns: Int { size(of: STDOUT_FILENO).columns }

    private static func size(of descriptor: CInt) -> (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Writes a result.
    ///
    /// - Throws: ``CommandFailure`` where standard output is closed or full.
    static func write(_ bytes: some Sequence<UInt8>) throws {
        do {
            try FileDescriptor.standardOutput.writeAll(bytes)
        } catch {
            throw CommandFailure.output(error)
        }
    }

    /// Writes a line of a result.
    static func writeLine(_ text: String) throws {
        try write((text + "\n").utf8)
    }

    /// Says something to the person at the terminal. Nobody is told where that fails.
    static func say(_ text: String) {
        saySequence(printable(text) + "\n")
    }

    /// Writes text that may hold the terminal's control sequences.
    static func saySequence(_ text: String) {
        _ = try? FileDescriptor.standardError.writeAll(text.utf8)
    }

    /// The text without characters that steer the terminal or turn the reading direction: names and a server's words
    /// are a stranger's. Joiners stay, which emoji are made with.
    static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { isSteering($0) ? "\u{FFFD}" : $0 }))
    }

    private static func isSteering(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control: scalar != "\n"
        case .format: scalar != "\u{200C}" && scalar != "\u{200D}"
        default: false
        }
    }
}

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
        case fix = "32"
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

/// Lines at the end of the terminal at standard error that are drawn again and again, each time over the last.
struct RedrawnLines {
    private var count = 0

    /// Draws the lines over those of the last time.
    mutating func draw(_ lines: [String]) {
        // Up to where they began; then each line, and what is left of the one that was there.
        let start = count > 0 ? "\u{1B}[\(count)A\r" : ""
        Terminal.saySequence(start + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J")
        count = lines.count
    }
}
