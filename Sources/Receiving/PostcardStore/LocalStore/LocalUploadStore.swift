public import Logging
import PostcardFiles
public import PostcardFoundation
import Synchronization
public import SystemPackage

/// Keeps uploads in a directory of the local file system.
///
/// ```swift
/// let store = try LocalUploadStore(directory: "received")
/// ```
///
/// Each record has a folder, named after its identifier, with `record.json` and the files `0`, `1` and so on. An empty
/// file is not written. Some folders have further files:
///
/// - for a record with an ``UploadKey``: an empty file, named `key-` and the digests of the key and of the record
/// - for a record that was not announced to a webhook yet: an empty file `outbox`
/// - for a large record: `record.offsets`, with the offsets of the files' descriptions in the record
///
/// An upload that is being received is in `.incoming` until all files and the record are on the disk. A single rename
/// then makes it appear. Unfinished uploads are in `.unfinished`.
///
/// A receiver that removes old uploads stores their ages in `.ages`.
///
/// Files are checked when they are read, as if a stranger had written them. A damaged record or unfinished upload is
/// moved to `.damaged` with its files, and logged once. Files in `.damaged` are never served or removed. After a
/// repair, an upload can be moved back while the store is closed.
///
/// The identifiers and keys of all records are in memory, so a listing does not read the directory. You can remove
/// folders by hand while the store is open; their records are no longer listed. Added folders are listed, and can be
/// deleted by ``delete(_:)``, after the store is opened again. The store restores a missing `.incoming`.
///
/// Back up the directory with copies and not with hard links (`cp -l`): a file with a second name is not read.
///
/// Only one store at a time can open a directory, because it locks the file `.lock`. The memory for an upload does not
/// depend on the size of its files: at most 1 MiB per upload waits to be written, and less if there are many uploads.
public final class LocalUploadStore: ResponseKeepingUploadStore, ResumableUploadStore, MaintainedUploadStore {
    let directory: StoreDirectory
    private let lock: FileLock
    private let logger: Logger
    let identifiers: UploadIDSource
    let keys: KeyIndex
    let index: RecordIndex
    let outboxIndex: LocalOutbox
    let names: SharedDirectorySync
    /// The number of uploads in progress with files. They share the memory for bytes that wait to be written.
    let uploadCount = Atomic<Int>(0)
    private let folderCount = Atomic<Int>(0)
    /// The prefix of folder names for uploads in progress. Each start has its own prefix: a new upload must not use a
    /// folder that an earlier start could not remove.
    private let folderPrefix = String(UInt64.random(in: 0 ... .max), radix: 36)
    private let damaged: DamagedUploads
    let unfinished: LocalUnfinishedUploads

    /// Opens or makes a directory, and removes incomplete uploads that a crash left. The call blocks.
    ///
    /// - Parameters:
    ///   - directory: The directory.
    ///   - keptFreeBytes: The number of bytes that uploads must leave free on the disk. Defaults to 64 MiB.
    ///   - logger: Logs uploads that could not be removed or read. Messages contain only their identifiers.
    /// - Throws: ``UploadStoreError`` with the code ``UploadStoreError/Code/inUse`` if another store has the directory
    ///   open, and ``UploadStoreError/Code/unusableDirectory`` if the directory cannot be made or written to.
    public init(
        directory: FilePath, keptFreeBytes: Int64 = 64 << 20, logger: Logger = Logger(label: "postcard.store")
    ) throws(UploadStoreError) {
        let path = directory
        let directory = StoreDirectory(path: path, keptFreeBytes: keptFreeBytes)
        guard FilePath(path.string) == path else { throw .unusable(path, Errno.illegalByteSequence) }
        do {
            try DurableFiles.makeDirectories(directory.incoming)
            // The directory is made and synced now, so that no upload must wait for this.
            try DurableFiles.makeDirectories(directory.unfinished)
            // An earlier start may have been killed before its sync.
            try DurableFiles.synchronizeDirectory(path)
            let file = try FileDescriptor.open(
                directory.lock, .readWrite, options: [.create, .closeOnExec], permissions: [.ownerRead, .ownerWrite])
            lock = try FileLock(file, directory.lock)
            // No sync is needed: a folder that reappears after a power cut is removed at the next start.
            for name in try FileManager.default.contentsOfDirectory(atPath: directory.incoming.string) {
                Self.remove(directory.incoming.appending(name), logger)
            }
            let known = try directory.identifiers()
            identifiers = UploadIDSource(after: known)
            index = RecordIndex(known)
            let marks = Self.marks(of: known, directory, logger)
            keys = KeyIndex(marks.keys)
            outboxIndex = LocalOutbox(marks.outbox)
            damaged = DamagedUploads(directory: directory, logger: logger)
            unfinished = try LocalUnfinishedUploads(directory: directory, damaged: damaged, logger: logger)
        } catch let error as FileError where error.errno == .wouldBlock {
            throw .inUse(path)
        } catch {
            throw .unusable(path, error)
        }
        names = SharedDirectorySync(path)
        self.directory = directory
        self.logger = logger
    }

