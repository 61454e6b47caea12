#if Server
import Synchronization
import SystemPackage

/// A new file that is being written from its beginning; closed when nobody holds it any more.
final class DurableFile: Sendable {
    private let path: FilePath
    private let descriptor: FileDescriptor
    /// How many bytes were written, and of how many the disk was told.
    private let progress = Mutex(Progress())

    private struct Progress {
        var written: Int64 = 0
        var begun: Int64 = 0
    }

    /// The disk works while more comes in, and at the end there is little left to wait for.
    private static let stretchBytes: Int64 = 8 << 20

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
        let isStretch = progress.withLock { progress in
            progress.written += Int64(bytes.byteCount)
            return progress.written - progress.begun >= Self.stretchBytes
        }
        if isStretch { beginSynchronizing() }
    }

    /// Lets the disk begin with what was written, and waits for nothing.
    func beginSynchronizing() {
        let stretch = progress.withLock { progress in
            defer { progress.begun = progress.written }
            return progress
        }
        DurableFiles.beginSynchronizing(
            descriptor, from: stretch.begun, count: stretch.written - stretch.begun)
    }

    /// Waits until the bytes are on the disk.
    func finish() throws(UploadStoreError) {
        try DurableFiles.synchronize(descriptor, path)
    }
}
#endif
