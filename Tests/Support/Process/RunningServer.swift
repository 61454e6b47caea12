import Dispatch
package import Foundation
import Synchronization

/// A program that runs until it gets a signal, and prints the address that it listens on.
package final class RunningServer: Sendable {
    package let address: String
    private let process: Mutex<Process>
    private let ended: AsyncStream<Int32>
    private let folder: TemporaryFolder
    private let messagesFile: URL

    /// What it has said on standard error.
    package var messages: String {
        get throws { String(decoding: try Data(contentsOf: messagesFile), as: UTF8.self) }
    }

    /// Starts a program and waits for the address that its first line ends in.
    ///
    /// Its standard error is written to a file, and is part of the error if it does not start. It inherits nothing from
    /// this process: if tests crash and leave it behind, it would hold their output open, and a reader of that output
    /// would never reach its end.
    ///
    /// - Parameter environment: Variables in addition to this process's own.
    package init(
        _ arguments: [String], of program: URL = Program.url, environment: [String: String] = [:]
    ) async throws {
        if program.lastPathComponent == "env", let tool = arguments.first { try Tool.require(tool) }
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        folder = try TemporaryFolder()
        let messages = try folder.file("messages", [])
        messagesFile = messages
        let messagesHandle = try FileHandle(forWritingTo: messages)
        defer { try? messagesHandle.close() }
        process.standardError = messagesHandle
        let (ended, end) = AsyncStream.makeStream(of: Int32.self)
        self.ended = ended
        process.terminationHandler = {
            end.yield(($0.terminationReason == .uncaughtSignal ? 128 : 0) + $0.terminationStatus)
            end.finish()
        }
        try process.run()
        let line = try await Self.firstLine(of: output.fileHandleForReading)
        guard let address = line.split(separator: " ").last else {
            Foundation.kill(process.processIdentifier, SIGKILL)
            let reason = String(decoding: try Data(contentsOf: messages), as: UTF8.self)
            throw ProgramFailure("The server did not start: \(reason)")
        }
        self.address = String(address)
        self.process = Mutex(process)
    }

    deinit {
        // What Foundation starts may have SIGTERM blocked.
        process.withLock { if $0.isRunning { Foundation.kill($0.processIdentifier, SIGKILL) } }
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
        signal(SIGTERM)
        return await exitStatus()
    }

    package func signal(_ number: Int32) {
        process.withLock { process in
            if process.isRunning { Foundation.kill(process.processIdentifier, number) }
        }
    }

    /// Waits for its end. A server that a signal ended has the signal's number and 128, as in shells.
    package func exitStatus() async -> Int32? {
        await ended.first { _ in true }
    }

    package var processIdentifier: Int32 { process.withLock { $0.processIdentifier } }

    #if os(Linux)
    /// The memory that the process has, in bytes; see proc_pid_status(5).
    package var residentBytes: Int {
        get throws {
            let status = try String(contentsOfFile: "/proc/\(processIdentifier)/status", encoding: .utf8)
            let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
            guard let kibibytes = line?.split(separator: " ").compactMap({ Int($0) }).first else {
                throw ProgramFailure("The system does not say how much memory the server has.")
            }
            return kibibytes << 10
        }
    }
    #endif

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
