#if Server
import SystemPackage

/// A new file that is being written from its beginning; closed when nobody holds it any more.
final class DurableFile: Sendable {
    private let path: FilePath
    private let descriptor: FileDescriptor

    init(_ path: FilePath) throws(UploadStoreError) {
        self.path = path
        do {
            descriptor = try FileDescriptor.open(
                path, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: [.ownerRead, .ownerWrite])
        } catch {
            throw .file("create", path, error)
        }
    }

    deinit {
        try? descriptor.close()
    }

    func write(_ bytes: RawSpan) throws(UploadStoreError) {
        do {
            try bytes.withUnsafeBytes { bytes in
                var written = 0
                while written < bytes.count {
                    written += try descriptor.write(UnsafeRawBufferPointer(rebasing: bytes[written...]))
                }
            }
        } catch {
            throw .file("write to", path, error)
        }
    }

    /// Lets the disk begin with what was written, and waits for nothing.
    func beginSynchronizing() {
        DurableFiles.beginSynchronizing(descriptor)
    }

    /// Waits until the bytes are on the disk.
    func finish() throws(UploadStoreError) {
        try DurableFiles.synchronize(descriptor, path)
    }
}
#endif
