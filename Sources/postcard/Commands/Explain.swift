import ArgumentParser
import Foundation
import PostcardDoctor
import PostcardForm
import SystemPackage

struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says what a receiver makes of a request, and what is wrong with it.",
        discussion: """
            Reads a raw HTTP request, a trace of curl's (--trace, --trace-ascii) or a HAR file, or with --content-type a \
            body alone. Exit status: 0 no errors, though there may be warnings; 1 errors; 64 usage; 66 unreadable.
            """)

    @Argument(help: "The file; - is standard input.")
    var file: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The input is a body, sent with this Content-Type.", valueName: "value"))
    var contentType: String?

    @Option(help: ArgumentHelp("Which request of a HAR file or a trace, from 1.", valueName: "number"))
    var entry: Int?

    @Option(
        help: ArgumentHelp("Take one request on this port in place of a file; 0 picks a free one.", valueName: "port"))
    var listen: Int?

    @Option(help: "With --listen, the address to listen on.")
    var host = "127.0.0.1"

    @Option(
        help: ArgumentHelp(
            "With --listen, how long a client may be silent before its request ends.", valueName: "seconds"))
    var timeout = 10

    @Flag(help: "Write one JSON object: valid, boundary, parts, problems.")
    var json = false

    func validate() throws {
        if let listen {
            guard (0...65535).contains(listen) else { throw ValidationError("There is no port \(listen).") }
            guard file == nil, contentType == nil, entry == nil else {
                throw ValidationError(
                    "--listen takes a request from the network, and no file, --content-type or --entry.")
            }
        }
        if contentType != nil, entry != nil {
            throw ValidationError("--entry chooses a request, and with --content-type the input is a body.")
        }
        guard entry ?? 1 > 0 else { throw ValidationError("Entries are counted from 1.") }
        guard (1...86_400).contains(timeout) else {
            throw ValidationError("The timeout is a number of seconds, from 1 to a day.")
        }
    }

    func run() async throws {
        try await CommandFailure.reporting {
            let report = if let listen { try await heard(on: listen) } else { try read() }
            if json {
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
                try Terminal.write(try encoder.encode(report) + Data("\n".utf8))
            } else {
                for line in report.screen(columns: Terminal.outputColumns, style: .standardOutput) {
                    try Terminal.writeLine(line)
                }
            }
            if !report.explanation.isValid { throw ExitStatus.refused }
        }
    }

    private func heard(on port: Int) async throws -> ExplanationReport {
        let listener = RequestListener(host: host, port: port, silence: .seconds(timeout))
        do {
            let taken = try await listener.takeRequest { address in
                Terminal.say("listening on \(address)")
            } keep: { _ in
            } answer: { taken in
                let report = ExplanationReport(explanation: taken.explanation, format: .request, remarks: [])
                return report.screen(columns: 80, style: TextStyle(isColored: false)).joined(separator: "\n") + "\n"
            }
            return ExplanationReport(explanation: taken.explanation, format: .request, remarks: [])
        } catch {
            throw CommandFailure(
                description: "Cannot listen on \(host):\(port): \(error)", status: ExitStatus.unavailable)
        }
    }

    private func read() throws -> ExplanationReport {
        let name = file ?? "-"
        do {
            return try report(on: name)
        } catch let error as InputError {
            if error.code == .severalUploads {
                throw CommandFailure(
                    description: ([error.description] + error.uploads.map { "  \($0)" }).joined(separator: "\n"),
                    status: ExitStatus.usage)
            }
            throw CommandFailure(
                description: "\(error)", status: error.code == .noEntry ? ExitStatus.usage : ExitStatus.unreadableInput)
        } catch {
            throw CommandFailure.input(name == "-" ? "Standard input" : name, "cannot be read: \(error)")
        }
    }

    private func report(on name: String) throws -> ExplanationReport {
        let input =
            name == "-"
            ? FileDescriptor.standardInput : try FileDescriptor.open(FilePath(name), .readOnly, options: .closeOnExec)
        defer { if name != "-" { try? input.close() } }
        if let contentType {
            var examination = FormExamination(contentType: contentType)
            try input.readChunks { examination.read($0) }
            return ExplanationReport(explanation: examination.finish(), format: nil, remarks: [])
        }
        var examination = InputExamination(entry: entry)
        try input.readChunks { try examination.read($0) }
        let explanation = try examination.finish()
        return ExplanationReport(explanation: explanation, format: examination.format, remarks: examination.remarks)
    }
}

extension FileDescriptor {
    /// Reads to the end, however long that is.
    fileprivate func readChunks(_ body: (RawSpan) throws -> Void) throws {
        var chunk = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = try chunk.withUnsafeMutableBytes { try read(into: $0) }
            if count == 0 { return }
            try body(chunk.span.bytes.extracting(first: count))
        }
    }
}
