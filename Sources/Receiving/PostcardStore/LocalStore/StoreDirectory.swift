import Logging
import PostcardFiles
import PostcardFoundation
import Synchronization
import SystemPackage

/// The directory of a ``LocalUploadStore``: its paths, and its free space.
struct StoreDirectory: Sendable {
    let path: FilePath

    /// How many bytes of the disk stay free for others.
    var keptFreeBytes: Int64 = 0

    /// - Parameter bytes: How many bytes are about to be written.
    /// - Throws: ``UploadStoreError`` with the code ``UploadStoreError/Code/full`` if there is no room for them, and
    ///   `FileError` if the free space cannot be read.
    func checkRoom(for bytes: Int64) throws {
        let free = try DurableFiles.freeRoom(at: path)
        guard bytes <= free.bytes, free.bytes - bytes >= keptFreeBytes else {
            throw UploadStoreError.reserved(free.bytes, path, keeping: keptFreeBytes)
        }
    }

    /// - Throws: ``UploadStoreError`` with the code ``UploadStoreError/Code/full`` if the disk can hold too few further files
    ///   for an upload to begin, and `FileError` if that cannot be read.
    func checkRoomForFiles() throws {
        let free = try DurableFiles.freeRoom(at: path)
        guard free.files >= Self.keptFreeFiles else {
            throw UploadStoreError.outOfFiles(free.files, path, keeping: Self.keptFreeFiles)
        }
    }

    /// How many files and folders can still be made on the disk while uploads begin. A small form needs up to five.
    static let keptFreeFiles: Int64 = 16

    /// The size of the blocks of most file systems. A file, a record and a folder take at least one each.
    static let blockBytes: Int64 = 4096

    /// How many bytes a record takes with its files, in whole blocks; `nil` if its folder is gone.
    func storedBytes(of id: UploadID) -> Int64? {
        let folder = folder(of: id)
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder.string) else { return nil }
        return names.reduce(Self.blockBytes) { sum, name in
            let size = (try? folder.appending(name).stat(followTargetSymlink: false).size) ?? 0
            let (bytes, isTooMuch) = sum.addingReportingOverflow(UploadRecord.roundedUp(size, to: Self.blockBytes))
            return isTooMuch ? .max : bytes
        }
    }

    /// Uploads that are being received or deleted.
    ///
    /// Opening the store empties it, so its names are never synced: a rename into it or out of it is durable once the
    /// other directory is.
    var incoming: FilePath { path.appending(".incoming") }

    /// Unfinished uploads.
    var unfinished: FilePath { path.appending(".unfinished") }

    /// Uploads that are not as they were written, for someone to look at. Nothing in it is served or removed.
    var damaged: FilePath { path.appending(".damaged") }

    var lock: FilePath { path.appending(".lock") }

    func folder(of id: UploadID) -> FilePath { path.appending(id.text) }

    func file(_ index: Int, of id: UploadID) -> FilePath { folder(of: id).appending(Self.name(ofFile: index)) }

    static let recordName = "record.json"

    static func name(ofFile index: Int) -> String { String(index) }

    /// The name of the empty file that names the key of a record, and the digest of the record.
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

    /// The digests of the key of a record, and of the record, from the names in its folder. Names that are not so made
    /// do not count.
    static func key(in names: [String]) -> (key: String, record: String)? {
        for name in names where name.hasPrefix(keyPrefix) {
            let digests = name.dropFirst(keyPrefix.count).split(separator: "-", omittingEmptySubsequences: false)
            guard digests.count == 2, digests.allSatisfy({ UploadKey.isDigest($0) }) else { continue }
            return (String(digests[0]), String(digests[1]))
        }
        return nil
    }

    /// The identifiers of all records, in no order.
    func identifiers() throws(UploadStoreError) -> [UploadID] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: path.string).compactMap { UploadID($0) }
        } catch {
            throw .unreadable("list", path, error)
        }
    }

    /// Reads a record's file.
    ///
    /// - Returns: `nil` if there is no such record, or if `body` returns it.
    /// - Throws: ``UploadStoreError``, with the code ``UploadStoreError/Code/damaged`` if the record is.
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
    /// - Returns: `false` if it is gone.
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
            // What is there was set aside before, and restored from a copy.
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

    /// Makes ``incoming`` if it is missing, but never the store's directory: another store may have made a new one.
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
            // Either of the two may be missing.
            try makeIncoming()
            try DurableFiles.move(folder, to: name)
        }
    }

    /// Checks that an upload could begin.
    ///
    /// - Throws: ``UploadStoreError`` or `FileError` if it could not.
    func checkReadiness() throws {
        try makeIncoming()
        try checkRoom(for: 0)
        try checkRoomForFiles()
        // Only an attempt shows that the disk became read-only, or that the owner of the directory changed.
        let probe = incoming.appending("probe-\(UInt64.random(in: 0 ... .max))")
        try DurableFiles.makeDirectory(probe)
        try FileManager.default.removeItem(atPath: probe.string)
    }
}

/// Waits until the names in a directory are on the disk. Callers that arrive during a sync share the next one.
final class SharedDirectorySync: Sendable {
    private struct State {
        /// The last turn whose names are on the disk.
        var done: UInt64 = 0
        /// The turns whose names may not be: the system reports a failure only once.
        var failed: [(turns: ClosedRange<UInt64>, error: FileError)] = []
    }

    /// The number of callers so far.
    let turns = Atomic<UInt64>(0)

    private let path: FilePath
    private let synchronizeDirectory: @Sendable (FilePath) throws(FileError) -> Void
    private let state = Mutex(State())

    /// - Parameter synchronizeDirectory: Waits until the names in a directory are on the disk. Blocks.
    init(
        _ path: FilePath,
        by synchronizeDirectory: @escaping @Sendable (FilePath) throws(FileError) -> Void = {
            path throws(FileError) in try DurableFiles.synchronizeDirectory(path)
        }
    ) {
        self.path = path
        self.synchronizeDirectory = synchronizeDirectory
    }

    /// Returns once every name that was made before the call is on the disk. Blocks.
    func synchronize() throws(FileError) {
        let turn = turns.add(1, ordering: .sequentiallyConsistent).newValue
        try state.withLock { state throws(FileError) in
            if let failure = state.failed.first(where: { $0.turns.contains(turn) }) { throw failure.error }
            if turn <= state.done { return }
            // All callers with a turn by now made their names before.
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

/// An error in stored data: the bytes on the disk are not those that were written.
struct StoreDamage: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// Whether an error that was thrown while reading means damage, and not that the disk or the system failed.
    static func isCause(of error: any Error) -> Bool {
        error is StoreDamage || error is DecodingError || (error as? FileError)?.isReplaced == true
    }
}

/// Moves damaged uploads out of the way of others, and counts them. None is removed: someone may repair it.
final class DamagedUploads: Sendable {
    private let directory: StoreDirectory
    private let logger: Logger
    private let number: Atomic<Int>

    /// Counts those of earlier starts. Blocks.
    init(directory: StoreDirectory, logger: Logger) {
        self.directory = directory
        self.logger = logger
        let names = try? FileManager.default.contentsOfDirectory(atPath: directory.damaged.string)
        number = Atomic(names?.count ?? 0)
    }

    var count: Int { number.load(ordering: .relaxed) }

    /// Moves an upload's folder out of the way, and says so once. Blocks.
    ///
    /// - Parameter name: What the log calls the upload.
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
