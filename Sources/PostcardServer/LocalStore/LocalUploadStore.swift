public import Logging
import PostcardFiles
import Synchronization
public import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keeps uploads in a directory of the local file system.
///
/// ```swift
/// let store = try LocalUploadStore(directory: "received")
/// ```
///
/// Each record has a folder, named with its identifier, that holds `record.json` and the files under names of the
/// store's own: `0`, `1` and so on. An empty file has none. A record that was made under an ``UploadKey`` has an
/// empty file `key-` with the key's digest beside them; the keys of all records are held in memory. What is being
/// received lies in `.incoming` until every file and the record are on the disk; then one rename makes it appear.
///
/// The identifiers of all records are in memory too, so that a listing does not read the directory. Folders may be
/// removed by hand while the store is open: such a record is left out of listings from then on. Folders that are put
/// there by hand are listed once the store is opened again. If `.incoming` is removed, it is made again.
///
/// One store at a time may have a directory open, which a lock on `.lock` sees to. The memory that an upload takes
/// does not depend on the size of its files: at most 1 MiB waits to be written, and less where there are many.
public final class LocalUploadStore: ResumableUploadStore {
    let directory: StoreDirectory
    private let lock: FileLock
    private let logger: Logger
    let identifiers: UploadIDSource
    let keys: KeyIndex
    let index: RecordIndex
    let names: SharedDirectorySync
    /// How many uploads with files are under way, which share the memory for what waits to be written.
    let uploadCount = Atomic<Int>(0)
    private let folderCount = Atomic<Int>(0)
    /// What can be resumed.
    let unfinished: LocalUnfinishedUploads

    /// Opens a directory, making it where there is none, and removes from it what a crash left half-written.
    ///
    /// The call blocks while it works on the disk.
    ///
    /// - Parameters:
    ///   - directory: Where the uploads are kept.
    ///   - keptFreeBytes: How many bytes of the disk are left to others: uploads are refused before they use them.
    ///     64 MiB unless given.
    ///   - logger: Told of what could not be removed; by identifiers alone.
    /// - Throws: ``UploadStoreError`` with the code ``UploadStoreError/Code/inUse`` where another store has the
    ///   directory open, and ``UploadStoreError/Code/unusableDirectory`` where it cannot be made or written to.
    public init(
        directory: FilePath, keptFreeBytes: Int64 = 64 << 20, logger: Logger = Logger(label: "postcard.store")
    ) throws(UploadStoreError) {
        let path = directory
        let directory = StoreDirectory(path: path, keptFreeBytes: keptFreeBytes)
        guard FilePath(path.string) == path else { throw .unusable(path, Errno.illegalByteSequence) }
        do {
            try DurableFiles.makeDirectories(directory.incoming)
            // Here, because an upload that finds it made by another does not wait until its name is on the disk.
            try DurableFiles.makeDirectories(directory.unfinished)
            // Whoever made it before may have had no time for this.
            try DurableFiles.synchronizeDirectory(path)
            let file = try FileDescriptor.open(
                directory.lock, .readWrite, options: [.create, .closeOnExec], permissions: [.ownerRead, .ownerWrite])
            lock = try FileLock(file, directory.lock)
            // Without a sync: what a power cut brings back is removed at the next start.
            for name in try FileManager.default.contentsOfDirectory(atPath: directory.incoming.string) {
                try FileManager.default.removeItem(atPath: directory.incoming.appending(name).string)
            }
            let known = try directory.identifiers()
            identifiers = UploadIDSource(after: known.max())
            index = RecordIndex(known)
            keys = KeyIndex(Self.keys(of: known, directory, logger))
            unfinished = try LocalUnfinishedUploads(directory: directory, logger: logger)
        } catch let error as FileError where error.errno == .wouldBlock {
            throw .inUse(path)
        } catch {
            throw .unusable(path, error)
        }
        names = SharedDirectorySync(path)
        self.directory = directory
        self.logger = logger
    }

    /// Opens a directory by a path that is text, as the other initializer does.
    public convenience init(directory: String) throws(UploadStoreError) {
        try self.init(directory: FilePath(directory))
    }

    deinit {
        unfinished.close()
    }

    private static func keys(of ids: [UploadID], _ directory: StoreDirectory, _ logger: Logger) -> [String: UploadID] {
        var keys: [String: UploadID] = [:]
        for id in ids {
            do throws(UploadStoreError) {
                guard let key = try StoreDirectory.key(ofRecordIn: directory.folder(of: id)) else { continue }
                keys[key] = id
            } catch {
                // A damaged record is no reason to receive nothing.
                logger.error("Could not read a record's key", metadata: ["upload": "\(id)", "error": "\(error)"])
            }
        }
        return keys
    }

