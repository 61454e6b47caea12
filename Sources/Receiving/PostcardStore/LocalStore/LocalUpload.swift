public import NIOCore
import PostcardFoundation
import Synchronization

/// An upload that a ``LocalUploadStore`` is storing.
///
/// Up to 256 KiB are gathered, or less if many uploads are in progress. A file thread then hashes and writes them while
/// the next bytes are gathered. A smaller form is written, synced and committed at once.
public final class LocalUpload: PendingUpload {
    /// The store, which keeps its directory locked. Work on file threads must not use the store, because the work may
    /// outlive it.
    private let store: LocalUploadStore
    private let key: UploadKey?
    public let isRepetition: Bool
    private let folder: SharedUploadDirectory
    private var files: [UploadRecord.FileHeader] = []
    private var steps: [UploadDirectory.Step] = []
    private var gatheredBytes = 0
    private var gatheredFiles = 0
    private var writing: FileWork<Void>?

    /// The maximum number of bytes that an upload gathers: enough that passing them to another thread costs little.
    private static let maximumBatchBytes = 256 << 10
    private static let minimumBatchBytes = 16 << 10
    /// The memory for gathered bytes that all uploads divide, in bytes. An upload may gather `minimumBatchBytes`, even
    /// if an equal part would be smaller.
    private static let sharedBytes = 8 << 20

    /// The maximum number of files that are gathered before they are written, because each write occupies a thread.
    private static let batchFiles = 32

    /// - Parameter isKept: Whether the upload is written, or only compared with the record that its key already has.
    init(store: LocalUploadStore, key: UploadKey?, isKept: Bool) {
        self.store = store
        self.key = key
        isRepetition = !isKept
        folder = SharedUploadDirectory(
            UploadDirectory(
                directory: store.directory, names: store.names, name: store.nextFolderName(), key: key,
                isKept: isKept))
    }

    deinit {
        if !files.isEmpty { store.uploadCount.subtract(1, ordering: .relaxed) }
    }

    private var batchBytes: Int {
        let share = Self.sharedBytes / max(store.uploadCount.load(ordering: .relaxed), 1)
        return min(max(share, Self.minimumBatchBytes), Self.maximumBatchBytes)
    }

    public func beginFile(_ file: UploadRecord.FileHeader) async throws {
        if files.isEmpty { store.uploadCount.add(1, ordering: .relaxed) }
        files.append(file)
        steps.append(.beginFile)
    }

    public func write(_ bytes: ByteBuffer) async throws {
        gather(bytes)
        gatheredBytes += bytes.readableBytes
        if gatheredBytes >= batchBytes { try await writeGathered() }
    }

    private func writeGathered() async throws {
        try await finishWriting()
        let batch = takeSteps()
        writing = FileWork { [folder] in
            try folder.use { folder in try folder.perform(batch, isLast: false) }
        }
    }

    private func gather(_ bytes: ByteBuffer) {
        if case .bytes(var last)? = steps.last {
            // The buffer is removed first, because a buffer with two owners is copied when it is written to.
            steps.removeLast()
            let isTaken = last.appendIfSmall(bytes)
            steps.append(.bytes(last))
            if isTaken { return }
        }
        steps.append(.bytes(bytes.kept))
    }

    public func endFile() async throws {
        steps.append(.endFile)
        gatheredFiles += 1
        if gatheredFiles >= Self.batchFiles { try await writeGathered() }
    }

    public func finishedFiles() async throws -> [FinishedFile] {
        try await finishWriting()
        let rest = takeSteps()
        return try await onFileThread { [folder, files] in
            try folder.use { folder in
                // All files are closed while the form is screened.
                try folder.perform(rest, isLast: false)
                guard folder.isKept else { return [] }
                return files.enumerated().map { index, head in
                    let path = folder.path(ofFile: index)
                    let content: any StoredFile =
                        path.map { ClosedFile(path: $0, size: folder.contents[index].size) } ?? EmptyFile()
                    return FinishedFile(
                        name: head.name, filename: head.filename, contentType: head.contentType,
                        sha256: folder.contents[index].sha256, content: content, path: path)
                }
            }
        }
    }

    /// The text fields of a form, and the order of its parts.
    private struct Texts: Sendable {
        let fields: [UploadRecord.Field]
        let parts: [UploadRecord.Part]
    }

    public func commit(
        fields: [UploadRecord.Field], parts: [UploadRecord.Part]
    ) async throws -> CommittedUpload {
        try await finishWriting()
        let texts = Texts(fields: fields, parts: parts)
        guard let key else { return CommittedUpload(try await makeRecord(texts)) }
        while true {
            switch await store.keys.claim(key) {
            case .granted:
                return CommittedUpload(try await makeRecord(texts, under: key))
            case .taken(let first):
                if let received = try await store.received(first.id) {
                    let record = try await repetition(of: first, received, with: texts)
                    return CommittedUpload(record, isRepetition: true)
                }
                // The key's record was deleted meanwhile.
                store.keys.forget(first.id, under: key.digest)
            }
        }
    }

