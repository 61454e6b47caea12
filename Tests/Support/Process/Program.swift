package import Foundation

/// The program as it was built with the tests, run as a process of its own.
package struct Program {
    /// How a run ended.
    package struct Ending {
        package let status: Int32
        package let output: Data
        package let messages: String

        package var text: String { String(decoding: output, as: UTF8.self) }

        package func json() throws -> [String: Any] {
            guard let object = try JSONSerialization.jsonObject(with: output) as? [String: Any] else {
                throw ProgramFailure("This is no JSON object: \(text)")
            }
            return object
        }
    }

    /// The folder of the test bundle, which also contains the program.
    package static let url =
        Bundle.allBundles.map(\.bundleURL).first { $0.pathExtension == "xctest" }?
        .deletingLastPathComponent().appending(path: "postcard")
        ?? URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "postcard")

    /// Runs the program to its end.
    ///
    /// - Parameter environment: Variables in addition to this process's own.
    package static func run(
        _ arguments: [String], input: Data = Data(), environment: [String: String] = [:]
    ) async throws -> Ending {
        try await run(url, arguments, input: input, environment: environment)
    }

    /// Runs a program of the system's to its end. Skips the test if it is not installed.
    package static func run(_ program: String, _ arguments: [String]) async throws -> Ending {
        try Tool.require(program)
        return try await run(URL(filePath: "/usr/bin/env"), [program] + arguments, input: Data(), environment: [:])
    }

    private static func run(
        _ program: URL, _ arguments: [String], input: Data, environment: [String: String]
    ) async throws -> Ending {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        if !environment.isEmpty {
            process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        }
        let folder = try TemporaryFolder()
        let inputFile = try folder.file("input", input)
        let (output, messages) = (try folder.file("output", []), try folder.file("messages", []))
        let handles = [
            try FileHandle(forReadingFrom: inputFile), try FileHandle(forWritingTo: output),
            try FileHandle(forWritingTo: messages),
        ]
        // A process that has ended keeps them open, and one of a thousand descriptors breaks the next one's start.
        defer { for handle in handles { try? handle.close() } }
        process.standardInput = handles[0]
        process.standardOutput = handles[1]
        process.standardError = handles[2]
        try await process.runToEnd()
        return Ending(
            status: process.terminationStatus, output: try Data(contentsOf: output),
            messages: String(decoding: try Data(contentsOf: messages), as: UTF8.self))
    }
}

extension Process {
    func runToEnd() async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            terminationHandler = { _ in continuation.resume() }
            do {
                try run()
            } catch {
                terminationHandler = nil
                continuation.resume(throwing: error)
            }
        }
    }
}

/// Why a program is of no use to a test.
package struct ProgramFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
