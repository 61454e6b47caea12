import NIOCore
import Synchronization

/// Bytes on their way behind those of an upload: a thread for such work writes them, and meanwhile the next are
/// gathered, 256 KiB at the most.
///
/// Nothing waits for more to come. A receiver that is killed has lost what came in the time of one write, and no more.
struct UploadAppend {
    private let uploads: UnfinishedUploads
    private let upload: UnfinishedUpload
    private let file: AppendedFile
    private let gathered = GatheredBytes()
    private var writing: FileWork<Void>?
    /// Where the upload will end once all that was taken is written.
    private(set) var offset: Int64

    init(to upload: UnfinishedUpload, of uploads: UnfinishedUploads) async throws {
        self.uploads = uploads
        self.upload = upload
        file = try await onFileThread { [folder = upload.folder] in try AppendedFile(folder.body) }
        offset = upload.bytes
    }

    mutating func take(_ bytes: ByteBuffer) async throws {
        offset += Int64(bytes.readableBytes)
        switch gathered.add(bytes) {
        case .isBeingWritten: break
        case .isFull: try await finish()
        case .isToBeWritten:
            try await finish()
            writing = FileWork { [gathered, uploads, upload, file] in
                try gathered.write { try uploads.append($0.readableBytesSpan, to: upload, file) }
            }
        }
    }

    /// Waits until what was taken is written, as far as there is room.
    mutating func finish() async throws {
        try await writing.take()?.value()
    }
}

/// What waits to be written by one thread while it writes what came before.
private final class GatheredBytes: Sendable {
    private static let maximumBytes = 256 << 10

    private let state = Mutex(State())

    private struct State {
        var bytes = ByteBuffer()
        var isBeingWritten = false
    }

    enum Place {
        /// Whoever adds bytes has to see to it that they are written.
        case isToBeWritten
        case isBeingWritten
        /// The same, and no more bytes may be added before all are written.
        case isFull
    }

    func add(_ bytes: ByteBuffer) -> Place {
        state.withLock { state in
            // Copied, because a buffer holds on to the memory of all that was read with it.
            state.bytes.writeImmutableBuffer(bytes)
            guard state.isBeingWritten else {
                state.isBeingWritten = true
                return .isToBeWritten
            }
            return state.bytes.readableBytes < Self.maximumBytes ? .isBeingWritten : .isFull
        }
    }

    /// Writes until nothing is left. Where something cannot be written nothing that follows is.
    func write(_ write: (ByteBuffer) throws -> Void) throws {
        while let bytes = next() { try write(bytes) }
    }

    private func next() -> ByteBuffer? {
        state.withLock { state in
            defer { state.bytes = ByteBuffer() }
            if state.bytes.readableBytes == 0 { state.isBeingWritten = false }
            return state.isBeingWritten ? state.bytes : nil
        }
    }
}
