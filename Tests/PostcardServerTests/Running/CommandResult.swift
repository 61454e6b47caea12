import Foundation

/// What a program that has ended left behind.
struct CommandResult: Sendable {
    let status: Int32
    let output: Data
    let errors: String

    var text: String { String(decoding: output, as: UTF8.self) }

    /// Runs a program of the PATH to its end.
    init(_ program: String, _ arguments: [String]) async throws {
        self = try await onThread { try CommandResult(running: program, arguments) }
    }

    /// Both outputs go to files, because a pipe that nobody reads stops the program.
    private init(running program: String, _ arguments: [String]) throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "command-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let outputFile = directory.appending(path: "output")
        let errorFile = directory.appending(path: "errors")
        for file in [outputFile, errorFile] { try Data().write(to: file) }
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.standardInput = FileHandle.nullDevice
        let handles = [try FileHandle(forWritingTo: outputFile), try FileHandle(forWritingTo: errorFile)]
        defer { for handle in handles { try? handle.close() } }
        process.standardOutput = handles[0]
        process.standardError = handles[1]
        try process.run()
        process.waitUntilExit()
        status = process.terminationStatus
        output = try Data(contentsOf: outputFile)
        errors = String(decoding: try Data(contentsOf: errorFile), as: UTF8.self)
    }
}
