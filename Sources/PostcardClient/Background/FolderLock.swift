import Foundation
import SystemPackage

/// The hold of one process on a folder: the system lets go of it when the process ends, however it ends.
final class FolderLock: Sendable {
    private let descriptor: FileDescriptor

    /// - Throws: ``BackgroundUploadError`` where another has it.
    init(_ folder: URL) throws(BackgroundUploadError) {
        let file = folder.appending(component: "lock")
        do {
            descriptor = try FileDescriptor.open(
                FilePath(file.path), .readWrite, options: [.create, .closeOnExec],
                permissions: [.ownerRead, .ownerWrite])
        } catch {
            throw .folder(file, "open", error)
        }
        if flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 {
            let error = Errno(rawValue: errno)
            try? descriptor.close()
            throw error == .wouldBlock ? .folderInUse(folder) : .folder(file, "lock", error)
        }
    }

    deinit {
        // A child that is just being started holds the descriptor too, and with it the lock.
        _ = flock(descriptor.rawValue, LOCK_UN)
        try? descriptor.close()
    }
}
