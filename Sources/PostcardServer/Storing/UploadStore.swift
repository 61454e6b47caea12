public import NIOCore
public import SystemPackage

/// Keeps uploads.
///
/// A store keeps three promises. An upload appears whole or not at all: until ``PendingUpload/commit(fields:)`` has
/// returned it is in no listing, and once it has returned it survives a power cut. An upload that is discarded, or
/// that a crash interrupted, leaves nothing behind. Identifiers grow: a record that is committed later has the
/// greater one. And a key has one record: see ``beginUpload(under:announcedBytes:)``.
public protocol UploadStore: Sendable {
    associatedtype Upload: PendingUpload

    /// Begins an upload. It is not visible until it is committed.
    ///
    /// A key has one record until that is deleted, also after a crash, and also if several uploads of the key arrive at
    /// once: the first one that is committed makes it. Committing another one returns the same record if fields and
    /// files are the same, and otherwise throws ``UploadStoreError/keyReused``. An upload that fails leaves its key to
    /// the next.
    ///
    /// - Parameters:
    ///   - key: Identifies the upload; `nil` if the client sent no key.
    ///   - announcedBytes: The length of the form, if the client sent it. A store without room throws
    ///     ``UploadStoreError`` with the code ``UploadStoreError/Code/full`` before the client sends the form.
    func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending Upload

    /// The identifiers of the records, newest first.
    ///
    /// - Parameters:
    ///   - limit: The maximum number.
    ///   - id: Only records older than this one; the record itself need not exist any more.
    func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID]

    /// The record with the identifier; `nil` if there is none.
    func record(_ id: UploadID) async throws -> UploadRecord?

    /// Opens the JSON of a record for reading: the same bytes as ``UploadRecord/json()``; `nil` if there is none.
    ///
    /// Defaults to encoding the record in memory. A record can have tens of megabytes, so a store that has these bytes
    /// should return them.
    func openRecord(_ id: UploadID) async throws -> (any StoredFile)?

    /// The description of a record's file; `nil` if there is no such file. Defaults to reading the record.
    func describedFile(_ index: Int, of id: UploadID) async throws -> UploadRecord.File?

    /// Opens a file's content for reading; `nil` if there is no such file.
    ///
    /// An open file stays readable when the upload is deleted.
    ///
    /// - Parameter index: The file's place in ``UploadRecord/files``.
    func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)?

    /// Deletes an upload, record and files.
    ///
    /// - Returns: Whether there was one.
    func delete(_ id: UploadID) async throws -> Bool
}

extension UploadStore {
    public func openRecord(_ id: UploadID) async throws -> (any StoredFile)? {
        try await record(id).map { BytesInMemory(bytes: ByteBuffer(bytes: $0.json())) }
    }

    public func describedFile(_ index: Int, of id: UploadID) async throws -> UploadRecord.File? {
        guard let files = try await record(id)?.files, files.indices.contains(index) else { return nil }
        return files[index]
    }
}

/// An upload that is being stored. One task calls it: for each file a beginning, its bytes and an end, and then a
/// commit. An upload that is not committed is discarded.
public protocol PendingUpload {
    /// Begins the next file.
    func beginFile(name: String, filename: String, contentType: String) async throws

    /// Appends bytes to the current file. Returns when the store can accept more, which may be before they are stored.
    func write(_ bytes: ByteBuffer) async throws

    /// Ends the current file.
    func endFile() async throws

    /// The complete files, so that they can be checked before the upload becomes a record. Empty if the files are those
    /// of an existing record.
    func finishedFiles() async throws -> [FinishedFile]

    /// Makes the upload a record, durably.
    ///
    /// - Parameter fields: The text fields, in the order of the form.
    /// - Returns: The record, which is now listed, or the one that the upload's key already has.
    /// - Throws: ``UploadStoreError`` if there is no room, the store fails, or the key has a record of another content.
    func commit(fields: [UploadRecord.Field]) async throws -> CommittedUpload

    /// Removes what was written. It is called after a failed commit too.
    func discard() async
}

/// A file of a store, open for reading.
public protocol StoredFile: Sendable {
    /// The size of the file in bytes.
    var size: Int64 { get }

    /// Reads up to `count` bytes from an offset on; fewer only at the end of the file.
    func read(at offset: Int64, count: Int) async throws -> ByteBuffer
}

/// Bytes in memory, read as a stored file is.
struct BytesInMemory: StoredFile {
    let bytes: ByteBuffer

    var size: Int64 { Int64(bytes.readableBytes) }

    func read(at offset: Int64, count: Int) async throws -> ByteBuffer {
        let start = Int(min(max(offset, 0), size))
        return bytes.getSlice(at: bytes.readerIndex + start, length: min(count, Int(size) - start)) ?? ByteBuffer()
    }
}

/// A complete file of a form that is not yet a record.
public struct FinishedFile: Sendable {
    /// The name of the form's field.
    public let name: String
    /// The client's name for the file. Anyone can choose it: never use it as a path.
    public let filename: String
    /// The media type that the client sent.
    public let contentType: String
    /// The SHA-256 of the content, in lower-case hexadecimal.
    public let sha256: String
    /// The content.
    public let content: any StoredFile
    /// The path of the content; `nil` if the file is empty, or the store does not use the file system.
    public let path: FilePath?

    /// Describes a file, for your own store.
    public init(
        name: String, filename: String, contentType: String, sha256: String, content: any StoredFile, path: FilePath?
    ) {
        self.name = name
        self.filename = filename
        self.contentType = contentType
        self.sha256 = sha256
        self.content = content
        self.path = path
    }
}

/// The result of checking a file.
public enum ScreeningVerdict: Sendable, Hashable {
    /// The file may be kept.
    case accepted
    /// The form is refused. The reason is a sentence for the client.
    case refused(reason: String)
}

/// What became of an upload.
public struct CommittedUpload: Sendable, Hashable {
    /// The record of the upload.
    public let record: UploadRecord
    /// Whether an earlier upload under the same key made the record.
    public let isRepetition: Bool

    /// Makes the result of a commit, for your own store.
    public init(_ record: UploadRecord, isRepetition: Bool = false) {
        self.record = record
        self.isRepetition = isRepetition
    }
}
