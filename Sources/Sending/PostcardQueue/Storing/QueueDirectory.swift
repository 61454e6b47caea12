import PostcardFiles
import PostcardForm
import PostcardFoundation
import Synchronization
import SystemPackage

/// The directory of a queue:
///
/// ```
/// queue.sqlite         the database, with SQLite's other files next to it
/// queue.closed         the state of the database's files when the queue was closed
/// queue.lock           locked by the process that sends
/// bodies/UUID          the body of an upload, as it is sent
/// imports/UUID         the files of an upload, until its body is written
/// older-N              a queue of an older version that was set aside
/// ```
///
/// The database names a body only by its UUID. So even a manipulated database cannot make the queue read or remove a
/// file outside `bodies`.
final class QueueDirectory: Sendable {
    let url: URL
    let root: PrivateDirectory
    let bodies: PrivateDirectory
    let imports: PrivateDirectory
    private let freeBytes: @Sendable (URL) -> Int64?
    /// Registers the database as open in this process, until this object is released.
    let use: OpenDatabases.Use
    private let locking = Mutex(())

    static let databaseName: FilePath.Component = "queue.sqlite"
    static let logName: FilePath.Component = "queue.sqlite-wal"
    static let companionNames: [FilePath.Component] = [logName, "queue.sqlite-shm", "queue.sqlite-journal"]
    static let bodiesName: FilePath.Component = "bodies"
    static let importsName: FilePath.Component = "imports"
    static let lockName: FilePath.Component = "queue.lock"
    static let closingName: FilePath.Component = "queue.closed"

    var databasePath: String { url.appending(path: Self.databaseName.string).path }

    /// Opens a directory, or makes it if there is none.
    ///
    /// - Parameters:
    ///   - systemSends: Whether the system sends the bodies. The system may make another hard link to a body for each
    ///     transfer, even for a transfer that was just cancelled.
    ///   - freeBytes: Returns the number of free bytes at a folder.
    ///   - check: Checks an existing database before other files are made next to it.
    /// - Throws: ``UploadQueueError`` if the directory cannot be used or other users can write to it; errors of
    ///   `check`.
    init(
        _ url: URL, systemSends: Bool, freeBytes: @escaping @Sendable (URL) -> Int64?,
        checkingDatabase check: (FileDescriptor) throws(UploadQueueError) -> Void
    ) throws(UploadQueueError) {
        self.url = url
        self.freeBytes = freeBytes
        do {
            let root = try PrivateDirectory(FilePath(url.absoluteURL.path))
            self.root = root
            use = try OpenDatabases.shared.use(Self.databaseName, in: root) {
                // The protection is set before other files are made in the directory, because they inherit it.
                try Self.protect(url)
                try Self.prepareDatabase(in: root, check)
            }
            for name in [Self.databaseName] + Self.companionNames { try root.protect(name) }
            bodies = try root.directory(Self.bodiesName, allowsOtherNames: systemSends)
            imports = try root.directory(Self.importsName)
        } catch let error as FileError {
            throw UploadQueueError(error)
        } catch {
            throw error as? UploadQueueError
                ?? .unusableDirectory(
                    "The queue's directory \(url.path) cannot be used: \(error).", underlyingError: error)
        }
    }

    /// Checks the database and SQLite's other files, or makes the database if there is none.
    private static func prepareDatabase(
        in root: PrivateDirectory, _ check: (FileDescriptor) throws(UploadQueueError) -> Void
    ) throws {
        // SQLite would make a database that all users can read. Its other files get the database's permissions.
        let isNew = try root.status(of: databaseName) == nil
        let database = try root.openOrCreate(databaseName)
        defer { try? database.close() }
        if !isNew { try check(database) }
        for name in companionNames where try root.status(of: name) != nil {
            let companion = try root.openOrCreate(name)
            defer { try? companion.close() }
            try checkJournal(companion, root.path.appending(name))
        }
    }

    /// Refuses a journal that names another file, because SQLite would remove that file after a rollback. The queue's
    /// own transactions use one database, so their journals name no file.
    private static func checkJournal(_ journal: FileDescriptor, _ path: FilePath) throws {
        // https://www.sqlite.org/fileformat.html, 3: after a name in a journal are its length, its checksum and these
        // bytes.
        let mark: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
        let size = try journal.stat().size
        guard path.string.hasSuffix("-journal"), size >= mark.count else { return }
        var end = [UInt8](repeating: 0, count: mark.count)
        let count = try end.withUnsafeMutableBytes {
            try journal.read(fromAbsoluteOffset: size - Int64(mark.count), into: $0)
        }
        guard count < mark.count || end != mark else {
            throw UploadQueueError.damaged(path.string, "it names a file that SQLite would remove")
        }
    }

