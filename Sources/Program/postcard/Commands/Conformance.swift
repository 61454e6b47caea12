import ArgumentParser
import Foundation
import HTTPTypes
import PostcardConformance
import PostcardFiles
import PostcardWire
import SystemPackage

struct Conformance: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Checks how a server keeps to the draft on resumable uploads.",
        usage: "postcard conformance [<options>] <url>",
        discussion: """
            Examples:
              postcard conformance https://example.com/uploads
              postcard conformance https://example.com/uploads --only 402 661-668

            Each check is one sentence of draft-ietf-httpbis-resumable-upload (the editors' copy of 15 July 2026, interop \
            version 9). A server is judged by what the version of the requests asks for; other checks are not applicable. \
            The checks create small uploads at the URL and delete them, but what they complete stays there: do not use a \
            server that matters. They send nothing to a Location of another origin than that of the URL. A sentence \
            without one of the words of BCP 14 counts as SHOULD.

            Exit status:
              0   no MUST and no MUST NOT is violated
              1   at least one is, or what was asked was not found out
              64  usage
              66  the content cannot be read
              69  no connection
              73  standard output cannot be written
            """)

    @Argument(help: "Where forms or files are uploaded: an http or https URL.")
    var url: String

    @Option(
        name: [.customShort("H"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A header field of every request, such as Authorization; repeatable.", valueName: "Name: value"))
    var header: [String] = []

    @Flag(help: "Upload bytes of the type application/octet-stream instead of a form.")
    var raw = false

    @Option(help: ArgumentHelp("Upload this file's content, which the server must accept.", valueName: "file"))
    var body: String?

    @Option(
        parsing: .unconditional, help: ArgumentHelp("The Content-Type of what --body uploads.", valueName: "value"))
    var contentType: String?

    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp(
            "Only the checks with these numbers, such as 401 or 600-699. They come after the URL.",
            valueName: "number"))
    var only: [CheckNumbers] = []

    @Option(help: "How long to wait for a response, in seconds.")
    var timeout = 10.0

    @Option(
        help: ArgumentHelp(
            "The interop version that the requests name: 3 to 9, or none, as in the future standard. Defaults to 9.",
            valueName: "number"))
    var interopVersion: InteropVersion?

    @Option(
        name: .customLong("as"),
        help: ArgumentHelp(
            "Send what this system's own file uploads send, and report what would keep them from resuming.",
            valueName: UploadingSystem.allCases.map(\.rawValue).joined(separator: "|")))
    var system: UploadingSystem?

    @Flag(help: "Write a JSON array of objects: id, section, sentence, level, outcome, seen.")
    var json = false

    /// The maximum size of the content, in bytes. Every check holds it in memory.
    private static let maximumContentBytes = 16 << 20

    func validate() throws {
        _ = try address()
        _ = try headerFields()
        guard (0.1...3600).contains(timeout) else {
            throw ValidationError("The timeout must be from a tenth of a second to an hour.")
        }
        if raw, body != nil || contentType != nil {
            throw ValidationError("--raw uploads bytes of its own, and cannot be used with --body or --content-type.")
        }
        guard (body == nil) == (contentType == nil) else {
            throw ValidationError("--body and --content-type belong together: a content and its type.")
        }
        if system != nil, interopVersion != nil || !only.isEmpty {
            throw ValidationError("--as has its own version and checks: leave out --interop-version and --only.")
        }
        if checks.isEmpty {
            let (first, last) = (ConformanceSuite.checks.first?.number ?? 0, ConformanceSuite.checks.last?.number ?? 0)
            throw ValidationError("No check has such a number. They are from \(first) to \(last).")
        }
    }

    private var checks: [ConformanceCheck] {
        if let system { return system.checks }
        guard !only.isEmpty else { return ConformanceSuite.checks }
        return ConformanceSuite.checks.filter { check in only.contains { $0.range.contains(check.number) } }
    }

    private func address() throws -> ServerAddress {
        guard let address = ServerAddress(url) else {
            throw ValidationError("'\(url)' is not an http or https URL. Write it as http://host/path.")
        }
        return address
    }

    private func headerFields() throws -> HTTPFields {
        var fields = HTTPFields()
        for argument in header { fields.append(try FormOptions.valid { try HeaderArgument(argument).field }) }
        return fields
    }

    func run() async throws {
        try await CommandFailure.reporting {
            var suite = ConformanceSuite(server: try address())
            suite.settings.headerFields = try headerFields()
            suite.settings.timeout = .seconds(timeout)
            suite.settings.version = system?.version ?? interopVersion?.version ?? .latestNumbered
            suite.content = try content()
            let report = try await run(suite)
            if json {
                try Terminal.write(encoded: report.results)
            } else {
                try Terminal.writeLine("\n" + ConformanceLines.summary(of: report, as: system))
            }
            let isGood = system == nil ? report.conforms : report.results.allSatisfy { $0.outcome == .ok }
            if !isGood { throw ExitStatus.refused }
        }
    }

    private func run(_ suite: ConformanceSuite) async throws -> ConformanceReport {
        let lines = ConformanceLines(columns: Terminal.outputColumns, style: .standardOutput)
        do {
            return try await suite.run(checks) { result in
                guard !json else { return }
                for line in lines.lines(for: result) { try Terminal.writeLine(line) }
            }
        } catch let failure as ConnectionFailure {
            throw CommandFailure(description: "\(url): \(failure)", status: ExitStatus.unavailable)
        }
    }

    private func content() throws -> ContentSource {
        guard let body, let contentType else { return raw ? .octets : .form }
        let bytes: [UInt8]
        do {
            bytes = try SmallFile.bytes(of: FilePath(body), atMost: Self.maximumContentBytes)
        } catch {
            throw CommandFailure.input(body, error.description)
        }
        // The content needs four pieces of at least two bytes, so that all positions differ.
        guard bytes.count >= 8 else {
            throw CommandFailure.input(body, "is too short: the checks upload it in four pieces.")
        }
        return .given(contentType: contentType, bytes: bytes)
    }
}

extension UploadingSystem: ExpressibleByArgument {}

/// A version of the resumable upload draft on the command line: its number, or `none`.
struct InteropVersion: ExpressibleByArgument {
    let version: ResumptionVersion

    init(version: ResumptionVersion) {
        self.version = version
    }

    init?(argument: String) {
        guard argument != "none" else {
            version = .newest
            return
        }
        guard let number = Int64(argument), let version = ResumptionVersion(interopNumber: number) else { return nil }
        self.version = version
    }

    var defaultValueDescription: String { version.interopNumber.map { "\($0)" } ?? "none" }

    static var allValueStrings: [String] {
        ResumptionVersion.allCases.map { InteropVersion(version: $0).defaultValueDescription }
    }
}

/// The numbers of checks on the command line: a number or a range.
struct CheckNumbers: ExpressibleByArgument {
    let range: ClosedRange<Int>

    init?(argument: String) {
        let ends = argument.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard ends.count <= 2, let first = ends.first ?? nil, let last = ends.last ?? nil, first <= last else {
            return nil
        }
        range = first...last
    }
}

/// Formats the results of checks as text.
struct ConformanceLines {
    let columns: Int
    let style: TextStyle

    /// The lines for a result: the outcome, the sentence, and the observation if the outcome is not the expected one.
    func lines(for result: ConformanceResult) -> [String] {
        let check = result.check
        let outcome = result.outcome.rawValue
        let head = "\(check.number)  \(outcome)  §\(check.section)  \(check.level.rawValue)"
        var lines = WordWrap.lines(check.sentence, columns: columns, first: head + ": ", rest: "      ")
        // The style is applied last, because its bytes have no width.
        let styled = style(outcome, role(of: result))
        lines[0] = lines[0].replacing("  \(outcome)  ", with: "  \(styled)  ", maxReplacements: 1)
        guard result.outcome != .ok else { return lines }
        let seen = Terminal.printable(result.seen).replacing("\n", with: "\u{FFFD}")
        let details = WordWrap.lines(seen, columns: columns, first: "      seen: ", rest: "      ")
        return lines + details.map { style($0, .faint) }
    }

    private func role(of result: ConformanceResult) -> TextStyle.Role {
        switch result.outcome {
        case .ok: .good
        case .violated: result.check.level.isAbsolute ? .error : .warning
        case .notApplicable, .unchecked: .faint
        }
    }

    /// The number of results with each outcome, as text.
    static func summary(of report: ConformanceReport, as system: UploadingSystem? = nil) -> String {
        if let system {
            let results = report.results
            let obstacle = results.first { $0.outcome == .violated }
            guard let open = obstacle ?? results.first(where: { $0.outcome != .ok }) else {
                return "\(system.name) would resume an upload that breaks."
            }
            let finding =
                obstacle == nil
                ? "Whether \(system.name) would resume an upload that breaks was not found out"
                : "\(system.name) would not resume an upload that breaks"
            let seen = Terminal.printable(open.seen).replacing("\n", with: "\u{FFFD}")
            return "\(finding), because of \(open.check.number): \(seen)"
        }
        let violated = report.count(of: .violated)
        let absolute = report.violatedRequirements
        return "\(report.results.count) checks: \(report.count(of: .ok)) ok, \(violated) violated"
            + (violated > 0 ? " (\(absolute) of them a MUST)" : "")
            + ", \(report.count(of: .notApplicable)) not applicable, \(report.count(of: .unchecked)) could not be checked."
    }
}
