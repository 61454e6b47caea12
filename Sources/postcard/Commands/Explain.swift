import ArgumentParser
import Foundation
import PostcardDoctor
import PostcardForm
import Synchronization
import SystemPackage

struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explains how a receiver reads a request, and what is wrong with it.",
        usage: "postcard explain [<options>] [<file>]",
        discussion: """
            Reads a raw HTTP request, a curl trace (--trace, --trace-ascii) or a HAR file, or with --content-type only a \
            body. Exit status: 0 no errors, only warnings; 1 errors; 64 usage; 66 unreadable.
            """)

    @Argument(help: "The file; - is standard input.")
    var file: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The input is a body, sent with this Content-Type.", valueName: "value"))
    var contentType: String?

    @Option(
        help: ArgumentHelp(
            "Which request of a HAR file or a trace, from 1.",
            discussion: "Defaults to the only upload of a HAR file, and to the first request with a body of a trace.",
            valueName: "number"))
    var entry: Int?

    @Option(
        help: ArgumentHelp(
            "Receive one request on this port instead of reading a file; 0 picks a free one.", valueName: "port"))
    var listen: Int?

    @Option(help: "With --listen, the address to listen on.")
    var host = "127.0.0.1"

    @Option(
        help: ArgumentHelp(
            "With --listen, how long a client may be idle before its request ends.", valueName: "seconds"))
    var timeout = 10

    @Option(
        help: ArgumentHelp(
            "Also check against these servers' default settings: \(ServerProfile.all.map(\.name).joined(separator: ", ")).",
            valueName: "server,…"))
    var against: String?

    @Option(
        help: ArgumentHelp(
            "Write the request or the body here, with everything fixed that is certain.", valueName: "file"))
    var fix: String?

    @Option(
        help: ArgumentHelp(
            "Write the form here as text that can be edited, with a file for each part that is more than text.",
            discussion: "'postcard send --config form.txt' sends it again. The folder must be new or empty.",
            valueName: "folder"))
    var edit: String?

    @Flag(help: "Write one JSON object: valid, boundary, parts, problems.")
    var json = false

    func validate() throws {
        if let listen {
            guard (0...65535).contains(listen) else { throw ValidationError("\(listen) is not a port.") }
            guard file == nil, contentType == nil, entry == nil else {
                throw ValidationError(
                    "--listen receives a request from the network, and cannot be used with a file, --content-type "
                        + "or --entry.")
            }
        }
        if edit != nil, listen != nil {
            throw ValidationError("--edit writes a form that is in a file. With --listen, keep the request with --fix.")
        }
        if contentType != nil, entry != nil {
            throw ValidationError("--entry chooses a request, but with --content-type the input is a body.")
        }
        guard entry ?? 1 > 0 else { throw ValidationError("Entries are counted from 1.") }
        _ = try servers()
        guard (1...86_400).contains(timeout) else {
            throw ValidationError("The timeout is a number of seconds, from 1 to a day.")
        }
    }

    /// The chosen servers.
    private func servers() throws -> [ServerProfile] {
        try (against ?? "").split(separator: ",").map { name in
            guard let profile = ServerProfile(named: name.trimmingCharacters(in: .whitespaces)) else {
                let known = ServerProfile.all.map(\.name).joined(separator: ", ")
                throw ValidationError("'\(name)' is not a known server. The known servers are: \(known).")
            }
            return profile
        }
    }

    func run() async throws {
        try await CommandFailure.reporting {
            let report = if let listen { try await heard(on: listen) } else { try read() }
            if json {
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
                try Terminal.write(json: try encoder.encode(report))
            } else {
                for line in report.screen(columns: Terminal.outputColumns, style: .standardOutput) {
                    try Terminal.writeLine(line)
                }
            }
            if case .failed(let failure) = report.fix { throw failure }
            if !report.explanation.isValid { throw ExitStatus.refused }
        }
    }

    /// The explanation with what the chosen servers would refuse.
    private func judged(_ explanation: Explanation) -> Explanation {
        guard let servers = try? servers(), !servers.isEmpty else { return explanation }
        return explanation.judged(against: servers)
    }

    private func heard(on port: Int) async throws -> ExplanationReport {
        let listener = RequestListener(host: host, port: port, silence: .seconds(timeout))
        let spool = try fix.map { _ in try FileDescriptor.unnamedTemporaryFile() }
        defer { try? spool?.close() }
        let spoolFailure = Mutex<CommandFailure?>(nil)
        let taken: RequestListener.Taken
        do {
            taken = try await listener.takeRequest { address in
                Terminal.say("listening on \(address)")
            } keep: { chunk in
                // What cannot be kept cannot be fixed, but it is still explained.
                spoolFailure.withLock { failure in
                    guard failure == nil else { return }
                    do {
                        try spool?.write(chunk)
                    } catch {
                        failure = ExplainedInput.notKept(error)
                    }
                }
            } respond: { taken in
                let report = ExplanationReport(
                    explanation: judged(taken.explanation), format: .request, remarks: [])
                return report.screen(columns: 80, style: TextStyle(isColored: false)).joined(separator: "\n") + "\n"
            }
        } catch {
            throw CommandFailure(
                description: "Cannot listen on \(host):\(port): \(error)", status: ExitStatus.unavailable)
        }
        var report = ExplanationReport(explanation: judged(taken.explanation), format: .request, remarks: [])
        if let spool, let fix {
            report.fix =
                spoolFailure.withLock { $0 }.map { .failed($0) }
                ?? FixedFile(path: fix).fix(taken.explanation, from: RequestInput(format: .request)) {
                    try spool.seek(offset: 0, from: .start)
                    try spool.readChunks($0)
                }
        }
        return report
    }

    private func read() throws -> ExplanationReport {
        let name = file ?? "-"
        do {
            return try report(on: name)
        } catch let failure as CommandFailure {
            throw failure
        } catch let error as InputError {
            if error.code == .severalUploads {
                throw CommandFailure(
                    description: (["\(error)"] + error.uploads.map { "  \($0)" }).joined(separator: "\n"),
                    status: ExitStatus.usage)
            }
            throw CommandFailure(
                description: "\(error)", status: error.code == .noEntry ? ExitStatus.usage : ExitStatus.unreadableInput)
        } catch {
            throw CommandFailure.input(name == "-" ? "Standard input" : name, "cannot be read: \(error)")
        }
    }

    private func report(on name: String) throws -> ExplanationReport {
        let input = try ExplainedInput(name, isReadTwice: fix != nil || edit != nil)
        let explanation: Explanation
        var report: ExplanationReport
        if let contentType {
            var examination = FormExamination(contentType: contentType)
            try input.read { examination.read($0) }
            explanation = examination.finish()
            report = ExplanationReport(explanation: judged(explanation), format: nil, remarks: [])
        } else {
            var examination = InputExamination(entry: entry)
            try input.read { try examination.read($0) }
            explanation = try examination.finish()
            report = ExplanationReport(
                explanation: judged(explanation), format: examination.format, remarks: examination.remarks)
        }
        let request = contentType == nil ? RequestInput(entry: entry) : nil
        if let edit {
            try EditableForm(folder: edit).write(explanation, from: request) { try input.readAgain($0) }
            report.editable = "\(edit)/\(EditableForm.name)"
        }
        if let fix {
            report.fix = FixedFile(path: fix).fix(explanation, from: request) { try input.readAgain($0) }
        }
        return report
    }
}

