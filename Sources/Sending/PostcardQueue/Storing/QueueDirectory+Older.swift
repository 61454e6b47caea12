import PostcardFiles
import PostcardFoundation
import SystemPackage

/// Queues that an older version has written. They are kept: their forms may be nowhere else.
extension QueueDirectory {
    private static let olderPrefix = "older-"

    /// Moves the database and the bodies of an older version into a folder of the queue's directory.
    ///
    /// The database is moved last: if the process ends before that, the next one continues.
    ///
    /// - Parameter isOlder: Whether it is still an older one. Another process may have set it aside since it was looked
    ///   at, and made a new one in its place.
    /// - Throws: ``UploadQueueError`` if a process sends from the queue, or if the files cannot be moved.
    static func setAside(_ url: URL, if isOlder: () -> Bool) throws(UploadQueueError) {
        do throws(FileError) {
            let root = try PrivateDirectory(FilePath(url.absoluteURL.path))
            let lock = try root.lock(lockName)
            defer { withExtendedLifetime(lock) {} }
            guard isOlder() else { return }
            let folder = try folderForOlder(in: root)
            for name in [bodiesName, importsName, closingName] + companionNames + [databaseName] {
                try root.move(name, to: folder)
            }
            try folder.synchronize()
            try root.synchronize()
        } catch {
            throw error.errno == .wouldBlock ? .inUse(url.path) : UploadQueueError(error)
        }
    }

    /// The first folder without a database, which may have files of a process that ended while it moved them.
    private static func folderForOlder(in root: PrivateDirectory) throws(FileError) -> PrivateDirectory {
        var number = 1
        while true {
            guard let name = FilePath.Component(olderPrefix + "\(number)") else {
                throw FileError("make", root.path, Errno.invalidArgument)
            }
            let folder = try root.directory(name)
            if try folder.status(of: databaseName) == nil { return folder }
            number += 1
        }
    }

    /// The folders with queues of older versions, oldest first.
    func foldersSetAside() throws(FileError) -> [URL] {
        try root.names().compactMap { name in
            name.hasPrefix(Self.olderPrefix) ? Int(name.dropFirst(Self.olderPrefix.count)) : nil
        }.sorted().map { url.appending(path: Self.olderPrefix + "\($0)") }
    }
}
