import Dispatch
import Foundation
import PostcardForm
import SystemPackage

/// A pipe or standard input as the content of a part, of any length. It is read only as fast as it is sent.
struct PipeInput: AsyncSequence, AsyncIteratorProtocol, Sendable {
    private static let chunkSize = 256 << 10

    /// The path of a pipe, which is opened at the first read; `nil` for standard input.
    private let path: FilePath?
    private var file: FileDescriptor?
    /// Bytes that were read to recognize the type, and are returned first.
    private var first = Data()
    private var hasEnded = false

    /// Makes an input from a pipe or standard input. `path` is the path of a pipe; `nil` for standard input.
    init(_ path: FilePath? = nil) {
        self.path = path
        file = path == nil ? .standardInput : nil
    }

    /// The name of the input in messages.
    var name: String { path?.string ?? TextFile.standardInput }

    func makeAsyncIterator() -> PipeInput { self }

    /// The first bytes, which may show the type. Waits for the writer.
    mutating func firstBytes() throws -> [UInt8] {
        while first.count < MediaType.firstBytesCount, let chunk = try read() { first += chunk }
        return Array(first.prefix(MediaType.firstBytesCount))
    }

    /// Stores the whole input in a file without a name, which is gone when the program ends. Waits for the writer.
    /// Returns a URL of the open file.
    mutating func stored() throws -> URL {
        if let file = redirectedFile { return file }
        let stored: FileDescriptor
        do {
            let path = try FormPart.makeFolder().appending(component: UUID().uuidString).path
            stored = try FileDescriptor.open(
                FilePath(path), .readWrite, options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: [.ownerRead, .ownerWrite])
            try FileManager.default.removeItem(atPath: path)
            try stored.writeAll(first)
        } catch {
            throw notStored(error)
        }
        while let chunk = try read() {
            do {
                try stored.writeAll(chunk)
            } catch {
                throw notStored(error)
            }
        }
        return SentFile.url(ofOpen: stored)
    }

    /// The URL of the file that standard input comes from; `nil` for a pipe, or after some of the file was read.
    private var redirectedFile: URL? {
        guard path == nil, let file, (try? file.stat())?.type == .regular,
            (try? file.seek(offset: 0, from: .current)) == Int64(first.count)
        else { return nil }
        let url = SentFile.url(ofOpen: file)
        return ExaminedContent(url) == nil ? nil : url
    }

    private func notStored(_ error: any Error) -> CommandFailure {
        CommandFailure(
            description: "\(name) cannot be stored in the temporary folder: \(error). Its metadata cannot be removed "
                + "otherwise. Free some space, or add: --metadata as-is",
            status: ExitStatus.unwritableOutput)
    }

    mutating func next() async throws -> Data? {
        guard first.isEmpty else {
            defer { first = Data() }
            return first
        }
        // Opening and reading wait for the writer, which must not block a thread of Swift's concurrency pool.
        let (input, chunk) = try await withCheckedThrowingContinuation { [self] continuation in
            DispatchQueue.global().async {
                var input = self
                continuation.resume(
                    with: Result {
                        let chunk = try input.read()
                        return (input, chunk)
                    })
            }
        }
        self = input
        return chunk
    }

    private mutating func read() throws -> Data? {
        guard !hasEnded else { return nil }
        do {
            let opened = try file ?? path.map { try .open($0, .readOnly, options: .closeOnExec) } ?? .standardInput
            file = opened
            var chunk = Data(count: Self.chunkSize)
            let count = try chunk.withUnsafeMutableBytes { try opened.read(into: $0) }
            if count > 0 { return chunk.prefix(count) }
            hasEnded = true
            if path != nil { try opened.close() }
            return nil
        } catch {
            throw CommandFailure.input(name, "cannot be read: \(error)")
        }
    }
}
