import ArgumentParser
import Foundation
import PostcardDoctor
import PostcardForm
import PostcardWire

struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explains how a receiver reads a request, and what is wrong with it.",
        usage: "postcard explain [<options>] [<file>]",
        discussion: """
            Examples:
              curl --trace request.txt -F photo=@cat.jpg https://example.com/pets
              postcard explain request.txt
              postcard explain request.txt --against php,nginx
              postcard explain --listen 9000

            Reads a raw HTTP request, a curl trace (--trace, --trace-ascii), a HAR file, what a browser copies as cURL or \
            as fetch, or an event of AWS Lambda, or with --content-type only a body.

            Exit status:
              0   no errors, only warnings
              1   errors
              64  usage
              66  unreadable
              69  cannot listen
              73  a file or standard output cannot be written
            """)

    @Argument(help: "The file; - is standard input.")
    var file: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The input is a body, sent with this Content-Type.", valueName: "value"))
    var contentType: String?

    @Option(
        help: ArgumentHelp(
            "Which request of the input, from 1.",
            discussion: """
                Defaults to the only upload of a HAR file, and to the first request with a body of a trace or of raw \
                requests.
                """,
            valueName: "number"))
    var entry: Int?

    @Option(
        help: ArgumentHelp(
            "Receive requests on this port instead of reading a file; 0 picks a free one.",
            discussion: "A broken form is refused as by a receiver, and the next one is awaited until one is valid.",
            valueName: "port"))
    var listen: Int?

    // Without defaults here, --host and --timeout can be refused without --listen.
    @Option(help: "With --listen, the address to listen on. Defaults to 127.0.0.1.")
    var host: String?

    @Option(
        help: ArgumentHelp(
            "With --listen, how long a client may be idle before its request ends. Defaults to 10.",
            valueName: "seconds"))
    var timeout: Int?

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

    @Flag(
        help: ArgumentHelp(
            "Write one JSON object: valid, boundary, parts, partCount, problems, remarks, format, curl, editable; with "
                + "--fix also fixed and unfixed."))
    var json = false

    @Flag(
        help: ArgumentHelp(
            "Open the page that explains a request pasted into it, or print its path if there is no display.",
            discussion: "The page makes no request to anywhere. It is the file share/postcard/explain.html."))
    var page = false

    func validate() throws {
        if page {
            guard file == nil, contentType == nil, entry == nil, listen == nil, host == nil, timeout == nil,
                against == nil, fix == nil, edit == nil, !json
            else { throw ValidationError("--page opens a page for any request, and has no other options.") }
        }
        if let listen {
            guard listen == 0 || Port.valid.contains(listen) else { throw ValidationError("\(listen) is not a port.") }
            guard file == nil, contentType == nil, entry == nil else {
                throw ValidationError(
                    "--listen receives a request from the network, and cannot be used with a file, --content-type "
                        + "or --entry.")
            }
        } else if host != nil || timeout != nil {
            let option = host != nil ? "--host" : "--timeout"
            throw ValidationError("\(option) is for a request that is received. Add --listen PORT.")
        }
        if fix == "-" {
            throw ValidationError(
                "--fix needs a file, because the explanation goes to standard output. Write a file called - as ./-.")
        }
        if edit != nil, listen != nil {
            throw ValidationError("--edit writes a form that is in a file. With --listen, keep the request with --fix.")
        }
        if contentType != nil, entry != nil {
            throw ValidationError("--entry chooses a request, but with --content-type the input is a body.")
        }
        guard entry ?? 1 > 0 else { throw ValidationError("Entries are counted from 1.") }
        _ = try servers()
        guard (1...86_400).contains(timeout ?? 1) else {
            throw ValidationError("The timeout is a number of seconds, from 1 to a day.")
        }
    }

    private func servers() throws -> [ServerProfile] {
        guard let against else { return [] }
        let known = ServerProfile.all.map(\.name).joined(separator: ", ")
        let names = against.split(separator: ",")
        guard !names.isEmpty else {
            throw ValidationError("--against names no server. The known servers are: \(known).")
        }
        return try names.map { name in
            guard let profile = ServerProfile(named: name.trimmingCharacters(in: .whitespaces)) else {
                throw ValidationError("'\(name)' is not a known server. The known servers are: \(known).")
            }
            return profile
        }
    }

    func run() async throws {
        try await CommandFailure.reporting {
            if page { return try ExplanationPage.open() }
            let report = if let listen { try await heard(on: listen) } else { try read() }
            try write(report)
            if case .failed(let failure) = report.fix { throw failure }
            if !report.explanation.isValid { throw ExitStatus.refused }
        }
    }

    private func write(_ report: ExplanationReport) throws {
        if json {
            return try Terminal.write(encoded: report)
        }
        for line in report.screen(columns: Terminal.outputColumns, style: .standardOutput) {
            try Terminal.writeLine(line)
        }
    }

    /// Adds the problems for the servers in `--against` to an explanation.
    private func judged(_ explanation: Explanation) -> Explanation {
        guard let servers = try? servers(), !servers.isEmpty else { return explanation }
        return explanation.judged(against: servers)
    }

    private func heard(on port: Int) async throws -> ExplanationReport {
        let host = host ?? "127.0.0.1"
        let listener = RequestListener(
            host: host, port: port, silence: .seconds(timeout ?? 10), keepsRequest: fix != nil)
        let taken: RequestListener.Taken
        do {
            taken = try await listener.takeValidRequest { address in
                Terminal.say("listening on \(address)")
            } respond: { explanation in
                let report = ExplanationReport(explanation: judged(explanation), format: .request, remarks: [])
                return report.screen(columns: 80, style: TextStyle(isColored: false)).joined(separator: "\n") + "\n"
            } onBroken: { request in
                let report = report(on: request)
                try write(report)
                if case .failed(let failure) = report.fix { throw failure }
            }
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure(
                description: "Cannot listen on \(host):\(port): \(error)", status: ExitStatus.unavailable)
        }
        return report(on: taken)
    }

    private func report(on taken: RequestListener.Taken) -> ExplanationReport {
        var report = ExplanationReport(explanation: judged(taken.explanation), format: .request, remarks: [])
        if let fix, let copy = taken.copy {
            report.fix =
                copy.failure.map { .failed($0) }
                ?? FixedFile(path: fix).fix(taken.explanation, from: .request(RequestInput(format: .request))) {
                    try copy.read($0)
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
            let form = EditableForm(folder: edit, permissions: input.permissions)
            try form.write(explanation, from: request) { try input.readAgain($0) }
            report.editable = "\(edit)/\(EditableForm.name)"
        }
        if let fix {
            let file = FixedFile(path: fix, permissions: input.permissions)
            let source =
                contentType.map { FixedFile.Source.body(contentType: $0) } ?? .request(RequestInput(entry: entry))
            report.fix = file.fix(explanation, from: source) { try input.readAgain($0) }
        }
        return report
    }
}
