import Logging
import PostcardFiles
import PostcardFoundation
import Synchronization
import SystemPackage

/// The directory of a ``LocalUploadStore``: its paths and its free space.
struct StoreDirectory: Sendable {
    let path: FilePath

    /// The number of bytes on the disk that are left free for others.
    var keptFreeBytes: Int64 = 0

    /// Checks that there is room for some bytes.
    ///
    /// - Parameter bytes: The number of bytes that will be written.
    /// - Throws: ``UploadStoreError`` with the code ``UploadStoreError/Code/full`` if there is no room for them, and
    ///   `FileError` if the free space cannot be read.
    func checkRoom(for bytes: Int64) throws {
        let free = try DurableFiles.freeRoom(at: path)
        guard bytes <= free.bytes, free.bytes - bytes >= keptFreeBytes else {
            throw UploadStoreError.reserved(free.bytes, path, keeping: keptFreeBytes)
        }
    }

    /// Checks that an upload can make its files.
    ///
    /// - Throws: ``UploadStoreError`` with the code ``UploadStoreError/Code/full`` if the disk has room for too few
    ///   further files, and `FileError` if their number cannot be read.
    func checkRoomForFiles() throws {
        let free = try DurableFiles.freeRoom(at: path)
        guard free.files >= Self.keptFreeFiles else {
            throw UploadStoreError.outOfFiles(free.files, path, keeping: Self.keptFreeFiles)
        }
    }

    /// The minimum number of files and folders that the disk must have room for when an upload begins. A small form
    /// needs up to five.
    static let keptFreeFiles: Int64 = 16

    /// The block size of most file systems. A file, a record and a folder each take at least one block.
    static let blockBytes: Int64 = 4096

    /// The number of bytes of a record and its files, in whole blocks; `nil` if its folder is gone.
    func storedBytes(of id: UploadID) -> Int64? {
        let folder = folder(of: id)
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder.string) else { return nil }
        return names.reduce(Self.blockBytes) { sum, name in
            let size = (try? folder.appending(name).stat(followTargetSymlink: false).size) ?? 0
            let (bytes, isTooMuch) = sum.addingReportingOverflow(UploadRecord.roundedUp(size, to: Self.blockBytes))
            return isTooMuch ? .max : bytes
        }
    }

    /// The directory of uploads that are being received or deleted.
    ///
    /// Opening the store empties this directory, so its names are never synced: a rename into it or out of it is
    /// durable when the other directory is synced.
    var incoming: FilePath { path.appending(".incoming") }

    /// The directory of unfinished uploads.
    var unfinished: FilePath { path.appending(".unfinished") }

    /// The directory of damaged uploads, for a person to examine. Nothing in it is served or removed.
    var damaged: FilePath { path.appending(".damaged") }

    var lock: FilePath { path.appending(".lock") }

    func folder(of id: UploadID) -> FilePath { path.appending(id.text) }

    func file(_ index: Int, of id: UploadID) -> FilePath { folder(of: id).appending(Self.name(ofFile: index)) }

    static let recordName = "record.json"

    static func name(ofFile index: Int) -> String { String(index) }

    /// The name of the empty file that contains the digests of a record's key and of the record.
    static func name(of key: UploadKey, recordDigest: String) -> String { keyPrefix + key.digest + "-" + recordDigest }

    private static let keyPrefix = "key-"

    /// The names of the files in a record's folder.
    static func names(ofRecordIn folder: FilePath) throws(UploadStoreError) -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder.string)
        } catch {
            throw .unreadable("list", folder, error)
        }
    }

    /// The digests of a record's key and of the record, from the names in its folder. Names that do not have the
    /// expected format are ignored.
    static func key(in names: [String]) -> (key: String, record: String)? {
        for name in names where name.hasPrefix(keyPrefix) {
            let digests = name.dropFirst(keyPrefix.count).split(separator: "-", omittingEmptySubsequences: false)
            guard digests.count == 2, digests.allSatisfy({ UploadKey.isDigest($0) }) else { continue }
            return (String(digests[0]), String(digests[1]))
        }
        return nil
    }

    /// The identifiers of all records, in any order.
    func identifiers() throws(UploadStoreError) -> [UploadID] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: path.string).compactMap { UploadID($0) }
        } catch {
            throw .unreadable("list", path, error)
        }
    }

    /// Reads a record's file.
    ///
    /// - Returns: `nil` if there is no such record, or if `body` returns `nil`.
    /// - Throws: ``UploadStoreError``, with the code ``UploadStoreError/Code/damaged`` if the record is damaged.
    func record<Value>(
        _ id: UploadID, _ body: (StoredRecord) throws -> Value?
    ) throws(UploadStoreError) -> Value? {
        let path = folder(of: id).appending(Self.recordName)
        do {
            return try LocalFile(path).flatMap { file in try body(StoredRecord(id: id, file: file)) }
        } catch  where StoreDamage.isCause(of: error) {
            throw .damaged(path, error)
        } catch let error as FileError {
            throw UploadStoreError(error)
        } catch {
            throw .unreadable("read", path, error)
        }
    }

    /// Moves a folder to ``damaged``.
    ///
    /// - Returns: `false` if the folder no longer exists.
    func setAside(_ folder: FilePath) throws(FileError) -> Bool {
        guard let name = folder.lastComponent else { return false }
        do throws(FileError) {
            try DurableFiles.makeDirectory(damaged)
        } catch  where error.errno == .fileExists {}
        do throws(FileError) {
            try DurableFiles.move(folder, to: damaged.appending(name))
        } catch  where error.errno == .noSuchFileOrDirectory {
            return false
        } catch  where [.directoryNotEmpty, .fileExists, .notDirectory].contains(error.errno) {
            // A folder with this name was set aside before, and its upload was restored from a copy.
            try DurableFiles.move(folder, to: damaged.appending("\(name)-\(UInt64.random(in: 0 ... .max))"))
        }
        try DurableFiles.synchronizeDirectory(damaged)
        try DurableFiles.synchronizeDirectory(folder.removingLastComponent())
        return true
    }

    /// Makes a folder in ``incoming``, and ``incoming`` itself if it was removed.
    func makeIncoming(_ folder: FilePath) throws(FileError) {
        do throws(FileError) {
            try DurableFiles.makeDirectory(folder)
        } catch  where error.errno == .noSuchFileOrDirectory {
            try makeIncoming()
            try DurableFiles.makeDirectory(folder)
        }
    }

    /// Makes ``incoming`` if it is missing, but never the store's directory, because another store may have made a new
    /// one.
    func makeIncoming() throws(FileError) {
        do throws(FileError) {
            try DurableFiles.makeDirectory(incoming)
        } catch  where error.errno == .fileExists {
            return
        }
        try DurableFiles.synchronizeDirectory(path)
    }

    /// Moves a folder into ``incoming``.
    func moveToIncoming(_ folder: FilePath, as name: FilePath) throws(FileError) {
        do throws(FileError) {
            try DurableFiles.move(folder, to: name)
        } catch  where error.errno == .noSuchFileOrDirectory {
            // Either of the two directories may be missing.
            try makeIncoming()
            try DurableFiles.move(folder, to: name)
        }
    }

    /// Checks that an upload could begin.
    ///
    /// - Throws: ``UploadStoreError`` or `FileError` if an upload could not begin.
    func checkReadiness() throws {
        try makeIncoming()
        try checkRoom(for: 0)
        try checkRoomForFiles()
        // Only a write shows that the disk became read-only, or that the owner of the directory changed.
        let probe = incoming.appending("probe-\(UInt64.random(in: 0 ... .max))")
        try DurableFiles.makeDirectory(probe)
        try FileManager.default.removeItem(atPath: probe.string)
    }
}

