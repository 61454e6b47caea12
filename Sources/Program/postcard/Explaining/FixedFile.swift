import Foundation
import PostcardCLibrary
import PostcardDoctor
import PostcardForm
import SystemPackage

/// The file that `--fix` writes: the request or body with all certain fixes.
struct FixedFile {
    let path: String
    /// The permissions of a new file. By default, only its owner can read it, because requests may contain passwords
    /// and cookies.
    var permissions = FilePermissions.ownerReadWrite

    enum Source {
        /// A recording of a request, such as a HAR file. The value extracts the request from the recording.
        case request(RequestInput)
        /// A body without a request. The value is the Content-Type of the body.
        case body(contentType: String)
    }

    struct Written {
        let path: String
        let fixed: [Finding]
        let left: [Finding]
        /// The corrected Content-Type for a body without a request; `nil` if it needs no correction.
        let contentType: String?
    }

    /// Writes the file, and returns the result. `explanation` is the result of the first reading of the input, and
    /// `read` reads the input again.
    func fix(
        _ explanation: Explanation, from source: Source, read: ((RawSpan) throws -> Void) throws -> Void
    ) -> ExplanationReport.Fix {
        do {
            return try write(explanation, from: source, read: read).map { .written($0) } ?? .nothingCertain
        } catch {
            return .failed(CommandFailure(error))
        }
    }

    /// Writes the file completely or not at all. A temporary file is used, because the input may be the file to
    /// replace. Returns `nil` if only the sender can fix the problems, and nothing was written.
    private func write(
        _ explanation: Explanation, from source: Source, read: ((RawSpan) throws -> Void) throws -> Void
    ) throws -> Written? {
        guard explanation.isValid || !explanation.fixable.isEmpty else { return nil }
        let outcome: (fixed: [Finding], left: [Finding])
        do {
            let place = try place()
            let partial = place.path.string + ".partial-\(UUID().uuidString.prefix(8))"
            let file = try FileDescriptor.open(
                FilePath(partial), .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: place.replaced == nil ? permissions : .ownerReadWrite)
            do {
                defer { try? file.close() }
                let fixed = try Self.writeFixed(explanation, from: source, into: file, read: read)
                outcome = explanation.outcome(reading: fixed)
                // A change is no fix if it changes a content, or if the problem is found again.
                guard explanation.keepsContents(in: fixed), explanation.isValid || !outcome.fixed.isEmpty else {
                    try FileManager.default.removeItem(atPath: partial)
                    return nil
                }
                if let replaced = place.replaced { try Self.copyOwnership(of: replaced, to: file) }
                guard rename(partial, place.path.string) == 0 else { throw Errno(rawValue: errno) }
            } catch {
                try? FileManager.default.removeItem(atPath: partial)
                throw error
            }
        } catch {
            throw CommandFailure(
                description: "\(path) cannot be written: \(error)", status: ExitStatus.unwritableOutput)
        }
        var contentType: String?
        if case .body = source { contentType = explanation.fixedContentType }
        return Written(path: path, fixed: outcome.fixed, left: outcome.left, contentType: contentType)
    }

    /// Finds the path to write to. If ``path`` is a symbolic link, its target is written and the link is kept.
    /// `replaced` is the status of an existing file; `nil` for a new file. Throws `Errno`, or ``NotARegularFile`` for a
    /// directory or another kind of file.
    private func place() throws -> (path: FilePath, replaced: Stat?) {
        let replaced = try status()
        if let replaced, replaced.type != .regular { throw NotARegularFile(type: replaced.type) }
        var place = FilePath(path)
        var links = 0
        while let target = try? FileManager.default.destinationOfSymbolicLink(atPath: place.string) {
            links += 1
            guard links <= 40 else { throw Errno.tooManySymbolicLinkLevels }
            place = place.removingLastComponent().pushing(FilePath(target))
        }
        return (place, replaced)
    }

    private func status() throws -> Stat? {
        do {
            return try FilePath(path).stat()
        } catch  where error == .noSuchFileOrDirectory {
            return nil
        }
    }

    /// The error for a path that exists and is not a regular file.
    private struct NotARegularFile: Error, CustomStringConvertible {
        let type: FileType

        var description: String { "it is \(kind), and not a regular file" }

        private var kind: String {
            switch type {
            case .directory: "a directory"
            case .fifo: "a pipe"
            case .socket: "a socket"
            default: "a device"
            }
        }
    }

    /// Gives a file the owner and permissions of the file that it replaces.
    private static func copyOwnership(of replaced: Stat, to file: FileDescriptor) throws {
        // Only root may change the owner. Other users own the new file themselves.
        _ = fchown(file.rawValue, replaced.userID.rawValue, replaced.groupID.rawValue)
        guard fchmod(file.rawValue, replaced.permissions.rawValue) == 0 else { throw Errno(rawValue: errno) }
    }

    /// Writes the fixed request or body into a file, and reads it again to find out what is fixed. Returns what was
    /// written, with the findings of reading it again.
    private static func writeFixed(
        _ explanation: Explanation, from source: Source, into file: FileDescriptor,
        read: ((RawSpan) throws -> Void) throws -> Void
    ) throws -> Explanation {
        var fixer = RequestFixer(explanation)
        switch source {
        case .body(let contentType):
            var second = FormExamination(contentType: explanation.fixedContentType ?? contentType)
            func write(_ chunk: RawSpan) throws {
                second.read(chunk)
                try file.write(chunk)
            }
            try read { chunk in try fixer.read(chunk, handOn: write) }
            try fixer.finish(handOn: write)
            return second.finish()
        case .request(var request):
            var second = RequestExamination()
            var failure: (any Error)?
            func write(_ chunk: RawSpan) throws {
                second.read(chunk)
                try file.write(chunk)
            }
            func fix(_ chunk: RawSpan) {
                guard failure == nil else { return }
                do {
                    try fixer.read(chunk, handOn: write)
                } catch {
                    failure = error
                }
            }
            try read { chunk in
                try request.read(chunk, handOn: fix)
                if let failure { throw failure }
            }
            try request.finish(handOn: fix)
            if let failure { throw failure }
            try fixer.finish(handOn: write)
            return second.finish()
        }
    }
}

extension FixedFile.Written {
    /// The fixed and the remaining problems, as lines for the end of the explanation.
    func lines(columns: Int, style: TextStyle) -> [String] {
        let action = fixed.isEmpty ? "Written unchanged to" : "Fixed in"
        var lines = ["", style("\(action) \(VisibleBytes.text(path))", .good)]
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
