#if Server
import PostcardFiles
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Where things lie in a store's directory.
struct StoreLayout: Sendable {
    let directory: FilePath

    /// How many bytes of the disk are left to others.
    var keptFreeBytes: Int64 = 0

    /// - Parameter bytes: What is about to be written.
    /// - Throws: ``UploadStoreError`` with the code ``UploadStoreError/Code/full`` where there is no room for it, and
    ///   `FileError` where the disk cannot be asked.
    func checkRoom(for bytes: Int64) throws {
        let free = try DurableFiles.freeBytes(at: directory)
        guard bytes <= free, free - bytes >= keptFreeBytes else {
            throw UploadStoreError.reserved(free, directory, keeping: keptFreeBytes)
        }
    }

    /// What is being received, or deleted.
    ///
    /// It is emptied at the start, and so its names are never synced: a rename into it or out of it is durable once
    /// the other directory is.
    var incoming: FilePath { directory.appending(".incoming") }

    /// Uploads that can be resumed.
    var unfinished: FilePath { directory.appending(".unfinished") }

    var lock: FilePath { directory.appending(".lock") }

    func folder(of id: UploadID) -> FilePath { directory.appending(id.text) }

    func file(_ index: Int, of id: UploadID) -> FilePath { folder(of: id).appending(Self.name(ofFile: index)) }

    static let recordName = "record.json"

    static func name(ofFile index: Int) -> String { String(index) }

    /// The name of the empty file that says under which key a record was made.
    static func name(of key: IdempotencyKey) -> String { keyPrefix + key.digest }

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
            return try FileManager.default.contentsOfDirectory(atPath: directory.string).compactMap { UploadID($0) }
        } catch {
            throw .unreadable("list", directory, error)
        }
    }

    func record(_ id: UploadID) throws(UploadStoreError) -> UploadRecord? {
        let path = folder(of: id).appending(Self.recordName)
        do {
            return try UploadRecord(json: Data(contentsOf: URL(filePath: path.string)))
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return nil
        } catch {
            throw .unreadable("read", path, error)
        }
    }
}
#endif
