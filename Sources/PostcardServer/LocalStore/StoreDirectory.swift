import PostcardFiles
import Synchronization
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The directory of a ``LocalUploadStore``: what is where, and its free space.
struct StoreDirectory: Sendable {
    let path: FilePath

    /// How many bytes of the disk are left to others.
    var keptFreeBytes: Int64 = 0

    /// - Parameter bytes: What is about to be written.
    /// - Throws: ``UploadStoreError`` with the code ``UploadStoreError/Code/full`` where there is no room for it, and
    ///   `FileError` where the disk cannot be asked.
    func checkRoom(for bytes: Int64) throws {
        let free = try DurableFiles.freeBytes(at: path)
        guard bytes <= free, free - bytes >= keptFreeBytes else {
            throw UploadStoreError.reserved(free, path, keeping: keptFreeBytes)
        }
    }

    /// What is being received, or deleted.
    ///
    /// It is emptied at the start, and so its names are never synced: a rename into it or out of it is durable once
    /// the other directory is.
    var incoming: FilePath { path.appending(".incoming") }

    /// Uploads that can be resumed.
    var unfinished: FilePath { path.appending(".unfinished") }

    var lock: FilePath { path.appending(".lock") }

    func folder(of id: UploadID) -> FilePath { path.appending(id.text) }

    func file(_ index: Int, of id: UploadID) -> FilePath { folder(of: id).appending(Self.name(ofFile: index)) }

    static let recordName = "record.json"

    static func name(ofFile index: Int) -> String { String(index) }

    /// The name of the empty file that says under which key a record was made.
    static func name(of key: UploadKey) -> String { keyPrefix + key.digest }

    private static let keyPrefix = "key-"

    /// The digest of the key that the record in a folder was made under.
    static func key(ofRecordIn folder: FilePath) throws(UploadStoreError) -> String? {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder.string)
                .first { $0.hasPrefix(keyPrefix) }.map { String($0.dropFirst(keyPrefix.count)) }
        } catch {
            throw .unreadable("list", folder, error)
        }
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
    func record<Value>(
        _ id: UploadID, _ body: (StoredRecord) throws -> Value?
    ) throws(UploadStoreError) -> Value? {
        let path = folder(of: id).appending(Self.recordName)
        do {
            return try LocalFile(path).flatMap { file in try body(StoredRecord(id: id, file: file)) }
        } catch let error as FileError {
            throw UploadStoreError(error)
        } catch {
            throw .unreadable("read", path, error)
        }
    }

    /// Makes a folder for what is being received, and ``incoming`` if someone has removed it.
    func makeIncoming(_ folder: FilePath) throws(FileError) {
        do throws(FileError) {
            try DurableFiles.makeDirectory(folder)
        } catch  where error.errno == .noSuchFileOrDirectory {
            try makeIncoming()
            try DurableFiles.makeDirectory(folder)
        }
    }

    /// Makes ``incoming`` if it is missing, but never the store's directory: another receiver may have made a new one.
    func makeIncoming() throws(FileError) {
        do throws(FileError) {
            try DurableFiles.makeDirectory(incoming)
        } catch  where error.errno == .fileExists {
            return
        }
        try DurableFiles.synchronizeDirectory(path)
    }

    /// Renames a folder into ``incoming``, where it is out of sight.
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
        // What a disk refuses that became read-only, or a directory whose owner changed, shows only by trying.
        let probe = incoming.appending("probe-\(UInt64.random(in: 0 ... .max))")
        try DurableFiles.makeDirectory(probe)
        try FileManager.default.removeItem(atPath: probe.string)
    }
}

/// Waits until the names in a directory are on the disk, once for all who ask while it waits for others.
final class SharedDirectorySync: Sendable {
    private struct State {
        /// The last turn whose names are on the disk.
        var done: UInt64 = 0
        /// The turns whose names may not be: the system reports a failure once, whoever asks first.
        var failed: [(turns: ClosedRange<UInt64>, error: FileError)] = []
    }

    private let path: FilePath
    private let turns = Atomic<UInt64>(0)
    private let state = Mutex(State())

    init(_ path: FilePath) {
        self.path = path
    }

    /// Returns once every name that was made before the call is on the disk. Blocks.
    func synchronize() throws(FileError) {
        let turn = turns.add(1, ordering: .sequentiallyConsistent).newValue
        try state.withLock { state throws(FileError) in
            if let failure = state.failed.first(where: { $0.turns.contains(turn) }) { throw failure.error }
            if turn <= state.done { return }
            // Whoever has a turn by now made their names before.
            let latest = turns.load(ordering: .sequentiallyConsistent)
            do throws(FileError) {
                try DurableFiles.synchronizeDirectory(path)
            } catch {
                let first = max(state.done, state.failed.last?.turns.upperBound ?? 0) + 1
                state.failed.append((first...latest, error))
                throw error
            }
            state.done = latest
        }
    }
}
