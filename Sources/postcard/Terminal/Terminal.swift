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
