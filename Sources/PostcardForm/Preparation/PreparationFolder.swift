import PostcardCLibrary
package import PostcardFoundation
import SystemPackage

/// A folder for the files that preparations make. Only its owner can read it.
///
/// The folder is locked as long as it is used. The system releases the lock of a process that crashes, and the next one
/// removes its folder.
package struct PreparationFolder: Sendable {
    package let url: URL
    /// `nil` on a file system without locks, where nothing is removed after a crash.
    private let lock: FolderLock?

    private static let prefix = "prepared-"

    /// Creates it in ``FormPart/temporaryFolder``, and removes there what processes have left that are gone.
    package init() throws(FormError) {
        do {
            Self.removeAbandoned(in: try FormPart.makeFolder())
            for _ in 0..<8 {
                let url = FormPart.temporaryFolder.appending(
                    component: Self.prefix + UUID().uuidString, directoryHint: .isDirectory)
                try FileManager.default.createDirectory(
                    at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
                // Until it is locked, another process may take it for an abandoned one.
                let lock: FolderLock?
                do {
                    guard let held = try FolderLock(url) else { continue }
                    lock = held
                } catch {
                    lock = nil
                }
                guard FileManager.default.fileExists(atPath: url.path) else { continue }
                (self.url, self.lock) = (url, lock)
                return
            }
            throw Errno.resourceBusy
        } catch {
            let folder = FormPart.temporaryFolder.path
            throw .preparation("a folder in \(folder) cannot be created: \(error)", path: folder, error)
        }
    }

    /// Creates the folder without blocking the caller's actor.
    @concurrent package static func make() async throws(FormError) -> PreparationFolder { try PreparationFolder() }

    /// Removes it with its files, and not on the caller's actor.
    @concurrent package func remove() async {
        try? FileManager.default.removeItem(at: url)
        lock?.release()
    }

    private static func removeAbandoned(in folder: URL) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        for name in names where name.hasPrefix(prefix) {
            let url = folder.appending(component: name, directoryHint: .isDirectory)
            guard let lock = try? FolderLock(url) else { continue }
            try? FileManager.default.removeItem(at: url)
            lock.release()
        }
    }
}

/// The exclusive lock of a folder.
private final class FolderLock: Sendable {
    private let descriptor: FileDescriptor

    /// Locks a folder; `nil` if it is locked already. Throws if there is no such folder, or no locks.
    init?(_ folder: URL) throws {
        descriptor = try FileDescriptor.open(
            FilePath(folder.path), .readOnly, options: [.directory, .noFollow, .closeOnExec])
        guard flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 else { return }
        // The descriptor is closed at the end of this object, which is now.
        guard Errno(rawValue: errno) == .wouldBlock else { throw Errno(rawValue: errno) }
        return nil
    }

    /// Ends the lock. A child process that is being started shares the descriptor, and would keep the lock.
    func release() {
        _ = flock(descriptor.rawValue, LOCK_UN)
    }

    deinit {
        try? descriptor.close()
    }
}
