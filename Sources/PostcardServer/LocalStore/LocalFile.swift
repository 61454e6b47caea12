import NIOCore
import PostcardFiles
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A file of a local store, open for reading. It is closed with the object.
final class LocalFile: StoredFile {
    let size: Int64
    let path: FilePath
    private let descriptor: SystemPackage.FileDescriptor

    /// Opens a regular file. Blocks, but not for long: see ``DurableFiles/openRegularFile(_:_:)``.
    ///
    /// - Returns: `nil` if there is no file at the path.
    init?(_ path: FilePath) throws(FileError) {
        self.path = path
        guard let descriptor = try DurableFiles.openRegularFile(path, .readOnly) else { return nil }
        self.descriptor = descriptor
        do {
            size = try descriptor.stat().size
        } catch {
            try? descriptor.close()
            throw FileError("look at", path, error)
        }
    }

    deinit {
        try? descriptor.close()
    }

    func read(at offset: Int64, count: Int) async throws -> ByteBuffer {
        try await onFileThread { [self] in try bytes(at: offset, count: count) }
    }

    /// Up to `count` bytes from an offset; fewer only if the file ends. Blocks.
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

    /// The whole content. Blocks.
    func data() throws(FileError) -> Data {
        var data = Data(capacity: Int(size))
        while true {
            let piece = try bytes(at: Int64(data.count), count: Self.pieceBytes)
            guard piece.readableBytes > 0 else { return data }
            data.append(contentsOf: piece.readableBytesView)
        }
    }

    /// Small enough for the allocator to reuse its memory.
    static let pieceBytes = 64 << 10
}

/// A file without content, which is not written to the directory.
struct EmptyFile: StoredFile {
    let size: Int64 = 0

    func read(at offset: Int64, count: Int) async throws -> ByteBuffer { ByteBuffer() }
}

/// Bytes in memory, read as a stored file is.
struct BytesInMemory: StoredFile {
    let bytes: ByteBuffer

    var size: Int64 { Int64(bytes.readableBytes) }

    func read(at offset: Int64, count: Int) async throws -> ByteBuffer {
        let start = Int(min(max(offset, 0), size))
        return bytes.getSlice(at: bytes.readerIndex + start, length: min(count, Int(size) - start)) ?? ByteBuffer()
    }
}
