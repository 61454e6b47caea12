import Foundation

/// A server of its own process that takes everything and keeps nothing.
struct Sink {
    let url: URL
    private let process = Process()
    private let output: FileHandle
    private let input = Pipe()

    init() throws {
        let output = Pipe()
        process.executableURL = Self.program("sink")
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        self.output = output.fileHandleForReading
        guard let url = URL(string: try Self.line(from: self.output)) else { throw Failure("The sink did not start.") }
        self.url = url
    }

    /// A program that was built with this one.
    static func program(_ name: String) -> URL {
        URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: name)
    }

    /// How many bytes the body of the next request had, in the order in which they ended.
    func nextCount() throws -> Int {
        guard let count = Int(try Self.line(from: output)) else { throw Failure("The sink is gone.") }
        return count
    }

    func end() {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }

    private static func line(from handle: FileHandle) throws -> String {
        var line = Data()
        while let byte = try handle.read(upToCount: 1), let value = byte.first, value != UInt8(ascii: "\n") {
            line.append(value)
        }
        return String(decoding: line, as: UTF8.self)
    }
}

/// Why nothing can be measured.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
