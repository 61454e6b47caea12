import Foundation
import PostcardDoctor
import PostcardForm
import SystemPackage

/// The file that `--fix` writes: the request or the body as it should have been, where that is certain.
struct FixedFile {
    let path: String

    /// What was written.
    struct Outcome {
        let path: String
        let fixed: [Finding]
        let left: [Finding]
        /// The Content-Type to send a body with that came alone, where it was wrong.
        let contentType: String?
    }

    /// Writes the file, and gives what became of that.
    func fix(
        _ explanation: Explanation, from request: RequestInput?, read: ((RawSpan) throws -> Void) throws -> Void
    ) -> ExplanationReport.Fix {
        do {
            return try write(explanation, from: request, read: read).map { .written($0) } ?? .nothingCertain
        } catch {
            return .failed(CommandFailure(error))
        }
    }

    /// Writes the file whole or not at all, beside its place and then into it: it may be the input itself.
    ///
    /// - Parameters:
    ///   - explanation: What the first reading of the input found.
    ///   - request: Takes the request out of what it was recorded in; `nil` where the input is a body alone.
    ///   - read: Reads the input again.
    /// - Returns: `nil` where nothing can be fixed without asking the sender, and nothing was written.
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
    /// What was changed and what was not, as lines below the problems.
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