/// The input to explain: a file, or a stream that is kept for reading it again.
final class ExplainedInput {
    private let descriptor: FileDescriptor
    private let closesDescriptor: Bool
    /// A copy of a stream; `nil` if the input can be read again, or is read only once.
    private let spool: FileDescriptor?

    /// Opens a file or standard input.
    ///
    /// - Parameters:
    ///   - name: The path, or `-`.
    ///   - isReadTwice: Whether it will be read again.
    init(_ name: String, isReadTwice: Bool) throws {
        let isStandardInput = name == "-"
        descriptor =
            isStandardInput
            ? .standardInput : try FileDescriptor.open(FilePath(name), .readOnly, options: .closeOnExec)
        closesDescriptor = !isStandardInput
        let isSeekable = (try? descriptor.seek(offset: 0, from: .current)) != nil
        spool = isReadTwice && !isSeekable ? try FileDescriptor.unnamedTemporaryFile() : nil
    }

    deinit {
        if closesDescriptor { try? descriptor.close() }
        try? spool?.close()
    }

    /// Reads to the end.
    func read(_ body: (RawSpan) throws -> Void) throws {
        try descriptor.readChunks { chunk in
            do {
                try spool?.write(chunk)
            } catch {
                throw Self.notKept(error)
            }
            try body(chunk)
        }
    }

    /// The error if a stream cannot be kept.
    static func notKept(_ error: any Error) -> CommandFailure {
        CommandFailure(
            description: "The input cannot be kept for --fix or --edit: \(error). Free space in \(temporaryFolder), or "
                + "set TMPDIR to another folder.",
            status: ExitStatus.unwritableOutput)
    }

    private static var temporaryFolder: String { FileManager.default.temporaryDirectory.path }

    /// Reads the same bytes again.
    func readAgain(_ body: (RawSpan) throws -> Void) throws {
        let again = spool ?? descriptor
        try again.seek(offset: 0, from: .start)
        try again.readChunks(body)
    }
}

extension FileDescriptor {
    /// A temporary file, which is deleted when it is closed.
    static func unnamedTemporaryFile() throws -> FileDescriptor {
        let path = FilePath(FileManager.default.temporaryDirectory.path).appending("postcard-\(UUID().uuidString)")
        let file = try FileDescriptor.open(
            path, .readWrite, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
        try? FileManager.default.removeItem(atPath: path.string)
        return file
    }

    func write(_ chunk: RawSpan) throws {
        _ = try chunk.withUnsafeBytes { try writeAll($0) }
    }

    /// Reads to the end.
    func readChunks(_ body: (RawSpan) throws -> Void) throws {
        var chunk = ContiguousArray<UInt8>(repeating: 0, count: 1 << 20)
        while true {
            let count = try chunk.withUnsafeMutableBytes { try read(into: $0) }
            if count == 0 { return }
            try body(chunk.span.bytes.extracting(first: count))
        }
    }
}