    /// Opens the directory at a path with default options.
    public convenience init(directory: String) throws(UploadStoreError) {
        try self.init(directory: FilePath(directory))
    }

    deinit {
        unfinished.close()
    }

    /// Reads the file names in the records' folders. They show the record of each key, and the records in the outbox.
    private static func marks(
        of ids: [UploadID], _ directory: StoreDirectory, _ logger: Logger
    ) -> (keys: [String: KeyedRecord], outbox: [UploadID]) {
        var keys: [String: KeyedRecord] = [:]
        var outbox: [UploadID] = []
        for id in ids {
            do throws(UploadStoreError) {
                let names = try StoreDirectory.names(ofRecordIn: directory.folder(of: id))
                if names.contains(LocalOutbox.name) { outbox.append(id) }
                if let (key, digest) = StoreDirectory.key(in: names) { keys[key] = KeyedRecord(id: id, digest: digest) }
            } catch {
                // A damaged record must not prevent the store from opening.
                logger.error("Could not read a record's key", metadata: ["upload": "\(id)", "error": "\(error)"])
            }
        }
        return (keys, outbox)
    }

    /// Returns a new name for a folder in `.incoming`, which is emptied at each start.
    func nextFolderName() -> String { "\(folderPrefix)-\(folderCount.add(1, ordering: .relaxed).newValue)" }

    /// The maximum announced size of a small form, in bytes. Its disk space is only checked when the form is written.
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

    public var dependency: String { "The directory" }

    public var sweepInterval: Duration { .seconds(60) }

    /// `nil`, because no other process can open the directory.
    public var followingInterval: Duration? { nil }

    /// Removes expired unfinished uploads, at most once a minute. Opening the store removes incomplete uploads.
    public func sweep() async { await unfinished.sweep() }

    /// The number of free bytes on the disk of the directory.
    package func freeBytes() async throws -> Int64 {
        try await onFileThread { [directory] in try DurableFiles.freeRoom(at: directory.path).bytes }
    }

    public var blockBytes: Int64 { StoreDirectory.blockBytes }

    public func sizes() async throws -> [UploadID: Int64]? {
        let ids = index.newest(.max, before: nil)
        return try await onFileThread { [directory] in
            Dictionary(uniqueKeysWithValues: ids.compactMap { id in directory.storedBytes(of: id).map { (id, $0) } })
        }
    }

    /// Reads a value from a file next to the records. Returns `nil` if the file does not exist or is damaged.
    package func keptValue<Value: Decodable & Sendable>(_ type: Value.Type, named name: String) async throws -> Value? {
        try await onFileThread { [directory, logger] in
            do {
                return try JSONFile(path: directory.path.appending(name)).read(type)
            } catch  where StoreDamage.isCause(of: error) {
                logger.error("Could not read a file of the store", metadata: ["name": "\(name)", "error": "\(error)"])
                return nil
            }
        }
    }

    /// Stores a value in a file next to the records. `name` is the name of the file, which begins with a dot.
    package func keep(_ value: some Encodable & Sendable, named name: String) async throws {
        try await onFileThread { [directory] in
            try JSONFile(path: directory.path.appending(name)).replace(with: value)
        }
    }

