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

    /// The columns and rows of the terminal at standard error.
    static var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Writes a result.
    ///
    /// - Throws: `Errno` where standard output is closed or full.
    static func write(_ bytes: some Sequence<UInt8>) throws {
        try FileDescriptor.standardOutput.writeAll(bytes)
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

    /// The text without control characters: names and a server's words must not steer the terminal.
    static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.properties.generalCategory == .control && $0 != "\n" ? "\u{FFFD}" : $0 }))
    }
}
