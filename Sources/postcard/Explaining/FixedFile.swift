import Foundation
import PostcardDoctor
import PostcardForm
import SystemPackage

/// The file that `--fix` writes: the request or the body, with everything fixed that is certain.
struct FixedFile {
    let path: String

    /// What was written.
    struct Outcome {
        let path: String
        let fixed: [Finding]
        let left: [Finding]
        /// The corrected Content-Type for a body without a request; `nil` if it was right.
        let contentType: String?
    }

    /// Writes the file, and returns the result.
    func fix(
        _ explanation: Explanation, from request: RequestInput?, read: ((RawSpan) throws -> Void) throws -> Void
    ) -> ExplanationReport.Fix {
        do {
            return try write(explanation, from: request, read: read).map { .written($0) } ?? .nothingCertain
        } catch {
            return .failed(CommandFailure(error))
        }
    }

    /// Writes the file completely or not at all, through a temporary file: it may be the input itself.
    ///
    /// - Parameters:
    ///   - explanation: The result of reading the input the first time.
    ///   - request: Extracts the request from its recording; `nil` if the input is a body without a request.
    ///   - read: Reads the input again.
    /// - Returns: `nil` if nothing can be fixed without the sender, and nothing was written.
    private func write(
        _ explanation: Explanation, from request: RequestInput?, read: ((RawSpan) throws -> Void) throws -> Void
    ) throws -> Outcome? {
        guard explanation.isValid || !explanation.fixable.isEmpty else { return nil }
        let partial = path + ".partial-\(UUID().uuidString.prefix(8))"
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(
                FilePath(partial), .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: [.ownerReadWrite, .groupRead, .otherRead])
        } catch {
            throw Self.failure(path, error)
        }
        do {
            defer { try? file.close() }
            try Self.writeFixed(explanation, from: request, into: file, read: read)
            guard rename(partial, path) == 0 else { throw Errno(rawValue: errno) }
        } catch {
            try? FileManager.default.removeItem(atPath: partial)
            throw Self.failure(path, error)
        }
        return Outcome(
            path: path, fixed: explanation.fixable, left: explanation.unfixable,
            contentType: request == nil ? explanation.fixedContentType : nil)
    }

    private static func writeFixed(
        _ explanation: Explanation, from request: RequestInput?, into file: FileDescriptor,
        read: ((RawSpan) throws -> Void) throws -> Void
    ) throws {
        var fixer = RequestFixer(explanation)
        guard var request else {
            try read { chunk in try fixer.read(chunk) { try file.write($0) } }
            return try fixer.finish { try file.write($0) }
        }
        var failure: (any Error)?
        func write(_ chunk: RawSpan) {
            guard failure == nil else { return }
            do {
                try fixer.read(chunk) { try file.write($0) }
            } catch {
                failure = error
            }
        }
        try read { chunk in
            try request.read(chunk, handOn: write)
            if let failure { throw failure }
        }
        try request.finish(handOn: write)
        if let failure { throw failure }
        try fixer.finish { try file.write($0) }
    }

    private static func failure(_ path: String, _ error: any Error) -> CommandFailure {
        CommandFailure(description: "\(path) cannot be written: \(error)", status: ExitStatus.unwritableOutput)
    }
}

extension FixedFile.Outcome {
    /// What was fixed and what was not, as lines below the problems.
    func lines(columns: Int, style: TextStyle) -> [String] {
        var lines = ["", style("Fixed in \(VisibleBytes.text(path))", .good)]
        if fixed.isEmpty { lines.append("  nothing: it is as it was") }
        lines += Self.list(fixed, columns: columns)
        if let contentType {
            lines += WordWrap.lines(
                "Send it with Content-Type: \(VisibleBytes.text(contentType))", columns: columns, first: "  ",
                rest: "    ")
        }
        let errors = left.filter { $0.severity == .error }
        let warnings = left.filter { $0.severity != .error }
        if !errors.isEmpty {
            lines.append(style("Left, because only its sender can know what was meant", .warning))
            lines += Self.list(errors, columns: columns)
        }
        if !warnings.isEmpty {
            lines.append(style("Left, because it may be meant", .warning))
            lines += Self.list(warnings, columns: columns)
        }
        return lines
    }

    /// A line for each kind of problem.
    private static func list(_ findings: [Finding], columns: Int) -> [String] {
        FindingGroup.groups(of: findings).map { group in
            let code = group.finding.code
            let places = 1 + group.repetitions.count
            let times = places > 1 ? " (\(places) places)" : ""
            return DisplayWidth.cut("  \(code)\(times): \(code.title)", to: columns)
        }
    }
}
