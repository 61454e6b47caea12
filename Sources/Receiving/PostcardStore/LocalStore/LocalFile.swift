import NIOCore
import PostcardFiles
import PostcardFoundation
import SystemPackage

/// A file of a local store, open for reading. The file is closed when this object is released.
final class LocalFile: StoredFile {
    let size: Int64
    let path: FilePath
    private let descriptor: SystemPackage.FileDescriptor

    /// Opens a regular file; `nil` if there is none. Blocks only briefly: see ``DurableFiles/openRegularFile(_:_:)``.
    /// Throws `FileError`, also if the file has a second hard link, which may be in another directory.
    init?(_ path: FilePath) throws(FileError) {
        self.path = path
        guard let descriptor = try DurableFiles.openRegularFile(path, .readOnly) else { return nil }
        self.descriptor = descriptor
        do {
            let status = try descriptor.stat()
            guard status.linkCount <= 1 else {
                throw FileError("read", path, Errno.tooManyLinks, reason: "it has a second name elsewhere")
            }
            size = status.size
        } catch {
            try? descriptor.close()
            throw error as? FileError ?? FileError("look at", path, error)
        }
    }

    deinit {
        try? descriptor.close()
    }

    func read(at offset: Int64, count: Int) async throws -> ByteBuffer {
        try await onFileThread { [self] in try bytes(at: offset, count: count) }
    }

    /// Reads up to `count` bytes from an offset; fewer only at the end of the file. Blocks.
    func bytes(at offset: Int64, count: Int) throws(FileError) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: count)
        while buffer.readableBytes < count {
            let position = offset + Int64(buffer.readableBytes)
            let missing = count - buffer.readableBytes
            let read: Int
            do {
                read = try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: missing) { bytes in
                    let room = UnsafeMutableRawBufferPointer(rebasing: bytes.prefix(missing))
                    return try descriptor.read(fromAbsoluteOffset: position, into: room)
                }
            } catch {
                throw FileError("read", path, error)
            }
            if read == 0 { break }
        }
        return buffer
    }

    /// Reads the whole file. Blocks. `maximumBytes` is the maximum size, in bytes. A larger file counts as damaged.
    func data(maximumBytes: Int64) throws -> Data {
        guard size <= maximumBytes else {
            throw StoreDamage("The file has \(size) bytes, more than \(maximumBytes).")
        }
        var data = Data(capacity: Int(size))
        while true {
            let piece = try bytes(at: Int64(data.count), count: Self.pieceBytes)
            guard piece.readableBytes > 0, data.count < maximumBytes else { return data }
            data.append(contentsOf: piece.readableBytesView)
        }
    }

    /// The number of bytes read at once: few enough for the allocator to reuse their memory.
    static let pieceBytes = 64 << 10
}

/// A stored file without content. The directory contains no file for it.
struct EmptyFile: StoredFile {
    let size: Int64 = 0

    func read(at offset: Int64, count: Int) async throws -> ByteBuffer { ByteBuffer() }
}

/// A file for screening. It is opened only for each read, because more files may wait for screening than can be open.
struct ClosedFile: StoredFile {
    let path: FilePath
    let size: Int64

    func read(at offset: Int64, count: Int) async throws -> ByteBuffer {
        try await onFileThread {
            guard let file = try LocalFile(path) else { throw FileError("open", path, Errno.noSuchFileOrDirectory) }
            return try file.bytes(at: offset, count: count)
        }
    }
}

/// A small file that contains a value as JSON, and is always replaced as a whole. Every call blocks.
struct JSONFile: Sendable {
    let path: FilePath

    private static let maximumBytes: Int64 = 1 << 20

    /// Reads the value; `nil` if the file does not exist. Throws `FileError`, and ``StoreDamage`` or `DecodingError` if
    /// the file is damaged.
    func read<Value: Decodable>(_ type: Value.Type) throws -> Value? {
        try bytes().map { try JSONDecoder().decode(type, from: $0) }
    }

    /// Writes the value to a new file.
    func write(_ value: some Encodable) throws(FileError) {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .withoutEscapingSlashes
            try Self.write(encoder.encode(value), to: path)
        } catch {
            throw error as? FileError ?? FileError("write", path, error, reason: "\(error)")
        }
    }

    private static func write(_ content: Data, to path: FilePath) throws {
        // A value that is too large to be read must not be written.
        guard content.count <= maximumBytes else {
            throw StoreDamage("\(content.count) bytes are more than the \(maximumBytes) that are read.")
        }
        let file = try DurableFile(path)
        try file.write(content.bytes)
        try file.synchronize()
    }

    /// Replaces the value, for one caller at a time. After a crash, the file contains the new or the old value.
    func replace(with value: some Encodable) throws(FileError) {
        let new = JSONFile(path: FilePath(path.string + ".new"))
        // A crash or a full disk may have left this file of an earlier attempt.
        try? FileManager.default.removeItem(atPath: new.path.string)
        try new.write(value)
        try move(new.path)
    }

    /// Replaces the file with JSON. Several callers may do so at once; the last one wins.
    func replace(withJSON content: Data) throws(FileError) {
        let new = FilePath("\(path.string).\(UInt64.random(in: 0...(.max))).new")
        do {
            try Self.write(content, to: new)
        } catch {
            try? FileManager.default.removeItem(atPath: new.string)
            throw error as? FileError ?? FileError("write", new, error, reason: "\(error)")
        }
        try move(new)
    }

    private func move(_ new: FilePath) throws(FileError) {
        try DurableFiles.move(new, to: path)
        try DurableFiles.synchronizeDirectory(path.removingLastComponent())
    }

    /// Reads the bytes of the file; `nil` if the file does not exist.
    func bytes() throws -> Data? {
        try LocalFile(path).map { try $0.data(maximumBytes: Self.maximumBytes) }
    }
}
