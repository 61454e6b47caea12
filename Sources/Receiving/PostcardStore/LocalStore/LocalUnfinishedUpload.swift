public import NIOCore
import PostcardFiles
public import PostcardFoundation
import Synchronization
import SystemPackage

/// An unfinished upload in a ``LocalUploadStore``.
public final class LocalUnfinishedUpload: UnfinishedUpload {
    private struct State {
        var facts: UnfinishedDirectory.Facts
        var progress: UnfinishedUploadProgress
        /// Whether all bytes of the upload are on the disk.
        var isSynchronized = false
        /// Whether the disk has failed to store some bytes of the upload. Kept here, because the system reports such a
        /// failure only once.
        var hasLostBytes = false
    }

    public let id: ResumptionID
    public let lock: UploadLock
    let directory: UnfinishedDirectory
    private let uploads: LocalUnfinishedUploads
    private let state: Mutex<State>
    /// Protects the stored facts. The upload's own lock is not enough: requests for the progress do not always hold it.
    private let changing = Mutex(())

    /// Makes an upload for a request that creates it.
    init(
        _ id: ResumptionID, in directory: UnfinishedDirectory, _ facts: UnfinishedDirectory.Facts,
        _ uploads: LocalUnfinishedUploads
    ) {
        self.id = id
        self.directory = directory
        self.uploads = uploads
        lock = UploadLock(isReserved: true)
        state = Mutex(State(facts: facts, progress: .unfinished(offset: 0)))
    }

    /// Makes an upload that was found when the store was opened.
    init(
        _ id: ResumptionID, in directory: UnfinishedDirectory, _ facts: UnfinishedDirectory.Facts,
        _ progress: UnfinishedUploadProgress, _ uploads: LocalUnfinishedUploads
    ) {
        self.id = id
        self.directory = directory
        self.uploads = uploads
        lock = UploadLock(isReserved: false)
        state = Mutex(State(facts: facts, progress: progress))
    }

    private var facts: UnfinishedDirectory.Facts { state.withLock { $0.facts } }

    public var form: UnfinishedForm {
        let facts = facts
        var form = UnfinishedForm(
            contentType: facts.contentType, key: UploadKey(digest: facts.keyDigest), length: facts.length,
            reprDigest: facts.reprDigest, wantReprDigest: facts.wantReprDigest)
        form.fileParameters = facts.fileParameters
        form.client = facts.client
        return form
    }

    public var expires: Date { facts.expires }
    public var progress: UnfinishedUploadProgress { state.withLock { $0.progress } }

    /// The number of the upload's bytes in its directory.
    var bytes: Int64 {
        if case .unfinished(let offset) = progress { offset } else { 0 }
    }

    /// - Throws: ``UploadStoreError`` if the disk fails to store the bytes. The upload is then lost.
    public func durableProgress() async throws -> UnfinishedUploadProgress {
        let progress = progress
        let (isSynchronized, hasLostBytes) = state.withLock { ($0.isSynchronized, $0.hasLostBytes) }
        guard case .unfinished(let offset) = progress else { return progress }
        guard !hasLostBytes else { return .gone }
        let opened = try await onFileThread { [directory] () -> (file: AppendedFile, size: Int64)? in
            do throws(FileError) {
                let body = try AppendedFile(directory.body)
                return (file: body, size: try body.size())
            } catch  where error.errno == .noSuchFileOrDirectory {
                return nil
            }
        }
        guard let (body, size) = opened, size >= offset else {
            // Another program has shortened the file. The client cannot send bytes again that were reported as stored.
            state.withLock { $0.hasLostBytes = true }
            return .gone
        }
        guard !isSynchronized else { return progress }
        do {
            try await onFileThread { try body.synchronize() }
        } catch {
            state.withLock { $0.hasLostBytes = true }
            throw error
        }
        try await change { $0.promised = max(offset, $0.promised ?? 0) }
        // Bytes that have arrived meanwhile are not synced.
        state.withLock { $0.isSynchronized = $0.progress == progress }
        return progress
    }

