import PostcardCLibrary
public import PostcardFoundation
import Synchronization
import SystemPackage

/// A private folder for the files that preparations make.
///
/// The folder is locked while it is used. If a process crashes, the system releases the lock, and the next process
/// removes the folder.
package struct PreparationFolder: Sendable {
    package let url: URL
    /// The lock of the folder; `nil` on a file system without locks, where folders of crashed processes remain.
    private let lock: FolderLock?

    private static let prefix = "prepared-"

    /// Creates the folder in ``FormPart/temporaryFolder``, and removes the folders of ended processes.
    package init() throws(FormError) {
        do {
            _ = try FormPart.makeFolder()
            Self.removeAbandoned()
            for _ in 0..<8 {
                let url = FormPart.temporaryFolder.appending(
                    component: Self.prefix + UUID().uuidString, directoryHint: .isDirectory)
                try FileManager.default.createDirectory(
                    at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
                // Without a lock, another process may consider the folder abandoned.
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

    #if os(iOS) && !targetEnvironment(macCatalyst) || os(tvOS) || os(watchOS) || os(visionOS)
    private static let ownedPrefix = "owned-"

    /// Removes all folders for files that parts own, except `own`. Only this app uses the temporary folder, so the
    /// removed folders belong to processes that have ended.
    private static func removeOwnedFolders(but own: PreparationFolder?) {
        for url in folders(named: ownedPrefix) where url.lastPathComponent != own?.url.lastPathComponent {
            try? FileManager.default.removeItem(at: url)
        }
    }

    private init(unlocked url: URL) throws(FormError) {
        do {
            try FileManager.default.createDirectory(
                at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw .preparation("the folder \(url.path) cannot be created: \(error)", path: url.path, error)
        }
        (self.url, lock) = (url, nil)
    }
    #endif

    /// The folder for files that parts own. It exists while this process runs.
    private static let ofProcess = Mutex<PreparationFolder?>(nil)

    /// The folder for files that parts own. If this process is killed, the next process removes the files.
    package static func forOwnedFiles() throws(FormError) -> URL {
        try ofProcess.withLock { (folder) throws(FormError) in
            // The system may have emptied the temporary folder.
            if let folder, FileManager.default.fileExists(atPath: folder.url.path) { return folder.url }
            #if os(iOS) && !targetEnvironment(macCatalyst) || os(tvOS) || os(watchOS) || os(visionOS)
            // iOS may end an app that is suspended while it holds a lock (0xdead10cc), so the folder is not locked.
            if folder == nil { removeOwnedFolders(but: nil) }
            let made = try PreparationFolder(
                unlocked: FormPart.temporaryFolder.appending(
                    component: ownedPrefix + UUID().uuidString, directoryHint: .isDirectory))
            #else
            let made = try PreparationFolder()
            #endif
            folder = made
            return made.url
        }
    }

    /// Creates the folder without blocking the caller's actor.
    @concurrent package static func make() async throws(FormError) -> PreparationFolder { try PreparationFolder() }

    /// Removes the folder with its files, without blocking the caller's actor.
    @concurrent package func remove() async {
        try? FileManager.default.removeItem(at: url)
        lock?.release()
    }

    /// Removes the folders of ended processes.
    package static func removeAbandoned() {
        for url in folders(named: prefix) {
            guard let lock = try? FolderLock(url) else { continue }
            try? FileManager.default.removeItem(at: url)
            lock.release()
        }
        #if os(iOS) && !targetEnvironment(macCatalyst) || os(tvOS) || os(watchOS) || os(visionOS)
        ofProcess.withLock { removeOwnedFolders(but: $0) }
        #endif
    }

    private static func folders(named prefix: String) -> [URL] {
        let folder = FormPart.temporaryFolder
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasPrefix(prefix) }
            .map { folder.appending(component: $0, directoryHint: .isDirectory) }
    }
}

private final class FolderLock: Sendable {
    private let descriptor: FileDescriptor

    /// Locks a folder. `nil` if the folder is already locked. Throws if the folder is missing or its file system has no
    /// locks.
    init?(_ folder: URL) throws {
        descriptor = try FileDescriptor.open(
            FilePath(folder.path), .readOnly, options: [.directory, .noFollow, .closeOnExec])
        guard flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 else { return }
        // This object's deinit closes the descriptor.
        guard Errno(rawValue: errno) == .wouldBlock else { throw Errno(rawValue: errno) }
        return nil
    }

    /// Releases the lock, even if a child process that is just being started has a copy of the descriptor. Closing the
    /// descriptor would not release the lock before the child closes its copy.
    func release() {
        _ = flock(descriptor.rawValue, LOCK_UN)
    }

    deinit {
        try? descriptor.close()
    }
}

extension FormPart {
    /// The default folder for files that are made for parts, such as copies of loaded files: "Postcard" in the
    /// temporary folder. Where users have one temporary folder in common, the user's number follows, as in
    /// "Postcard-1000" on Linux. Only the user can access the folder.
    ///
    /// A file that was made for a part is removed with the last copy of the part. A file that was prepared for an
    /// upload is removed after the upload. If a run is killed, the next run that loads or prepares a file or opens a
    /// queue removes its files.
    public static var temporaryFolder: URL {
        #if canImport(Darwin)
        let name = "Postcard"
        #else
        let name = "Postcard-\(geteuid())"
        #endif
        return FileManager.default.temporaryDirectory.appending(component: name, directoryHint: .isDirectory)
    }

    /// Makes the folder for files of parts if it does not exist. The folder defaults to ``temporaryFolder``, which must
    /// belong to this user. The permissions of an existing folder that the caller chose are not changed.
    package static func makeFolder(_ folder: URL? = nil) throws -> URL {
        let made = folder ?? temporaryFolder
        if !FileManager.default.fileExists(atPath: made.path) {
            try FileManager.default.createDirectory(
                at: made, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        if folder == nil { try closeToOthers(made) }
        return made
    }

    /// Restricts a folder to this user. Other users know its name, and may have created it first.
    private static func closeToOthers(_ folder: URL) throws {
        let descriptor = try FileDescriptor.open(
            FilePath(folder.path), .readOnly, options: [.directory, .noFollow, .closeOnExec])
        try descriptor.closeAfter {
            guard try descriptor.stat().userID.rawValue == geteuid(), fchmod(descriptor.rawValue, 0o700) == 0 else {
                throw Errno.notPermitted
            }
        }
    }
}

/// Checks the free space before a file is copied, because a full disk would affect all apps.
package enum FreeSpace {
    /// The number of bytes that this program can write to a folder's volume; `nil` if unknown.
    package static func bytes(at folder: URL) -> Int64? {
        #if os(iOS) || os(macOS) || os(visionOS)
        // A person asked for the upload, so space that the system can free on demand counts:
        // developer.apple.com/forums/thread/826582. A volume that frees nothing may report 0.
        let values = try? folder.resourceValues(forKeys: [.volumeAvailableCapacityForImportantUsageKey])
        if let bytes = values?.volumeAvailableCapacityForImportantUsage, bytes > 0 { return bytes }
        #endif
        var room = statvfs()
        guard FilePath(folder.path).withPlatformString({ statvfs($0, &room) }) == 0 else { return nil }
        let (bytes, isOver) = UInt64(room.f_bavail).multipliedReportingOverflow(by: UInt64(room.f_frsize))
        return isOver ? .max : Int64(clamping: bytes)
    }

    /// Compares the free space in a folder with the size of a file to copy. Returns the bytes that the copy needs, and
    /// the free bytes. Returns `nil` if the space is enough or unknown, if the copy takes no space, or if `file` is a
    /// folder, whose size does not include its files.
    package static func shortage(
        ofCopying file: URL, to folder: URL, freeBytes: (URL) -> Int64? = bytes
    ) -> (needed: Int64, free: Int64)? {
        guard let status = try? FilePath(file.path).stat(), status.type == .regular,
            let free = freeBytes(folder), free < status.size, !isCloned(status, to: folder)
        else { return nil }
        return (Int64(status.size), free)
    }

    /// Whether the system clones the file, so that its copy takes no space.
    private static func isCloned(_ file: Stat, to folder: URL) -> Bool {
        #if os(iOS) || os(macOS) || os(visionOS)
        let values = try? folder.resourceValues(forKeys: [.volumeSupportsFileCloningKey])
        return values?.volumeSupportsFileCloning == true
            && (try? FilePath(folder.path).stat())?.deviceID == file.deviceID
        #else
        return false
        #endif
    }
}
