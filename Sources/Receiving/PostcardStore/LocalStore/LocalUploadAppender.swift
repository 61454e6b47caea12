public import NIOCore
import PostcardFiles
import Synchronization

/// Appends to an unfinished upload of a ``LocalUploadStore``.
///
/// A file thread writes bytes while the next ones are gathered, at most 256 KiB. Bytes never wait for others: a server
/// that is killed loses what arrived during one write.
public struct LocalUploadAppender: UploadAppender {
    private let uploads: LocalUnfinishedUploads
    private let upload: LocalUnfinishedUpload
    private let file: AppendedFile
    private var gathered = GatheredBytes()
    private var writing: FileWork<Void>?
    /// Why bytes were not written. None may follow them.
    private var failure: (any Error)?
    private let start: Int64
    public private(set) var offset: Int64

    init(to upload: LocalUnfinishedUpload, of uploads: LocalUnfinishedUploads) async throws {
        self.uploads = uploads
        self.upload = upload
        file = try await onFileThread { [directory = upload.directory] in try AppendedFile(directory.body) }
        start = upload.bytes
        offset = start
    }

    public mutating func append(_ bytes: ByteBuffer) async throws {
        if let failure { throw failure }
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

    public mutating func finish() async throws {
        do {
            try await writing.take()?.value()
        } catch {
            failure = error
        }
        if let failure { throw failure }
    }

    public mutating func revert() async throws {
        try? await finish()
        do {
            try await onFileThread { [file, start] in try file.cut(to: start) }
        } catch {
            upload.loseBytes()
            throw error
        }
        upload.retreat(to: start)
        offset = start
        gathered = GatheredBytes()
        failure = nil
    }
}

/// Bytes that wait while a thread writes those before them.
private final class GatheredBytes: Sendable {
    private static let maximumBytes = 256 << 10

    private let state = Mutex(State())

    private struct State {
        var bytes = ByteBuffer()
        var isBeingWritten = false
    }

    enum Place {
        /// The caller starts a thread that writes them.
        case isToBeWritten
        /// A thread is writing.
        case isBeingWritten
        /// A thread is writing, and no more bytes may be added before all are written.
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

    /// Writes until nothing is left, or a write fails.
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