    /// The size of the database and SQLite's other files, in bytes.
    func databaseBytes() throws -> Int64 {
        try ([Self.databaseName] + Self.companionNames).reduce(0) { sum, name in
            let (total, isTooLarge) = sum.addingReportingOverflow(try root.status(of: name)?.size ?? 0)
            return isTooLarge ? .max : total
        }
    }

    /// Makes the directory readable while the phone is locked. Excludes it from backups, so that another phone does not
    /// restore its uploads and send them a second time.
    private static func protect(_ url: URL) throws {
        #if canImport(Darwin)
        var directory = url
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        try directory.setResourceValues(values)
        #if !os(macOS)
        // New files inherit the directory's protection, but existing files do not.
        let names = [databaseName.string, "\(databaseName)-wal", "\(databaseName)-shm", bodiesName.string]
        let files = names.map { url.appending(path: $0).path }.filter(FileManager.default.fileExists(atPath:))
        for path in [url.path] + files {
            try FileManager.default.setAttributes(
                [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: path)
        }
        #endif
        #endif
    }

    /// Locks the queue, so that only this process sends from it.
    func lock() throws(UploadQueueError) -> FileLock {
        do throws(FileError) {
            return try locking.withLock { _ throws(FileError) in try root.lock(Self.lockName) }
        } catch {
            throw error.errno == .wouldBlock ? .inUse(url.path) : UploadQueueError(error)
        }
    }

    /// Runs work unless a process is sending. A sender of this process waits for the end of the work.
    func whileNoneSends(_ work: () throws -> Void) throws {
        try locking.withLock { _ in
            guard let lock = try? root.lock(Self.lockName) else { return }
            try work()
            withExtendedLifetime(lock) {}
        }
    }

    /// The URL of an upload's body, for the background session.
    func bodyURL(_ upload: UUID) -> URL {
        url.appending(path: Self.bodiesName.string).appending(path: upload.uuidString)
    }

    /// The URL of the folder for an upload's picked items.
    func importURL(_ upload: UUID) -> URL {
        url.appending(path: Self.importsName.string).appending(path: upload.uuidString)
    }

    /// Writes the body of an upload, and waits until it is on disk.
    func write(_ layout: FormLayout, for upload: UUID) async throws -> (length: Int64, parts: [UploadRow.Part]) {
        guard let name = FilePath.Component(upload.uuidString) else { throw CancellationError() }
        let written = try await write(layout, as: name, in: bodies)
        return (written.length, UploadRow.Part.list(layout, written.contentRanges))
    }

    /// Writes a body, and waits until it is on disk. If the body is a whole file and the file system supports clones,
    /// the body is a clone of the file, which needs neither time nor space.
    ///
    /// - Throws: ``UploadQueueError`` with code ``UploadQueueError/Code/full`` before writing, if there is too little
    ///   free space.
    func write(
        _ layout: FormLayout, as name: FilePath.Component, in directory: PrivateDirectory
    ) async throws -> (length: Int64, contentRanges: [Range<Int64>]) {
        do {
            if let clone = try layout.withWholeFile({ try directory.clone($0, as: name) }) {
                try clone.synchronize()
                try directory.synchronize()
                return (layout.contentLength ?? 0, layout.contentRanges ?? [])
            }
            if let needed = layout.contentLength, let free = freeBytes(url), free < needed {
                throw UploadQueueError.full(url.path, needed: needed, free: free)
            }
            let file = try directory.create(name)
            let written = try await layout.writeBody(to: file.descriptor)
            try file.synchronize()
            try directory.synchronize()
            return written
        } catch {
            try? directory.remove(name)
            switch error {
            case let error as FileError: throw UploadQueueError(error)
            case let error as Errno:
                throw UploadQueueError(FileError("write to", directory.path.appending(name), error))
            default: throw error
            }
        }
    }

    /// Opens the body of an upload.
    ///
    /// - Throws: `FileError`, also if the length of the body is not `length`.
    func openBody(_ upload: UUID, length: Int64) throws(FileError) -> FileDescriptor {
        guard let name = FilePath.Component(upload.uuidString) else {
            throw FileError("open", bodies.path, Errno.invalidArgument)
        }
        let file = try bodies.open(name)
        let size: Int64
        do {
            size = try file.stat().size
        } catch {
            size = -1
        }
        guard size == length else {
            try? file.close()
            throw FileError(
                "use", bodies.path.appending(name), Errno.noSuchFileOrDirectory,
                reason: "it has \(size) bytes instead of \(length)")
        }
        return file
    }

    /// Removes the body of an upload. If that fails, ``sweep(keeping:olderThan:)`` removes it later.
    func removeBody(_ upload: UUID) {
        guard let name = FilePath.Component(upload.uuidString) else { return }
        try? bodies.remove(name)
    }

    /// Removes the folder for an upload's picked items.
    func removeImport(_ upload: UUID) {
        try? FileManager.default.removeItem(at: importURL(upload))
    }

    /// Removes bodies that belong to no upload and were last written before a given time. A process left them when it
    /// ended during a write. Only regular files with the name of a body are removed.
    func sweep(keeping uploads: Set<UUID>, olderThan limit: Date) {
        for name in (try? bodies.names()) ?? [] {
            guard let upload = UUID(uuidString: name), upload.uuidString == name, !uploads.contains(upload),
                let file = FilePath.Component(name), let changed = try? bodies.lastChange(of: file),
                changed < Int64(limit.timeIntervalSince1970)
            else { continue }
            try? bodies.remove(file)
        }
    }

    /// Removes import folders that have no upload and were last changed before a given time.
    func sweepImports(keeping uploads: Set<UUID>, olderThan limit: Date) {
        for name in (try? imports.names()) ?? [] {
            guard let upload = UUID(uuidString: name), upload.uuidString == name, !uploads.contains(upload),
                let folder = FilePath.Component(name),
                let changed = try? imports.lastChange(of: folder, as: .directory),
                changed < Int64(limit.timeIntervalSince1970)
            else { continue }
            try? ImportFolder(upload, in: self).remove()
        }
    }
}

extension FileError: PassingError {
    /// Whether the call may succeed later, because the phone was locked, the disk was full or too many files were open.
    /// If the file is missing or was replaced, the call fails again.
    package var mayPass: Bool {
        let passing: [Errno] = [
            .notPermitted, .permissionDenied, .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .ioError,
            .interrupted, .noSpace, .diskQuotaExceeded,
        ]
        return reason == nil && passing.contains(errno)
    }
}

/// Records the state of the database's files when a queue is closed. Checking a whole database takes long, and is only
/// needed if a process or the power failed during a write, or if another program has changed the files.
extension QueueDirectory {
    /// Whether the database's files are unchanged since the queue was last closed.
    var isAsClosed: Bool {
        guard let state = fileState, let note = try? root.open(Self.closingName) else { return false }
        defer { try? note.close() }
        var bytes = [UInt8](repeating: 0, count: Self.maximumNoteBytes)
        guard let count = try? bytes.withUnsafeMutableBytes({ try note.read(fromAbsoluteOffset: 0, into: $0) }) else {
            return false
        }
        return bytes[..<count].elementsEqual(state.utf8)
    }

