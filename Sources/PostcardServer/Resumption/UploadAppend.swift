#if Server
import NIOCore

/// Bytes on their way behind those of an upload: gathered until there are 256 KiB of them and then written by a thread
/// for such work, while the next are gathered.
struct UploadAppend {
    private let uploads: UnfinishedUploads
    private let upload: UnfinishedUpload
    private let file: AppendedFile
    private var gathered = ByteBuffer()
    private var writing: FileWork<Void>?
    /// Whether something was not written, behind which nothing may be.
    private var hasFailed = false
    /// Where the upload will end once all that was taken is written.
    private(set) var offset: Int64

    private static let batchBytes = 256 << 10

    init(to upload: UnfinishedUpload, of uploads: UnfinishedUploads) async throws {
        self.uploads = uploads
        self.upload = upload
        file = try await onFileThread { [folder = upload.folder] in try AppendedFile(folder.body) }
        offset = upload.bytes
    }

    mutating func take(_ bytes: ByteBuffer) async throws {
        offset += Int64(bytes.readableBytes)
        // Copied, because a buffer holds on to the memory of all that was read with it.
        gathered.writeImmutableBuffer(bytes)
        if gathered.readableBytes >= Self.batchBytes { try await writeGathered() }
    }

    private mutating func writeGathered() async throws {
        try await finishWriting()
        let batch = gathered
        gathered = ByteBuffer()
        guard batch.readableBytes > 0, !hasFailed else { return }
        writing = FileWork { [uploads, upload, file] in
            try uploads.append(batch.readableBytesSpan, to: upload, file)
        }
    }

    private mutating func finishWriting() async throws {
        guard let work = writing.take() else { return }
        do {
            try await work.value()
        } catch {
            hasFailed = true
            throw error
        }
    }

    /// Writes what was taken, as far as there is room.
    mutating func finish() async throws {
        try await writeGathered()
        try await finishWriting()
    }
}
#endif
