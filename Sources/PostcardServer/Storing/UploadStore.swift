public import NIOCore
public import SystemPackage

/// Where uploads are kept.
///
/// A store keeps three promises. An upload appears whole or not at all: until ``PendingUpload/commit(fields:)`` has
/// returned it is in no listing, and once it has returned it survives a power cut. An upload that is discarded, or
/// that a crash cut short, leaves nothing behind. Identifiers grow: a record that is committed later has the
/// greater one. And a key has one record: see ``beginUpload(under:announcedBytes:)``.
public protocol UploadStore: Sendable {
    associatedtype Upload: PendingUpload

    /// Begins an upload. It is nowhere to be seen until it is committed.
    ///
    /// Under a key there is one record until it is deleted, also after a crash, and also where several uploads come in
    /// at once: the first that is committed makes it, and committing any other gives it too, where the fields and files
    /// are the same, and otherwise throws ``UploadStoreError/keyReused``. An upload that fails leaves its key to the
    /// next.
    ///
    /// - Parameters:
    ///   - key: What names the upload, where its sender gave one.
    ///   - announcedBytes: How much will come at most, where its sender said so: a store without room for it throws
    ///     ``UploadStoreError`` with the code ``UploadStoreError/Code/full`` before anything is sent.
    func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending Upload

    /// The identifiers of the records, newest first.
    ///
    /// - Parameters:
    ///   - limit: The most that are given.
    ///   - id: Only records older than this one; the record itself need not exist any more.
    func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID]

    /// The record with the identifier; `nil` where there is none.
    func record(_ id: UploadID) async throws -> UploadRecord?

    /// Opens the JSON of a record for reading: the same bytes as ``UploadRecord/json()``; `nil` where there is none.
    ///
    /// A record may have tens of megabytes. Defaults to encoding it in memory; a store that has the bytes gives those.
    func openRecord(_ id: UploadID) async throws -> (any StoredFile)?

    /// What a record says of one of its files; `nil` where there is no such file. Defaults to reading the record.
    func describedFile(_ index: Int, of id: UploadID) async throws -> UploadRecord.File?

    /// Opens a file's content for reading; `nil` where there is no such file.
    ///
    /// What is open stays readable when the upload is deleted.
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

/// An upload on its way into a store, fed by one task: for each file a beginning, its bytes and an end, and at last
/// a commit. Whoever does not commit discards.
public protocol PendingUpload {
    /// The next file begins.
    func beginFile(name: String, filename: String, contentType: String) async throws

    /// Bytes of the file that was begun. Returns once the store can take more, which need not be when they are
    /// stored.
    func write(_ bytes: ByteBuffer) async throws

    /// The file that was begun is complete.
    func endFile() async throws

    /// The files that are complete, so that they can be looked at before the upload becomes a record. Where they are
    /// those of a record that is there already, and need no looking at, none.
    func finishedFiles() async throws -> [FinishedFile]

    /// Makes the upload a record, durably.
    ///
    /// - Parameter fields: The text fields, in the order in which they came.
    /// - Returns: The record, which is now in the store's listing, or the one that the upload's key already has.
    /// - Throws: ``UploadStoreError`` where there is no room, the store fails, or the key has a record of another
    ///   content.
    func commit(fields: [UploadRecord.Field]) async throws -> CommittedUpload

    /// Removes whatever was written. After a failed commit it is called too.
    func discard() async
}

/// A file of a store, open for reading.
public protocol StoredFile: Sendable {
    /// The bytes of the file.
    var size: Int64 { get }

    /// Up to `count` bytes from an offset on; fewer only where the file ends.
    func read(at offset: Int64, count: Int) async throws -> ByteBuffer
}

/// A file that was received whole, before its form becomes a record.
public struct FinishedFile: Sendable {
    /// The name of the form's field.
    public let name: String
    /// The sender's name for the file. It is data from a stranger: never use it as a path.
    public let filename: String
    /// The media type that the sender gave.
    public let contentType: String
    /// The SHA-256 of the content, in lower-case hexadecimal.
    public let sha256: String
    /// The content.
    public let content: any StoredFile
    /// Where the content lies; `nil` where the store keeps it elsewhere than in the file system, or it is empty.
    public let path: FilePath?

    /// For stores of one's own.
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

/// What a screening says of a file.
public enum ScreeningVerdict: Sendable, Hashable {
    /// The file may be kept.
    case accepted
    /// The form is refused, and its sender is told why in a sentence.
    case refused(reason: String)
}

/// What an upload has become.
public struct CommittedUpload: Sendable, Hashable {
    /// The record of the upload.
    public let record: UploadRecord
    /// Whether an earlier upload under the same key made the record, and this one only asked for it again.
    public let isRepetition: Bool

    /// For stores of one's own.
    public init(_ record: UploadRecord, isRepetition: Bool = false) {
        self.record = record
        self.isRepetition = isRepetition
    }
}
