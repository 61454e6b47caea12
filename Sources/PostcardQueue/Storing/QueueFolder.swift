import PostcardFiles
import PostcardForm
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The folder of a queue:
///
/// ```
/// queue.sqlite         the database, with the files that SQLite keeps beside it
/// queue.lock           locked by the process that sends
/// bodies/UUID          the body of an upload, as it is sent
/// ```
///
/// The database names a body by the upload's UUID alone. Whatever it says, no other file is read or removed.
final class QueueFolder: Sendable {
    let url: URL
    private let directory: PrivateDirectory
    let bodies: PrivateDirectory

    static let databaseName: FilePath.Component = "queue.sqlite"
    private static let companionNames: [FilePath.Component] = [
        "queue.sqlite-wal", "queue.sqlite-shm", "queue.sqlite-journal",
    ]
    private static let bodiesName: FilePath.Component = "bodies"

    var databasePath: String { url.appending(path: Self.databaseName.string).path }

    /// - Parameter check: Looks at the database before anything is made beside it.
    /// - Throws: ``UploadQueueError`` if others can write to the folder, or it cannot be used; what `check` throws.
    init(_ url: URL, checkingDatabase check: (FileDescriptor) throws(UploadQueueError) -> Void) throws(UploadQueueError)
    {
        self.url = url
        do {
            directory = try PrivateDirectory(FilePath(url.absoluteURL.path))
            // Before anything is made in it, which then has the same protection.
            try Self.protect(url)
            // Made here because SQLite would make it for all to read; the files beside it get its permissions.
            let isNew = try directory.status(of: Self.databaseName) == nil
            let database = try directory.openOrCreate(Self.databaseName)
            defer { try? database.close() }
            if !isNew { try check(database) }
            for name in Self.companionNames where try directory.status(of: name) != nil {
                let companion = try directory.openOrCreate(name)
                defer { try? companion.close() }
                try Self.checkJournal(companion, directory.path.appending(name))
            }
            bodies = try directory.directory(Self.bodiesName)
        } catch let error as FileError {
            throw UploadQueueError(error)
        } catch {
            throw error as? UploadQueueError
                ?? UploadQueueError(.unusableDirectory, "The folder \(url.path) cannot be used: \(error)")
        }
    }

    /// Refuses a journal that names another file, which SQLite would remove after undoing what the journal holds, wherever
    /// that file is. The queue's own transactions concern one database, and their journals name none.
    private static func checkJournal(_ journal: FileDescriptor, _ path: FilePath) throws {
        // https://www.sqlite.org/fileformat.html, 3: a name is followed by its length, a checksum and these bytes.
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

    /// The bytes of the database and of what was written to it last.
    func databaseBytes() throws -> Int64 {
        try ([Self.databaseName] + Self.companionNames).reduce(0) { sum, name in
            let (total, isTooLarge) = sum.addingReportingOverflow(try directory.status(of: name)?.size ?? 0)
            return isTooLarge ? .max : total
        }
    }

    /// Keeps the folder readable while the phone is locked, and out of backups: what is restored on another phone would be
    /// sent a second time.
    private static func protect(_ url: URL) throws {
        #if canImport(Darwin)
        var folder = url
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        try folder.setResourceValues(values)
        #if !os(macOS)
        // Those that are there already, made by an app whose files have another protection.
        let names = [databaseName.string, "\(databaseName)-wal", "\(databaseName)-shm", bodiesName.string]
        let files = names.map { url.appending(path: $0).path }.filter(FileManager.default.fileExists(atPath:))
        for path in [url.path] + files {
            try FileManager.default.setAttributes(
                [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: path)
        }
        #endif
        #endif
    }

    /// Takes the right to send from the queue in this process.
    func lock() throws(UploadQueueError) -> FileLock {
        do throws(FileError) {
            return try directory.lock("queue.lock")
        } catch {
            throw error.errno == .wouldBlock ? .inUse(url.path) : UploadQueueError(error)
        }
    }

    /// Where the body of an upload is, for the system that sends it.
    func bodyURL(_ upload: UUID) -> URL {
        url.appending(path: Self.bodiesName.string).appending(path: upload.uuidString)
    }

    /// Writes the body of an upload, and waits until it is on the disk.
    func write(_ layout: FormLayout, for upload: UUID) async throws -> (length: Int64, parts: [UploadRecord.Part]) {
        guard let name = FilePath.Component(upload.uuidString) else { throw CancellationError() }
        do {
            let file = try bodies.create(name)
            let written = try await layout.writeBody(to: file.descriptor)
            try file.synchronize()
            try bodies.synchronize()
            return (written.length, UploadRecord.Part.list(layout, written.contentRanges))
        } catch {
            removeBody(upload)
            switch error {
            case let error as FileError: throw UploadQueueError(error)
            case let error as Errno: throw UploadQueueError(FileError("write to", bodies.path.appending(name), error))
            default: throw error
            }
        }
    }

    /// Opens the body of an upload.
    ///
    /// - Throws: `FileError`, also if the file does not have the length that it should have.
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

    /// Removes the body of an upload. One that cannot be removed now is removed by ``sweep(keeping:olderThan:)``.
    func removeBody(_ upload: UUID) {
        guard let name = FilePath.Component(upload.uuidString) else { return }
        try? bodies.remove(name)
    }

    /// Removes bodies that belong to no upload and were last written before the given time: what a process left behind that
    /// ended while it wrote. Names that are no UUID are left alone, and so is whatever is no file.
    func sweep(keeping uploads: Set<UUID>, olderThan limit: Date) {
        for name in (try? bodies.names()) ?? [] {
            guard let upload = UUID(uuidString: name.string), upload.uuidString == name.string,
                !uploads.contains(upload), let changed = try? bodies.lastChange(of: name),
                changed < Int64(limit.timeIntervalSince1970)
            else { continue }
            try? bodies.remove(name)
        }
    }

    /// The folder in which version 3 and earlier kept copies of files, each upload in a folder of its own; `nil` if there is
    /// none.
    func legacyFiles() throws(FileError) -> PrivateDirectory? {
        if try directory.status(of: "files") == nil { return nil }
        return try directory.existingDirectory("files")
    }

    func removeLegacyFiles() {
        try? directory.removeDirectory("files")
    }
}

extension FileError {
    /// Whether the same may work later: a locked phone, too many open files. A file that is missing, and a link or a folder in
    /// its place, stay so.
    var mayPass: Bool {
        let passing: [Errno] = [
            .notPermitted, .permissionDenied, .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .ioError,
            .interrupted,
        ]
        return reason == nil && passing.contains(errno)
    }
}
