import Logging
import PostcardFiles
import PostcardFoundation
import Synchronization
import SystemPackage

/// The directory of a ``LocalUploadStore``: its paths and its free space.
struct StoreDirectory: Sendable {
    let path: FilePath

    /// The number of bytes on the disk that the store leaves free.
    var keptFreeBytes: Int64 = 0

    /// Checks that the disk has space for some bytes. Throws ``UploadStoreError`` with the code
    /// ``UploadStoreError/Code/full`` if the space is too small, and `FileError` if the free space cannot be read.
    func checkRoom(for bytes: Int64) throws {
        let free = try DurableFiles.freeRoom(at: path)
        guard bytes <= free.bytes, free.bytes - bytes >= keptFreeBytes else {
            throw UploadStoreError.reserved(free.bytes, path, keeping: keptFreeBytes)
        }
    }

    /// Checks that an upload can make its files. Throws ``UploadStoreError`` with the code
    /// ``UploadStoreError/Code/full`` if the disk can hold too few further files, and `FileError` if their number
    /// cannot be read.
    func checkRoomForFiles() throws {
        let free = try DurableFiles.freeRoom(at: path)
        guard free.files >= Self.keptFreeFiles else {
            throw UploadStoreError.outOfFiles(free.files, path, keeping: Self.keptFreeFiles)
        }
    }

    /// The number of files for which the disk must have room when an upload begins. A small form makes up to five.
    static let keptFreeFiles: Int64 = 16

    /// The block size of most file systems, in bytes. Each file, record and folder uses at least one block.
    static let blockBytes: Int64 = 4096

    /// The number of bytes of a record and its files, in whole blocks; `nil` if the folder of the record is missing.
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
    /// Opening the store empties this directory. After a rename into or out of this directory, only the other directory
    /// needs a sync.
    var incoming: FilePath { path.appending(".incoming") }

    var unfinished: FilePath { path.appending(".unfinished") }

    /// The directory of damaged uploads, for a person to examine. They are never served or removed.
    var damaged: FilePath { path.appending(".damaged") }

    var lock: FilePath { path.appending(".lock") }

    func folder(of id: UploadID) -> FilePath { path.appending(id.text) }

    func file(_ index: Int, of id: UploadID) -> FilePath { folder(of: id).appending(Self.name(ofFile: index)) }

    static let recordName = "record.json"

    static func name(ofFile index: Int) -> String { String(index) }

    /// The name of an empty file in a record's folder. It contains the digests of the record's key and of the record.
    static func name(of key: UploadKey, recordDigest: String) -> String { keyPrefix + key.digest + "-" + recordDigest }

    private static let keyPrefix = "key-"

    static func names(ofRecordIn folder: FilePath) throws(UploadStoreError) -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder.string)
        } catch {
            throw .unreadable("list", folder, error)
        }
    }

    /// The digests of a record's key and of the record, from file names in its folder. Other names are ignored.
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

    /// Reads the file of a record; `nil` if it does not exist, or if `body` returns `nil`. Throws ``UploadStoreError``,
    /// with the code ``UploadStoreError/Code/damaged`` if the record is damaged.
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

    /// Moves a folder to ``damaged``. Returns `false` if the folder no longer exists.
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
            // A folder with this name is already there: its upload was restored from a copy, and is damaged again.
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

    /// Makes ``incoming`` if it is missing. Never makes the store's directory, which may now belong to another store.
    func makeIncoming() throws(FileError) {
        do throws(FileError) {
            try DurableFiles.makeDirectory(incoming)
        } catch  where error.errno == .fileExists {
            return
        }
        try DurableFiles.synchronizeDirectory(path)
    }

    func moveToIncoming(_ folder: FilePath, as name: FilePath) throws(FileError) {
        do throws(FileError) {
            try DurableFiles.move(folder, to: name)
        } catch  where error.errno == .noSuchFileOrDirectory {
            // The source or ``incoming`` may be missing.
            try makeIncoming()
            try DurableFiles.move(folder, to: name)
        }
    }

    /// Checks that an upload could begin. Throws ``UploadStoreError`` or `FileError` if an upload could not begin.
    func checkReadiness() throws {
        try makeIncoming()
        try checkRoom(for: 0)
        try checkRoomForFiles()
        // Only a write reveals a disk that became read-only, or a directory whose owner changed.
        let probe = incoming.appending("probe-\(UInt64.random(in: 0 ... .max))")
        try DurableFiles.makeDirectory(probe)
        try FileManager.default.removeItem(atPath: probe.string)
    }
}

/// Waits until the names in a directory are on the disk. Callers that arrive during a sync share the next sync.
final class SharedDirectorySync: Sendable {
    private struct State {
        /// The number of the last caller whose names are on the disk.
        var done: UInt64 = 0
        /// The callers whose names may not be on the disk, because their sync failed. The failures are kept, because
        /// the system reports each only once.
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

    /// Waits until all names that were made before the call are on the disk. Blocks.
    func synchronize() throws(FileError) {
        let turn = turns.add(1, ordering: .sequentiallyConsistent).newValue
        try state.withLock { state throws(FileError) in
            if let failure = state.failed.first(where: { $0.turns.contains(turn) }) { throw failure.error }
            if turn <= state.done { return }
            // All callers up to this number have already made their names.
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

/// An error in stored data: the bytes on the disk are not those that the store wrote.
struct StoreDamage: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// Whether an error while reading shows that the data is damaged, and not that the disk or the system failed.
    static func isCause(of error: any Error) -> Bool {
        error is StoreDamage || error is DecodingError || (error as? FileError)?.isReplaced == true
    }
}

/// Moves damaged uploads to a separate directory, and counts them. A person may repair them, so none are removed.
final class DamagedUploads: Sendable {
    private let directory: StoreDirectory
    private let logger: Logger
    private let number: Atomic<Int>

    /// Counts the damaged uploads of earlier starts. Blocks.
    init(directory: StoreDirectory, logger: Logger) {
        self.directory = directory
        self.logger = logger
        let names = try? FileManager.default.contentsOfDirectory(atPath: directory.damaged.string)
        number = Atomic(names?.count ?? 0)
    }

    var count: Int { number.load(ordering: .relaxed) }

    /// Moves an upload's folder to the directory of damaged uploads, and logs the move once. `name` is the name of the
    /// upload in the log. Blocks.
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
