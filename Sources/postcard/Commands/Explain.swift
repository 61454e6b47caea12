import ArgumentParser
import Foundation
import PostcardDoctor
import PostcardForm
import SystemPackage

struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says what a receiver makes of a request, and what is wrong with it.",
        discussion: """
            Reads a raw HTTP request, or with --content-type a body alone. Exit status: 0 no errors, though there may be \
            warnings; 1 errors; 64 usage; 66 unreadable.
            """)

    @Argument(help: "The file; - is standard input.")
    var file = "-"

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The input is a body, sent with this Content-Type.", valueName: "value"))
    var contentType: String?

    @Flag(help: "Write one JSON object: valid, boundary, parts, problems.")
    var json = false

    func run() async throws {
        try await CommandFailure.reporting {
            let explanation = try read()
            if json {
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
                try Terminal.write(try encoder.encode(explanation) + Data("\n".utf8))
            } else {
                for line in ExplanationLines(explanation).all { try Terminal.writeLine(Terminal.printable(line)) }
            }
            if !explanation.isValid { throw ExitStatus.refused }
        }
    }

    private func read() throws -> Explanation {
        do {
            return try explain()
        } catch {
            throw CommandFailure.input(file == "-" ? "Standard input" : file, "cannot be read: \(error)")
        }
    }

    private func explain() throws -> Explanation {
        let input =
            file == "-"
            ? FileDescriptor.standardInput : try FileDescriptor.open(FilePath(file), .readOnly, options: .closeOnExec)
        defer { if file != "-" { try? input.close() } }
        if let contentType {
            var examination = FormExamination(contentType: contentType)
            try input.readChunks { examination.read($0) }
            return examination.finish()
        }
        var examination = RequestExamination()
        try input.readChunks { examination.read($0) }
        return examination.finish()
    }
}

extension FileDescriptor {
    /// Reads to the end, however long that is.
    fileprivate func readChunks(_ body: (RawSpan) -> Void) throws {
        var chunk = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = try chunk.withUnsafeMutableBytes { try read(into: $0) }
            if count == 0 { return }
            body(chunk.span.bytes.extracting(first: count))
        }
    }
}
