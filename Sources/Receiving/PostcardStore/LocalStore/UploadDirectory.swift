import Crypto
import NIOCore
import PostcardFiles
import PostcardForm
import PostcardFoundation
import SystemPackage

/// The directory of an upload that is being received. Calls block, and throw `FileError` or ``UploadStoreError``.
struct UploadDirectory: ~Copyable {
    enum Step {
        case beginFile
        case bytes(ByteBuffer)
        case endFile
    }

    /// The size and digest of a complete file.
    struct Content {
        let size: Int64
        let sha256: String
    }

    private enum Place {
        /// The directory does not exist yet.
        case nowhere
        case incoming
        case record(UploadID)
    }

    private let directory: StoreDirectory
    private let path: FilePath
    private let key: UploadKey?
    let isKept: Bool
    private let names: SharedDirectorySync
    private var place = Place.nowhere
    private var file: DurableFile?
    /// Complete files that may not be on the disk yet. Their syncs all begin before the first is awaited.
    private var unsynchronized: [DurableFile] = []
    private var hash = SHA256()
    private var size: Int64 = 0
    private(set) var contents: [Content] = []

    /// `names` syncs the directory of the records. `name` is the directory's name until the commit. If `isKept` is
    /// `false`, the upload is not written, but its content is hashed.
    init(directory: StoreDirectory, names: SharedDirectorySync, name: String, key: UploadKey?, isKept: Bool) {
        self.directory = directory
        self.names = names
        self.key = key
        self.isKept = isKept
        path = directory.incoming.appending(name)
    }

    /// Performs steps, in order. `isLast` says whether the commit follows at once. If it does not, all complete files
    /// are synced and closed.
    mutating func perform(_ steps: [Step], isLast: Bool = true) throws {
        if isKept { try directory.checkRoom(for: 0) }
        if isKept, case .nowhere = place { try directory.checkRoomForFiles() }
        for step in steps {
            switch step {
            case .beginFile:
                hash = SHA256()
                size = 0
            case .bytes(let buffer):
                try append(buffer)
            case .endFile:
                try endFile()
                contents.append(Content(size: size, sha256: hash.finalize().hexadecimal))
            }
        }
        if !isLast { try synchronizeFiles() }
    }

    private static let maximumOpenFiles = 32

    private mutating func endFile() throws(FileError) {
        guard let complete = file.take() else { return }
        synchronizeLater(complete)
        if unsynchronized.count >= Self.maximumOpenFiles { try synchronizeFiles() }
    }

    private mutating func synchronizeLater(_ file: DurableFile) {
        file.beginSynchronizing()
        unsynchronized.append(file)
    }

    private mutating func synchronizeFiles() throws(FileError) {
        for file in unsynchronized { try file.synchronize() }
        unsynchronized.removeAll()
    }

    /// The path of a complete file; `nil` if the file is empty and therefore not written.
    func path(ofFile index: Int) -> FilePath? {
        contents[index].size > 0 ? path.appending(StoreDirectory.name(ofFile: index)) : nil
    }

    /// Appends bytes to the current file, which is made with its first byte: empty files need no disk access.
    private mutating func append(_ buffer: ByteBuffer) throws(FileError) {
        let bytes = buffer.readableBytesSpan
        bytes.withUnsafeBytes { hash.update(bufferPointer: $0) }
        if isKept { try openFile().write(bytes) }
        size += Int64(buffer.readableBytes)
    }

    private mutating func openFile() throws(FileError) -> DurableFile {
        if let file { return file }
        try make()
        let opened = try DurableFile(path.appending(StoreDirectory.name(ofFile: contents.count)))
        file = opened
        return opened
    }

    private mutating func make() throws(FileError) {
        guard case .nowhere = place else { return }
        try directory.makeIncoming(path)
        place = .incoming
    }

    /// Turns the directory into a record. `inOutbox` says whether a webhook must announce the record. Returns the
    /// record's digest if it has a key. The order of the syncs makes the commit atomic: first the content, then the
    /// names in the directory, and last the name of the record.
    mutating func commit(_ record: UploadRecord, inOutbox: Bool) throws -> String? {
        let recordPath = path.appending(StoreDirectory.recordName)
        guard isKept else { throw UploadStoreError.deletedMeanwhile }
        try make()
        let digest = try write(record, to: recordPath)
        // The key is stored as a file name, so it becomes durable together with the record.
        if let key, let digest {
            _ = try DurableFile(path.appending(StoreDirectory.name(of: key, recordDigest: digest)))
        }
        // The file name for the outbox becomes durable in the same way.
        if inOutbox { _ = try DurableFile(path.appending(LocalOutbox.name)) }
        try synchronizeFiles()
        try DurableFiles.synchronizeDirectory(path)
        try DurableFiles.move(path, to: directory.folder(of: record.id))
        place = .record(record.id)
        try names.synchronize()
        return digest
    }

    /// Writes the JSON of the record. Returns the digest of the record if it has a key.
    private mutating func write(_ record: UploadRecord, to path: FilePath) throws(FileError) -> String? {
        let file = try DurableFile(path)
        var hash = SHA256()
        var count: Int64 = 0
        let offsets = try record.writeJSON { [hasKey = key != nil] bytes throws(FileError) in
            if hasKey { hash.update(data: bytes) }
            count += Int64(bytes.count)
            try file.write(bytes.span.bytes)
        }
        synchronizeLater(file)
        if let offsets = StoredRecord.offsetsFile(offsets, recordBytes: count) {
            let file = try DurableFile(self.path.appending(StoredRecord.offsetsName))
            try file.write(offsets.span.bytes)
            synchronizeLater(file)
        }
        return key == nil ? nil : hash.finalize().hexadecimal
    }

    mutating func remove() {
        file = nil
        unsynchronized.removeAll()
        if case .record(let id) = place {
            try? directory.moveToIncoming(directory.folder(of: id), as: path)
            // Without this sync, a power cut could restore a record whose files were removed.
            try? names.synchronize()
            place = .incoming
        }
        guard case .incoming = place else { return }
        try? FileManager.default.removeItem(atPath: path.string)
        place = .nowhere
    }
}
