import Foundation
import PostcardCLibrary
import PostcardDoctor
import PostcardForm
import SystemPackage

/// The file that `--fix` writes: the request or the body, with everything fixed that is certain.
struct FixedFile {
    let path: String
    /// The permissions of a new file. By default only its owner can read it, because requests have passwords and
    /// cookies.
    var permissions = FilePermissions.ownerReadWrite

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
        do {
            let place = try place()
            let partial = place.path.string + ".partial-\(UUID().uuidString.prefix(8))"
            let file = try FileDescriptor.open(
                FilePath(partial), .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: place.replaced == nil ? permissions : .ownerReadWrite)
            do {
                defer { try? file.close() }
                try Self.writeFixed(explanation, from: request, into: file, read: read)
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
        return Outcome(
            path: path, fixed: explanation.fixable, left: explanation.unfixable,
            contentType: request == nil ? explanation.fixedContentType : nil)
    }

    /// Finds the path to write to. If ``path`` is a symbolic link, that is the path of its target, and the link stays.
    ///
    /// - Returns: The path, and the status of the file that is replaced; `nil` for a new file.
    /// - Throws: `Errno`, or ``NotARegularFile`` if something else than a regular file is there.
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

    /// A path at which something else than a regular file is.
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

    /// Gives a file the owner and the permissions of the file that it replaces.
    private static func copyOwnership(of replaced: Stat, to file: FileDescriptor) throws {
        // Only root may give a file away. Everyone else owns the file that replaces another one.
        _ = fchown(file.rawValue, replaced.userID.rawValue, replaced.groupID.rawValue)
        guard fchmod(file.rawValue, replaced.permissions.rawValue) == 0 else { throw Errno(rawValue: errno) }
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