    /// The file with the app's own response, in the folder of a record.
    private func responseFile(of id: UploadID) -> JSONFile {
        JSONFile(path: directory.folder(of: id).appending("answer.json"))
    }

    public func keepResponse(_ response: [UInt8], to id: UploadID) async throws {
        let file = responseFile(of: id)
        try await onFileThread { try file.replace(withJSON: Data(response)) }
    }

    public func response(to id: UploadID) async throws -> [UInt8]? {
        let file = responseFile(of: id)
        return try await onFileThread { [logger] in
            do {
                return try file.bytes().map { Array($0) }
            } catch  where StoreDamage.isCause(of: error) {
                // The response is damaged, so the app must respond again.
                logger.error("Could not read the app's response", metadata: ["upload": "\(id)", "error": "\(error)"])
                return nil
            }
        }
    }

    public func createUnfinishedUpload(
        _ id: ResumptionID, of form: UnfinishedForm, expires: Date
    ) async throws -> LocalUnfinishedUpload {
        try await unfinished.create(id, of: form, expires: expires)
    }

    public func unfinishedUploads() async throws -> [LocalUnfinishedUpload] { unfinished.unfinished }

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

    /// The time at which an upload's record was made.
    func received(_ id: UploadID) async throws -> Date? {
        try await reading(id) { try $0.received() }
    }

    public func describedFile(_ index: Int, of id: UploadID) async throws -> UploadRecord.File? {
        try await reading(id) { try $0.describedFile(index) }
    }

    /// Reads the file of a record. If the record is damaged or was removed by hand, it disappears from listings.
    private func reading<Value: Sendable>(
        _ id: UploadID, _ body: @escaping @Sendable (StoredRecord) throws -> Value?
    ) async throws -> Value? {
        try await onFileThread { [directory, index, keys, damaged] in
            do throws(UploadStoreError) {
                if let value = try directory.record(id, body) { return value }
            } catch {
                if error.code == .damaged {
                    index.remove(id)
                    keys.forget(id)
                    damaged.setAside(directory.folder(of: id), "\(id)", error)
                }
                throw error
            }
            if try DurableFiles.isMissing(directory.folder(of: id)) { index.remove(id) }
            return nil
        }
    }

    public func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)? {
        if let file = try await onFileThread({ [directory] in try LocalFile(directory.file(index, of: id)) }) {
            return file
        }
        guard let described = try await describedFile(index, of: id) else { return nil }
        // Empty files are not written.
        guard described.size == 0 else {
            throw UploadStoreError(.unavailable, "File \(index) of upload \(id) is gone from its folder.")
        }
        return EmptyFile()
    }

    /// The path of a file's content. The path does not exist if the upload was deleted or the file is empty.
    package func path(ofFile index: Int, of id: UploadID) -> FilePath { directory.file(index, of: id) }

    package var damagedCount: Int { damaged.count }

    /// Checks that an upload could begin.
    ///
    /// - Throws: ``UploadStoreError`` if an upload could not begin.
    public func checkReadiness() async throws {
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
        // If the record's commit has not ended, deleting the record would leave its key behind.
        guard index.contains(id) else { return false }
        let doomed = directory.incoming.appending(nextFolderName())
        let isDeleted = try await onFileThread { [directory, logger, keys, names, index] in
            do throws(FileError) {
                // The rename deletes the record. After a crash, the next start removes the whole folder.
                try directory.moveToIncoming(directory.folder(of: id), as: doomed)
            } catch  where error.errno == .noSuchFileOrDirectory {
                index.remove(id)
                return false
            }
            index.remove(id)
            // The folder is removed even if the next steps fail. Otherwise it would stay until the next start.
            defer { Self.remove(doomed, logger) }
            do {
                let names = try StoreDirectory.names(ofRecordIn: doomed)
                if let (key, _) = StoreDirectory.key(in: names) { keys.forget(id, under: key) }
            } catch {
                // The record is no longer listed, so its deletion must be durable even after this error.
                try names.synchronize()
                throw error
            }
            try names.synchronize()
            return true
        }
        if isDeleted {
            outboxIndex.remove(id)
            await unfinished.forget(id)
        }
        return isDeleted
    }
}
