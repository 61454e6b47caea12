#if os(macOS) || os(Linux)
import Foundation
import NIOCore
import PostcardFiles
import PostcardFoundation
public import PostcardServer
import SystemPackage

/// Screens files with a program, such as a virus scanner.
///
/// ```swift
/// let scanner = CommandScreening("clamdscan --no-summary --fdpass")
/// options.screen = { try await scanner.screen($0) }
/// ```
///
/// The program is started once for each file, with the file's path as its last argument. Its exit status is the
/// verdict: 0 accepts the file, and 1 refuses it for the reason in the first line of the output. After any other
/// status, the form is refused with 503. The program must only read the file: if an accepted file was removed or
/// changed, the form is refused with 503. The program gets the environment of the server without the variables
/// `POSTCARD_…`, which may be tokens and secrets.
///
/// `UploadOptions.maximumConcurrentScreenings` limits how many programs run at once. `UploadOptions.screeningTimeout`
/// limits how long a program may run. After that time, its process group is killed.
///
/// The program leads its own process group. When the program ends, the other processes of the group are killed. A
/// process that the program moved to another group or session continues to run and is not waited for. If the server is
/// process 1 of a container, such a process becomes a zombie when it ends: give the container an init, as `docker run
/// --init` does.
public struct CommandScreening: Sendable, Hashable {
    /// The command line with the program and its options, as in a shell.
    public var command: String

    /// Makes a screening that runs a program.
    public init(_ command: String) {
        self.command = command
    }

    /// Runs the program. Cancelling the task kills it.
    ///
    /// - Throws: ``ScreeningError`` if there is no verdict.
    public func screen(_ file: FinishedFile) async throws -> ScreeningVerdict {
        let files = TemporaryFiles()
        defer { files.remove() }
        let path: FilePath
        if let known = file.path { path = known } else { path = try await copy(file.content, to: files) }
        let before = try await onFileThread { FileState(path) }
        let ending = try await run(on: path)
        switch ending.status {
        case 0:
            // If the file was changed or replaced, the program has not checked the bytes that the store would keep.
            guard try await onFileThread({ FileState(path) }) == before else {
                throw ScreeningError("The command accepted a file that it took away or changed.")
            }
            return .accepted
        case 1: return .refused(reason: Self.reason(in: ending.output))
        default: throw ScreeningError("The command ended with status \(ending.status).")
        }
    }

    private func copy(_ content: any StoredFile, to files: TemporaryFiles) async throws -> FilePath {
        let (path, file) = try await onFileThread { try files.make() }
        var offset: Int64 = 0
        while offset < content.size {
            let bytes = try await content.read(at: offset, count: 256 << 10)
            guard bytes.readableBytes > 0 else { throw ScreeningError("A file is shorter than it says.") }
            try await onFileThread { try file.write(bytes.readableBytesSpan) }
            offset += Int64(bytes.readableBytes)
        }
        return path
    }

    private func run(on path: FilePath) async throws -> ChildProcess.Ending {
        do {
            return try await ChildProcess.run(
                ["/bin/sh", "-c", "exec \(command) \"$@\"", "screen", path.string],
                without: [ChildProcess.options], maximumOutputBytes: Self.maximumOutputBytes)
        } catch let error as Errno {
            throw ScreeningError("The command could not be run: \(error).")
        }
    }

    /// The attributes that change if a file is replaced or written to.
    private struct FileState: Equatable {
        private let number: UInt64?
        private let size: UInt64?
        private let modified: Date?

        init(_ path: FilePath) {
            let attributes = try? FileManager.default.attributesOfItem(atPath: path.string)
            number = attributes?[.systemFileNumber] as? UInt64
            size = attributes?[.size] as? UInt64
            modified = attributes?[.modificationDate] as? Date
        }
    }

    /// The maximum number of output bytes that are kept: enough for a reason.
    private static let maximumOutputBytes = 4096
    private static let longestReason = 300

    private static func reason(in output: [UInt8]) -> String {
        let text = String(streamSafe: output)
        let line = text.split(whereSeparator: \.isNewline).first.map { String($0.prefix(longestReason)) }
        return line ?? "The screening gave no reason."
    }
}

/// Why a screening has no verdict.
public struct ScreeningError: PostcardError {
    /// A sentence that describes the error.
    public let message: String

    /// Makes an error for an app's own screening.
    public init(_ message: String) {
        self.message = message
    }
}
#endif
