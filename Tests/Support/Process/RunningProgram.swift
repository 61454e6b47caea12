import Foundation

/// The program, ended before its end.
package final class RunningProgram {
    private let process = Process()

    /// Starts the program, and discards its output.
    package init(_ arguments: [String]) throws {
        process.executableURL = Program.url
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    /// Ends it as a power cut does.
    package func kill() {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}