/// Waits until the names in a directory are on the disk. Callers that arrive during a sync share the next sync.
final class SharedDirectorySync: Sendable {
    private struct State {
        /// The last turn whose names are on the disk. A turn is the number of a caller.
        var done: UInt64 = 0
        /// The turns whose names may not be on the disk, because the system reports a failure only once.
        var failed: [(turns: ClosedRange<UInt64>, error: FileError)] = []
    }

    /// The number of callers so far.
    let turns = Atomic<UInt64>(0)

    private let path: FilePath
    private let synchronizeDirectory: @Sendable (FilePath) throws(FileError) -> Void
    private let state = Mutex(State())

    /// - Parameter synchronizeDirectory: A function that waits until the names in a directory are on the disk. It
    ///   blocks.
    init(
        _ path: FilePath,
        by synchronizeDirectory: @escaping @Sendable (FilePath) throws(FileError) -> Void = {
            path throws(FileError) in try DurableFiles.synchronizeDirectory(path)
        }
    ) {
        self.path = path
        self.synchronizeDirectory = synchronizeDirectory
    }

    /// Waits until every name that was made before the call is on the disk. Blocks.
    func synchronize() throws(FileError) {
        let turn = turns.add(1, ordering: .sequentiallyConsistent).newValue
        try state.withLock { state throws(FileError) in
            if let failure = state.failed.first(where: { $0.turns.contains(turn) }) { throw failure.error }
            if turn <= state.done { return }
            // Every caller with a turn up to this one has already made its names.
            let latest = turns.load(ordering: .sequentiallyConsistent)
            do throws(FileError) {
                try synchronizeDirectory(path)
            } catch {
                let first = max(state.done, state.failed.last?.turns.upperBound ?? 0) + 1
                state.failed.append((first...latest, error))
                throw error
            }
            state.done = latest
        }
    }
}

/// An error in stored data: the bytes on the disk are not those that the store has written.
struct StoreDamage: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// Whether an error while reading means that the data is damaged. Otherwise the disk or the system failed.
    static func isCause(of error: any Error) -> Bool {
        error is StoreDamage || error is DecodingError || (error as? FileError)?.isReplaced == true
    }
}

/// Moves damaged uploads out of the way, and counts them. None is removed, because a person may repair it.
final class DamagedUploads: Sendable {
    private let directory: StoreDirectory
    private let logger: Logger
    private let number: Atomic<Int>

    /// Makes an instance, and counts the damaged uploads of earlier starts. Blocks.
    init(directory: StoreDirectory, logger: Logger) {
        self.directory = directory
        self.logger = logger
        let names = try? FileManager.default.contentsOfDirectory(atPath: directory.damaged.string)
        number = Atomic(names?.count ?? 0)
    }

    var count: Int { number.load(ordering: .relaxed) }

    /// Moves an upload's folder out of the way, and logs that once. Blocks.
    ///
    /// - Parameter name: The name of the upload in the log.
    func setAside(_ folder: FilePath, _ name: String, _ error: any Error) {
        do throws(FileError) {
            guard try directory.setAside(folder) else { return }
            number.add(1, ordering: .relaxed)
            logger.error(
                "Set a damaged upload aside, in .damaged", metadata: ["upload": "\(name)", "error": "\(error)"])
        } catch {
            logger.error("Could not set a damaged upload aside", metadata: ["upload": "\(name)", "error": "\(error)"])
        }
    }
}