    /// Records the state of the database's files. If that fails, the whole database is checked the next time.
    func noteClosing() {
        guard let state = fileState, let note = try? root.openOrCreate(Self.closingName) else { return }
        defer { try? note.close() }
        guard (try? note.resize(to: 0)) != nil else { return }
        _ = try? note.writeAll(state.utf8)
    }

    /// The maximum size of the recorded state in bytes, more than any state has.
    private static let maximumNoteBytes = 1024

    /// The sizes of the database and its log, and the times of their last changes, as text; `nil` if they cannot be
    /// read. An empty log counts as none. SQLite's other files have no lasting content.
    private var fileState: String? {
        var state = "\(QueueDatabase.version)\n"
        for name in [Self.databaseName, Self.logName] {
            guard let version = try? root.version(of: name), version.bytes > 0 else {
                if name == Self.databaseName { return nil }
                continue
            }
            state += "\(name.string) \(version)\n"
        }
        return state
    }
}

/// Queues of older versions of the package, which may have the only copies of their forms.
extension QueueDirectory {
    private static let olderPrefix = "older-"

    /// Moves the database and the bodies of an older version into a folder of the queue's directory.
    ///
    /// The database is moved last, so that the next process can continue if this process ends in between.
    ///
    /// - Parameter isOlder: Returns whether the database is still that of an older version. Another process may have
    ///   moved it since the check, and made a new database in its place.
    /// - Throws: ``UploadQueueError`` if a process is sending from the queue, or if the files cannot be moved.
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

    /// The first folder without a database. The folder may have files that an earlier process moved before it ended.
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
