#if Server
import NIOCore
import PostcardFiles
import SystemPackage

/// A file of a local store, open for reading; closed when nobody holds it any more.
final class LocalFile: StoredFile {
    let size: Int64
    private let path: FilePath
    private let descriptor: SystemPackage.FileDescriptor

    /// - Returns: `nil` where there is no file at the path.
    init?(_ path: FilePath) throws(FileError) {
        self.path = path
        do {
            descriptor = try SystemPackage.FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
        } catch Errno.noSuchFileOrDirectory {
            return nil
        } catch {
            throw FileError("open", path, error)
        }
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
        try await onFileThread { [self] in
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
    }
}

/// A file without content, which takes no place in the directory.
struct EmptyFile: StoredFile {
    let size: Int64 = 0

    func read(at offset: Int64, count: Int) async throws -> ByteBuffer { ByteBuffer() }
}
#endif
