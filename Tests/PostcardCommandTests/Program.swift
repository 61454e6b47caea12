import Dispatch
import Foundation
import Synchronization
import Testing

/// The program as it was built with the tests, run as a process of its own.
struct Program {
    /// How a run ended.
    struct Ending {
        let status: Int32
        let output: Data
        let messages: String

        var text: String { String(decoding: output, as: UTF8.self) }

        func json() throws -> [String: Any] {
            try #require(try JSONSerialization.jsonObject(with: output) as? [String: Any])
        }
    }

    /// Where the test bundle lies, and the program beside it.
    static let url =
        Bundle.allBundles.map(\.bundleURL).first { $0.pathExtension == "xctest" }?
        .deletingLastPathComponent().appending(path: "postcard")
        ?? URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "postcard")

    /// Runs the program to its end.
    static func run(_ arguments: [String], input: Data = Data()) async throws -> Ending {
        try await run(url, arguments, input: input)
    }

    /// Runs a program of the system's to its end.
    static func run(_ program: String, _ arguments: [String]) async throws -> Ending {
        try await run(URL(filePath: "/usr/bin/env"), [program] + arguments, input: Data())
    }

    private static func run(_ program: URL, _ arguments: [String], input: Data) async throws -> Ending {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        let folder = try TemporaryFolder()
        let inputFile = try folder.file("input", input)
        process.standardInput = try FileHandle(forReadingFrom: inputFile)
        let (output, messages) = (try folder.file("output", []), try folder.file("messages", []))
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: messages)
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

/// A program that goes on until it is told to end, and says on standard output where it listens.
final class RunningServer: Sendable {
    let address: String
    private let process: Mutex<Process>

    /// Starts a program and waits for the address that its first line ends in.
    init(_ arguments: [String], of program: URL = Program.url) async throws {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let line = try await Self.firstLine(of: output.fileHandleForReading)
        address = try #require(line.split(separator: " ").last.map(String.init), "the server did not start")
        self.process = Mutex(process)
    }

    deinit {
        process.withLock { if $0.isRunning { $0.terminate() } }
    }

    /// Ends it as a power cut does.
    func kill() {
        process.withLock { process in
            Foundation.kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
    }

    /// Asks it to end, and gives its exit status.
    func terminate() -> Int32 {
        process.withLock { process in
            process.terminate()
            process.waitUntilExit()
            return process.terminationStatus
        }
    }

    private static func firstLine(of handle: FileHandle) async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                var line = Data()
                while let byte = try? handle.read(upToCount: 1), !byte.isEmpty, byte != Data("\n".utf8) { line += byte }
                continuation.resume(returning: String(decoding: line, as: UTF8.self))
            }
        }
    }
}

/// A folder that is gone when the test is over.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "postcard-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    var path: String { url.path }

    /// Writes a file and says where it is.
    func file(_ name: String, _ bytes: some Sequence<UInt8>) throws -> URL {
        let file = url.appending(path: name)
        try Data(bytes).write(to: file)
        return file
    }
}
