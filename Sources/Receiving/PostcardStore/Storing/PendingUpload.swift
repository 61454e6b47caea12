public import NIOCore
public import SystemPackage

/// An upload that is being stored. A single task begins, writes and ends each file, and finally commits the upload. An
/// upload that is not committed is discarded.
public protocol PendingUpload {
    /// Whether the upload's key already has a record, with which the upload is only compared. Defaults to `false`.
    var isRepetition: Bool { get }

    /// Begins the next file.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func beginFile(_ file: UploadRecord.FileHeader) async throws

    /// Appends bytes to the current file. Returns once the store accepts more, perhaps before the bytes are stored.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func write(_ bytes: ByteBuffer) async throws

    /// Ends the current file.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func endFile() async throws

    /// The complete files, to be checked before the commit. Empty if they belong to an existing record.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func finishedFiles() async throws -> [FinishedFile]

    /// Turns the upload into a record that survives a power cut.
    ///
    /// - Parameters:
    ///   - fields: The text fields, in the order of the form.
    ///   - parts: All fields and files, in the order of the form.
    /// - Returns: The new record, which is then listed, or the record that the upload's key already has.
    /// - Throws: ``UploadStoreError`` if the store is full or fails, or if the key has a record with different content.
    func commit(fields: [UploadRecord.Field], parts: [UploadRecord.Part]) async throws -> CommittedUpload

    /// Removes all data of the upload. Also called after a failed commit.
    func discard() async
}

extension PendingUpload {
    public var isRepetition: Bool { false }
}

/// The result of committing an upload.
public struct CommittedUpload: Sendable, Hashable {
    /// The record of the upload.
    public let record: UploadRecord
    /// Whether an earlier upload under the same key made the record.
    public let isRepetition: Bool

    /// Makes the result of a commit in your own store.
    public init(_ record: UploadRecord, isRepetition: Bool = false) {
        self.record = record
        self.isRepetition = isRepetition
    }
}

/// A complete file of a form that is not yet a record.
public struct FinishedFile: Sendable {
    /// The name of the form's field.
    public let name: String
    /// The client's name for the file. The client can choose any name: never use it as a path.
    public let filename: String
    /// The media type that the client sent.
    public let contentType: String
    /// The SHA-256 digest of the content, in lower-case hexadecimal.
    public let sha256: String
    /// The content of the file, for reading.
    public let content: any StoredFile
    /// The path of the file with the content; `nil` if the file is empty, or the store does not use the file system.
    public let path: FilePath?

    /// Makes the description of a file in your own store.
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
    /// The form must be refused. The reason is a sentence for the client.
    case refused(reason: String)
}

/// A stored file that is open for reading.
public protocol StoredFile: Sendable {
    /// The size of the file in bytes.
    var size: Int64 { get }

    /// Reads up to `count` bytes from an offset; fewer only at the end of the file.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func read(at offset: Int64, count: Int) async throws -> ByteBuffer
}

package struct BytesInMemory: StoredFile {
    let bytes: ByteBuffer

    package init(bytes: ByteBuffer) {
        self.bytes = bytes
    }

    package var size: Int64 { Int64(bytes.readableBytes) }

    package func read(at offset: Int64, count: Int) async throws -> ByteBuffer {
        let start = Int(min(max(offset, 0), size))
        return bytes.getSlice(at: bytes.readerIndex + start, length: min(count, Int(size) - start)) ?? ByteBuffer()
    }
}