    /// A name for a folder that is in nobody's way: what is incomplete is gone when the store is opened again.
    func nextFolderName() -> String { String(folderCount.add(1, ordering: .relaxed).newValue) }

    /// Small forms find out that there is no room when they are written.
    private static let smallBytes: Int64 = 1 << 20

    public func beginUpload(
        under key: UploadKey? = nil, announcedBytes: Int64? = nil
    ) async throws -> sending LocalUpload {
        let isKept = key.flatMap { keys.record(under: $0) } == nil
        if isKept, let announcedBytes, announcedBytes > Self.smallBytes {
            try await onFileThread { [directory] in try directory.checkRoom(for: announcedBytes) }
        }
        return LocalUpload(store: self, key: key, isKept: isKept)
    }

    /// Removes unfinished uploads that have expired, unless that was done a moment ago.
    package func removeExpired() async { await unfinished.sweep() }

    /// The bytes that are free where the uploads are kept.
    package func freeBytes() async throws -> Int64 {
        try await onFileThread { [directory] in try DurableFiles.freeBytes(at: directory.path) }
    }

    public func createUnfinishedUpload(
        _ id: ResumptionID, of form: UnfinishedForm, options: ResumptionOptions
    ) async throws -> LocalUnfinishedUpload? {
        try await unfinished.create(id, of: form, options: options)
    }

    public func unfinishedUpload(_ id: ResumptionID) async throws -> LocalUnfinishedUpload? {
        await unfinished.find(id)
    }

    public func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID] {
        index.newest(limit, before: id)
    }

    public func record(_ id: UploadID) async throws -> UploadRecord? {
        try await reading(id) { try $0.record() }
    }

    public func openRecord(_ id: UploadID) async throws -> (any StoredFile)? {
        try await reading(id) { record in
            try record.check()
            return record.file
        }
    }

    public func describedFile(_ index: Int, of id: UploadID) async throws -> UploadRecord.File? {
        try await reading(id) { try $0.describedFile(index) }
    }

    /// Reads a record's file. A record that someone removed by hand is found missing here.
    private func reading<Value: Sendable>(
        _ id: UploadID, _ body: @escaping @Sendable (StoredRecord) throws -> Value?
    ) async throws -> Value? {
        try await onFileThread { [directory, index] in
            if let value = try directory.record(id, body) { return value }
            if try DurableFiles.isMissing(directory.folder(of: id)) { index.remove(id) }
            return nil
        }
    }

    public func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)? {
        try await onFileThread { [directory] in
            if let file = try LocalFile(directory.file(index, of: id)) { return file }
            guard let described = try directory.record(id, { try $0.describedFile(index) }) else { return nil }
            // Only what has content has a file.
            guard described.size == 0 else {
                throw UploadStoreError(.unavailable, "File \(index) of upload \(id) is gone from its folder.")
            }
            return EmptyFile()
        }
    }

    /// Checks that an upload could begin now.
    ///
    /// - Throws: ``UploadStoreError`` with the reason if it could not.
    package func checkReadiness() async throws {
        try await onFileThread { [directory] in try directory.checkReadiness() }
    }

    private static func remove(_ path: FilePath, _ logger: Logger) {
        do {
            try FileManager.default.removeItem(atPath: path.string)
        } catch {
            logger.warning(
                "Could not remove what was deleted; the next start will",
                metadata: ["upload": "\(path.lastComponent?.string ?? "")", "error": "\(error)"])
        }
    }

    public func delete(_ id: UploadID) async throws -> Bool {
        let isDeleted = try await onFileThread { [directory, logger, keys, names, index] in
            let doomed = directory.incoming.appending(id.text)
            do throws(FileError) {
                // The rename is what deletes: a crash right behind it leaves something to sweep, never half a record.
                try directory.moveToIncoming(directory.folder(of: id), as: doomed)
            } catch  where error.errno == .noSuchFileOrDirectory {
                index.remove(id)
                return false
            }
            index.remove(id)
            // Removed in any case: nothing else would take it away before the next start.
            defer { Self.remove(doomed, logger) }
            do {
                if let key = try StoreDirectory.key(ofRecordIn: doomed) { keys.forget(id, under: key) }
            } catch {
                // The record is gone from the listing in this case too.
                try names.synchronize()
                throw error
            }
            try names.synchronize()
            return true
        }
        if isDeleted { await unfinished.forget(id) }
        return isDeleted
    }
}