    public func setLength(_ length: Int64) async throws {
        guard facts.length == nil else { return }
        try await change { $0.length = length }
    }

    private func change(_ change: @escaping @Sendable (inout UnfinishedDirectory.Facts) -> Void) async throws {
        try await onFileThread { [self] in
            try changing.withLock { _ in
                var facts = facts
                change(&facts)
                try directory.update(facts)
                state.withLock { [facts] in $0.facts = facts }
            }
        }
    }

    public func makeAppender(isRevertible: Bool) async throws -> LocalUploadAppender {
        try await LocalUploadAppender(to: self, of: uploads)
    }

    func advance(by count: Int) {
        state.withLock { state in
            guard case .unfinished(let offset) = state.progress else { return }
            state.progress = .unfinished(offset: offset + Int64(count))
            state.isSynchronized = false
        }
    }

    /// Marks the upload as lost, because some of its bytes are wrong.
    func loseBytes() {
        state.withLock { $0.hasLostBytes = true }
    }

    /// Removes the last bytes from the progress. No client was told that these bytes are stored.
    func retreat(to offset: Int64) {
        state.withLock { state in
            guard case .unfinished(let current) = state.progress, current > offset else { return }
            state.progress = .unfinished(offset: offset)
            state.isSynchronized = false
        }
    }

    public func openContent() async throws -> any StoredFile {
        try await onFileThread { [directory] in
            guard let file = try LocalFile(directory.body) else {
                throw FileError("open", directory.body, Errno.noSuchFileOrDirectory)
            }
            return file
        }
    }

    public func finish(with response: FinalResponse, options: UnfinishedUploadOptions) async throws {
        try await uploads.finish(self, with: response, options: options)
    }

    func store(_ response: FinalResponse) async throws {
        try await onFileThread { [directory] in try directory.finish(response) }
        state.withLock { $0.progress = .finished(length: response.length, record: response.record) }
    }

    public func response() async throws -> FinalResponse {
        do {
            return try await onFileThread { [directory] in try directory.response() }
        } catch let error as UploadStoreError where error.code == .damaged {
            await uploads.setAside(self, error.underlyingError ?? error)
            throw error
        }
    }

    public func discard() async throws { try await uploads.remove(self) }

    func becomeGone() {
        state.withLock { $0.progress = .gone }
    }
}

/// Appends to an unfinished upload of a ``LocalUploadStore``.
///
/// A file thread writes bytes while the next bytes are gathered, at most 256 KiB. Writing begins at once, so a server
/// that is killed only loses the bytes that arrived during one write.
public struct LocalUploadAppender: UploadAppender {
    private let uploads: LocalUnfinishedUploads
    private let upload: LocalUnfinishedUpload
    private let file: AppendedFile
    private var gathered = GatheredWrites()
    private var writing: FileWork<Void>?
    /// The error of a failed write. Afterwards, no bytes may be written.
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
        gathered = GatheredWrites()
        failure = nil
    }
}

/// Bytes that wait while a thread writes the previous bytes.
private final class GatheredWrites: Sendable {
    private static let maximumBytes = 256 << 10

    private let state = Mutex(State())

    private struct State {
        var bytes = ByteBuffer()
        var isBeingWritten = false
    }

    enum Place {
        /// The caller must start a thread that writes the bytes.
        case isToBeWritten
        /// A thread is already writing, and will write the bytes too.
        case isBeingWritten
        /// A thread is writing, and the maximum number of bytes waits. No bytes may be added before all are written.
        case isFull
    }

    func add(_ bytes: ByteBuffer) -> Place {
        state.withLock { state in
            // The bytes are copied, because a buffer keeps the memory of all bytes that were read with it.
            state.bytes.writeImmutableBuffer(bytes)
            guard state.isBeingWritten else {
                state.isBeingWritten = true
                return .isToBeWritten
            }
            return state.bytes.readableBytes < Self.maximumBytes ? .isBeingWritten : .isFull
        }
    }

    /// Writes the gathered bytes until none remain, or a write fails.
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