    private func makeRecord(_ texts: Texts, under key: UploadKey) async throws -> UploadRecord {
        do {
            return try await makeRecord(texts)
        } catch {
            // The files are removed before another upload can use the key.
            await discard()
            store.keys.settle(key, with: nil)
            throw error
        }
    }

    private func makeRecord(_ texts: Texts) async throws -> UploadRecord {
        let rest = takeSteps()
        return try await onFileThread {
            [
                folder, identifiers = store.identifiers, keys = store.keys, index = store.index,
                outbox = store.outboxIndex, key, files
            ] in
            try folder.use { folder in
                try folder.perform(rest)
                let (id, received) = identifiers.next()
                let record = Self.record(id, received, texts, files, folder.contents)
                let isAnnounced = outbox.isKept
                let digest = try folder.commit(record, inOutbox: isAnnounced)
                if let key { keys.settle(key, with: digest.map { KeyedRecord(id: id, digest: $0) }) }
                if isAnnounced { outbox.insert(id) }
                // The record is added to the index last, because clients can delete it from then on.
                index.insert(id)
                return record
            }
        }
    }

    /// Returns the record that the key already has, if this upload is equal. The stored record is not read, so that
    /// repetitions of a large record stay cheap.
    private func repetition(
        of first: KeyedRecord, _ received: Date, with texts: Texts
    ) async throws -> UploadRecord {
        let rest = takeSteps()
        let (repeated, isSame) = try await onFileThread { [folder, files] in
            try folder.use { folder in
                try folder.perform(rest)
                let record = Self.record(first.id, received, texts, files, folder.contents)
                return (record, record.digest == first.digest)
            }
        }
        await discard()
        guard isSame else { throw UploadStoreError.keyReused }
        return repeated
    }

    private static func record(
        _ id: UploadID, _ received: Date, _ texts: Texts, _ files: [UploadRecord.FileHeader],
        _ contents: [UploadDirectory.Content]
    ) -> UploadRecord {
        let described = zip(files, contents).enumerated().map { index, pair in
            UploadRecord.File(pair.0, size: pair.1.size, sha256: pair.1.sha256, at: index, of: id)
        }
        return UploadRecord(id: id, received: received, fields: texts.fields, files: described, parts: texts.parts)
    }

    public func discard() async {
        // An error of the last write no longer matters.
        try? await finishWriting()
        steps.removeAll()
        try? await onFileThread { [folder] in try folder.use { folder in folder.remove() } }
    }

    private func takeSteps() -> [UploadDirectory.Step] {
        defer {
            steps = []
            gatheredBytes = 0
            gatheredFiles = 0
        }
        return steps
    }

    private func finishWriting() async throws {
        guard let work = writing.take() else { return }
        try await work.value()
    }
}

/// The directory of an upload. One task at a time uses it, on a file thread, so its lock never blocks.
private final class SharedUploadDirectory: Sendable {
    private let folder: Mutex<UploadDirectory>

    init(_ folder: consuming sending UploadDirectory) {
        self.folder = Mutex(folder)
    }

    func use<Value: Sendable>(_ body: (inout UploadDirectory) throws -> Value) throws -> Value {
        try folder.withLock { folder in try body(&folder) }
    }
}

extension ByteBuffer {
    /// The size below which bytes are copied, in bytes. A buffer keeps the memory of all bytes that were read with it,
    /// so keeping a small buffer would waste memory. Small pieces are gathered up to this size.
    private static let smallBytes = 4 << 10

    /// Whether the buffer must be copied before it is kept, because it would keep a much larger block of memory.
    private var isSmall: Bool { readableBytes < Self.smallBytes }

    /// The same bytes in a buffer that may be kept after the next bytes are read.
    package var kept: ByteBuffer {
        guard isSmall else { return self }
        // The capacity is exact, because thousands of stalled senders may each keep such a buffer.
        var room = ByteBufferAllocator().buffer(capacity: readableBytes)
        room.writeImmutableBuffer(self)
        return room
    }

    /// Appends the next bytes if the total is small, so that bytes that arrive one by one do not each need a buffer. A
    /// full buffer doubles its capacity. A buffer with another owner is copied. Returns `false` if the total is too
    /// large.
    package mutating func appendIfSmall(_ next: ByteBuffer) -> Bool {
        guard next.isSmall, readableBytes + next.readableBytes <= Self.smallBytes else { return false }
        writeImmutableBuffer(next)
        return true
    }
}
