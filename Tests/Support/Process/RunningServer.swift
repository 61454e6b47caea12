import Dispatch
package import Foundation
import Synchronization

/// A program that goes on until it is told to end, and says on standard output where it listens.
package final class RunningServer: Sendable {
    package let address: String
    private let process: Mutex<Process>
    private let ended: AsyncStream<Int32>

    /// Starts a program and waits for the address that its first line ends in.
    package init(_ arguments: [String], of program: URL = Program.url) async throws {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        let (ended, end) = AsyncStream.makeStream(of: Int32.self)
        self.ended = ended
        process.terminationHandler = {
            end.yield($0.terminationStatus)
            end.finish()
        }
        try process.run()
        let line = try await Self.firstLine(of: output.fileHandleForReading)
        guard let address = line.split(separator: " ").last else { throw ProgramFailure("The server did not start.") }
        self.address = String(address)
        self.process = Mutex(process)
    }

    deinit {
        process.withLock { if $0.isRunning { $0.terminate() } }
    }

    /// Ends it as a power cut does.
    package func kill() {
        process.withLock { process in
            Foundation.kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
    }

    /// Asks it to end, once, and gives its exit status.
    package func terminate() async -> Int32? {
        process.withLock { $0.terminate() }
        return await ended.first { _ in true }
    }

    package static func firstLine(of handle: FileHandle) async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                var line = Data()
                while let byte = try? handle.read(upToCount: 1), !byte.isEmpty, byte != Data("\n".utf8) { line += byte }
                continuation.resume(returning: String(decoding: line, as: UTF8.self))
            }
        }
    }
}
