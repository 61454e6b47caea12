import Foundation

/// A receiver in a process of its own, with a directory of its own.
final class Receiver {
    enum Kind: String, CaseIterable {
        case postcard = "postcard serve"
        case yardstick = "Go"
    }

    let url: URL
    private let directory: URL
    private let process = Process()

    /// - Parameter yardstick: The built program of the yardstick.
    init(_ kind: Kind, in folder: URL, yardstick: URL) throws {
        directory = folder.appending(path: "received-\(UUID().uuidString)")
        let output = Pipe()
        switch kind {
        case .postcard:
            process.executableURL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
                .appending(path: "postcard")
            process.arguments = ["serve", "--port", "0", "--max-body", "2GiB", "--directory", directory.path]
        case .yardstick:
            process.executableURL = yardstick
            process.arguments = ["-directory", directory.path]
        }
        process.standardOutput = output
        try process.run()
        let line = try Self.line(from: output.fileHandleForReading)
        guard let url = line.split(separator: " ").last.flatMap({ URL(string: "\($0)/uploads") }) else {
            throw Failure("\(kind.rawValue) did not start: \(line)")
        }
        self.url = url
    }

    /// The yardstick as a program, built from the source that is part of this one.
    static func buildYardstick(in folder: URL) throws -> URL {
        guard let source = Bundle.module.url(forResource: "Yardstick", withExtension: nil) else {
            throw Failure("The yardstick's source is not where it was built.")
        }
        let program = folder.appending(path: "yardstick")
        _ = try run(["sh", "-c", "cd \"$1\" && exec go build -o \"$2\" .", "sh", source.path, program.path])
        return program
    }

    /// The most memory that the process has had at once, in bytes.
    var peakBytes: Int {
        get throws {
            let status = try String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
            let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            guard let kibibytes = line?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
                throw Failure("The system does not say how much memory a process has had.")
            }
            return kibibytes << 10
        }
    }

    /// The processor's time that the process has had, in seconds.
    var processorSeconds: Double {
        get throws {
            let text = try String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8)
            // Behind the program's name, which may hold spaces, the state is the first column.
            let columns = text.split(separator: ")").last?.split(separator: " ") ?? []
            guard columns.count > 13, let user = Double(columns[11]), let system = Double(columns[12]) else {
                throw Failure("The system does not say how long a process has run.")
            }
            return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
        }
    }

    /// How many records there are.
    var count: Int {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: directory.path).count { !$0.hasPrefix(".") }
        }
    }

    /// Takes away what was received, so that each round finds the disk as the first did.
    func clear() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { !$0.hasPrefix(".") }
        _ = try run(["rm", "-r"] + names.map { directory.appending(path: $0).path })
    }

    func end() throws {
        process.terminate()
        process.waitUntilExit()
        // Foundation takes minutes for some ten thousand folders.
        _ = try run(["rm", "-r", directory.path])
    }

    private static func line(from handle: FileHandle) throws -> String {
        var line = Data()
        while let byte = try handle.read(upToCount: 1), let value = byte.first, value != UInt8(ascii: "\n") {
            line.append(value)
        }
        return String(decoding: line, as: UTF8.self)
    }
}

/// Runs a program to its end.
///
/// - Returns: What it wrote to its standard output, and the seconds it took.
func run(_ command: [String]) throws -> (output: String, seconds: Double) {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    process.standardOutput = output
    let clock = ContinuousClock()
    let start = clock.now
    try process.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    let seconds = start.duration(to: clock.now) / .seconds(1)
    guard process.terminationStatus == 0 else {
        throw Failure("\(command[0]) ended with \(process.terminationStatus): \(text)")
    }
    return (text, seconds)
}

/// Why nothing can be measured.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
