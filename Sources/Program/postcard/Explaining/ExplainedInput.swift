import Foundation
import PostcardFiles
import Synchronization
import SystemPackage

/// The input to explain: a file, or a stream with a copy for a second reading.
final class ExplainedInput {
    private let descriptor: FileDescriptor
    private let closesDescriptor: Bool
    /// The offset of the first byte to read; `nil` for a stream. It may be greater than 0, because another program may
    /// have read the beginning of standard input.
    private let start: Int64?
    /// A file with a copy of a stream; `nil` if the input needs no copy.
    private let spool: FileDescriptor?
    /// The permissions of a new file with the input's bytes: those of the input's file. For a stream, only the owner
    /// may read the new file, because the bytes may include passwords and cookies.
    let permissions: FilePermissions

    /// Opens a file, or standard input if the name is `-`. `isReadTwice` says whether the input will be read again.
    init(_ name: String, isReadTwice: Bool) throws {
        let isStandardInput = name == "-"
        descriptor =
            isStandardInput
            ? .standardInput : try FileDescriptor.open(FilePath(name), .readOnly, options: .closeOnExec)
        closesDescriptor = !isStandardInput
        do {
            try SmallFile.checkEnd(of: descriptor)
        } catch {
            if !isStandardInput { try? descriptor.close() }
            throw CommandFailure.input(isStandardInput ? TextFile.standardInput : name, error.description)
        }
        start = try? descriptor.seek(offset: 0, from: .current)
        spool = isReadTwice && start == nil ? try FileDescriptor.unnamedTemporaryFile() : nil
        if let status = try? descriptor.stat(), status.type == .regular {
            permissions = status.permissions.intersection(FilePermissions(rawValue: 0o666)).union(.ownerReadWrite)
        } else {
            permissions = .ownerReadWrite
        }
    }

    deinit {
        if closesDescriptor { try? descriptor.close() }
        try? spool?.close()
    }

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

    /// The error for a stream that cannot be copied.
    static func notKept(_ error: any Error) -> CommandFailure {
        CommandFailure(
            description: "The input cannot be kept for --fix or --edit: \(error). Free space in \(temporaryFolder), or "
                + "set TMPDIR to another folder.",
            status: ExitStatus.unwritableOutput)
    }

    private static var temporaryFolder: String { FileManager.default.temporaryDirectory.path }

    /// Reads the whole input a second time.
    func readAgain(_ body: (RawSpan) throws -> Void) throws {
        let again = spool ?? descriptor
        try again.seek(offset: spool == nil ? start ?? 0 : 0, from: .start)
        try again.readChunks(body)
    }
}

/// A copy of the bytes of a connection, for a second reading.
final class ConnectionCopy: Sendable {
    /// The file with the bytes, or the failure of copying. Without a copy, a request is explained but not fixed.
    private let file: Mutex<Result<FileDescriptor, CommandFailure>>

    init() {
        file = Mutex(Result { try FileDescriptor.unnamedTemporaryFile() }.mapError { ExplainedInput.notKept($0) })
    }

    deinit {
        if case .success(let descriptor) = file.withLock({ $0 }) { try? descriptor.close() }
    }

    /// The failure of copying; `nil` if the copy is complete.
    var failure: CommandFailure? {
        if case .failure(let failure) = file.withLock({ $0 }) { failure } else { nil }
    }

    /// Adds the next bytes of the connection.
    func append(_ bytes: RawSpan) {
        file.withLock { file in
            guard case .success(let descriptor) = file else { return }
            do {
                try descriptor.write(bytes)
            } catch {
                file = .failure(ExplainedInput.notKept(error))
                try? descriptor.close()
            }
        }
    }

    /// Reads all bytes of the copy.
    func read(_ body: (RawSpan) throws -> Void) throws {
        let descriptor = try file.withLock { $0 }.get()
        try descriptor.seek(offset: 0, from: .start)
        try descriptor.readChunks(body)
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

    /// Reads the whole file, and passes each chunk to a closure.
    func readChunks(_ body: (RawSpan) throws -> Void) throws {
        var chunk = ContiguousArray<UInt8>(repeating: 0, count: 1 << 20)
        while true {
            let count = try chunk.withUnsafeMutableBytes { try read(into: $0) }
            if count == 0 { return }
            try body(chunk.span.bytes.extracting(first: count))
        }
    }
}
