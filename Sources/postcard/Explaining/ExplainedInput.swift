import Foundation
import PostcardDoctor
import SystemPackage

/// What is explained: a file, or what came only once and is kept for whoever reads it again.
final class ExplainedInput {
    private let descriptor: FileDescriptor
    private let closesDescriptor: Bool
    /// Where bytes that come only once are kept; `nil` where the input can be read again, or needs not be.
    private let spool: FileDescriptor?

    /// Opens a file, or takes standard input.
    ///
    /// - Parameters:
    ///   - name: The path, or `-`.
    ///   - isReadTwice: Whether it is to be read again.
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

    /// Reads to the end, however long that is.
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

    /// What comes only once, and cannot be kept to be read again.
    static func notKept(_ error: any Error) -> CommandFailure {
        CommandFailure(
            description: "The input cannot be kept to be mended: \(error). Make room in \(temporaryFolder), or name "
                + "another folder in TMPDIR.",
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
    /// A file of the program's own, which is gone when it is closed.
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

    /// Reads to the end, however long that is.
    func readChunks(_ body: (RawSpan) throws -> Void) throws {
        var chunk = ContiguousArray<UInt8>(repeating: 0, count: 1 << 20)
        while true {
            let count = try chunk.withUnsafeMutableBytes { try read(into: $0) }
            if count == 0 { return }
            try body(chunk.span.bytes.extracting(first: count))
        }
    }
}
