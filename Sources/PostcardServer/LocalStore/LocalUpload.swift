public import NIOCore
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An upload on its way into a ``LocalUploadStore``.
///
/// Bytes are gathered until there are 256 KiB of them, or fewer where many uploads are under way, and are then hashed
/// and written by a thread for such work, while the next are gathered: at most twice as many wait at a time. A form
/// smaller than that is written, synced and made a record in one go.
public final class LocalUpload: PendingUpload {
    /// Keeps the directory locked. Work on other threads does not hold it, because they let go of things later.
    private let store: LocalUploadStore
    private let key: UploadKey?
    private let folder: SharedUploadDirectory
    private var files: [FileHead] = []
    private var steps: [UploadDirectory.Step] = []
    private var gatheredBytes = 0
    private var gatheredFiles = 0
    private var writing: FileWork<Void>?

    /// What is known of a file before its content has come.
    private struct FileHead {
        let name: String
        let filename: String
        let contentType: String
    }

    /// Large enough that the change of threads costs nothing, small enough for many uploads at once.
    private static let maximumBatchBytes = 256 << 10
    private static let minimumBatchBytes = 16 << 10
    /// What all uploads together may gather, unless they are very many.
    private static let sharedBytes = 8 << 20

    /// Each file waits for the disk, and others wait for the thread.
    private static let batchFiles = 32

    /// - Parameter isKept: Whether anything is written. What has its record already is only compared with it.
    init(store: LocalUploadStore, key: UploadKey?, isKept: Bool) {
        self.store = store
        self.key = key
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

    public func beginFile(name: String, filename: String, contentType: String) async throws {
        if files.isEmpty { store.uploadCount.add(1, ordering: .relaxed) }
        files.append(FileHead(name: name, filename: filename, contentType: contentType))
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
            // Taken out first, because a buffer that two hold is copied when it is written to.
            steps.removeLast()
            let isTaken = last.takeIn(bytes)
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
                try folder.perform(rest)
                guard folder.isKept else { return [] }
                var finished: [FinishedFile] = []
                for (index, head) in files.enumerated() {
                    let path = folder.path(ofFile: index)
                    var content: any StoredFile = EmptyFile()
                    if let path, let file = try LocalFile(path) { content = file }
                    finished.append(
                        FinishedFile(
                            name: head.name, filename: head.filename, contentType: head.contentType,
                            sha256: folder.contents[index].sha256, content: content, path: path))
                }
                return finished
            }
        }
    }

    public func commit(fields: [UploadRecord.Field]) async throws -> CommittedUpload {
        try await finishWriting()
        guard let key else { return CommittedUpload(try await makeRecord(fields)) }
        while true {
            switch await store.keys.claim(key) {
            case .granted:
                return CommittedUpload(try await makeRecord(fields, under: key))
            case .taken(let id):
                if let first = try await store.record(id) {
                    return CommittedUpload(try await answer(with: first, for: fields), isRepetition: true)
                }
                // Someone is deleting it.
                store.keys.forget(id, under: key.digest)
            }
        }
    }

    private func makeRecord(_ fields: [UploadRecord.Field], under key: UploadKey) async throws -> UploadRecord {
        do {
            let record = try await makeRecord(fields)
            store.keys.settle(key, with: record.id)
            return record
        } catch {
            // Whoever makes the record instead is to find nothing of this one.
            await discard()
            store.keys.settle(key, with: nil)
            throw error
        }
    }

    private func makeRecord(_ fields: [UploadRecord.Field]) async throws -> UploadRecord {
        let rest = takeSteps()
        return try await onFileThread { [folder, identifiers = store.identifiers, index = store.index, files] in
            try folder.use { folder in
                try folder.perform(rest)
                let (id, received) = identifiers.next()
                let record = Self.record(id, received, fields, files, folder.contents)
                try folder.commit(record)
                index.insert(id)
                return record
            }
        }
    }

    /// Gives the record that the key already has, where this upload is the same once more.
    private func answer(with first: UploadRecord, for fields: [UploadRecord.Field]) async throws -> UploadRecord {
        let rest = takeSteps()
        let repeated = try await onFileThread { [folder, files] in
            try folder.use { folder in
                try folder.perform(rest)
                return Self.record(first.id, first.received, fields, files, folder.contents)
            }
        }
        await discard()
        guard repeated == first else { throw UploadStoreError.keyReused }
        return first
    }

    private static func record(
        _ id: UploadID, _ received: Date, _ fields: [UploadRecord.Field], _ files: [FileHead],
        _ contents: [UploadDirectory.Content]
    ) -> UploadRecord {
        let described = zip(files, contents).enumerated().map { index, pair in
            UploadRecord.File(
                name: pair.0.name, filename: pair.0.filename, contentType: pair.0.contentType, size: pair.1.size,
                sha256: pair.1.sha256, url: UploadRecord.url(ofFile: index, of: id))
        }
        return UploadRecord(id: id, received: received, fields: fields, files: described)
    }

    public func discard() async {
        // What the last write failed of no longer matters.
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

/// An upload's folder as its owner hands it from one piece of work to the next. The lock is never waited for,
/// because there is one at a time.
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
    /// A buffer holds on to the memory of all that was read with it; fewer bytes than these are copied out of it.
    private static let smallBytes = 4 << 10

    /// Whether the buffer is better copied than held on to.
    private var isSmall: Bool { readableBytes < Self.smallBytes }

    /// The same bytes to be held on to for longer than until the next are read.
    package var kept: ByteBuffer {
        guard isSmall else { return self }
        var room = ByteBufferAllocator().buffer(capacity: Self.smallBytes)
        room.writeImmutableBuffer(self)
        return room
    }

    /// Takes in bytes that follow, where they are few and there is room for them: what comes byte by byte is not held
    /// in a buffer for each of them. Nobody else should hold the buffer, or it is copied.
    ///
    /// - Returns: Whether it took them.
    package mutating func takeIn(_ next: ByteBuffer) -> Bool {
        guard next.isSmall, writableBytes >= next.readableBytes else { return false }
        writeImmutableBuffer(next)
        return true
    }
}
