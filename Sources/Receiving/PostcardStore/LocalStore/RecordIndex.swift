import PostcardFiles
import PostcardFoundation
import Synchronization
import SystemPackage

/// The identifiers of a store's records, in memory, so that listings do not become slower with more records.
final class RecordIndex: Sendable {
    /// The identifiers, oldest first.
    private let sorted: Mutex<[UploadID]>

    init(_ ids: [UploadID]) {
        sorted = Mutex(ids.sorted())
    }

    /// Returns at most `limit` identifiers, newest first: those before `id`, or the newest of all if `id` is `nil`.
    func newest(_ limit: Int, before id: UploadID?) -> [UploadID] {
        sorted.withLock { sorted in
            let end = id.map { Self.position(of: $0, in: sorted) } ?? sorted.count
            return sorted[..<end].suffix(max(limit, 0)).reversed()
        }
    }

    func contains(_ id: UploadID) -> Bool {
        sorted.withLock { sorted in
            let position = Self.position(of: id, in: sorted)
            return position < sorted.count && sorted[position] == id
        }
    }

    func insert(_ id: UploadID) {
        sorted.withLock { sorted in
            // The record is usually the newest.
            let position = Self.position(of: id, in: sorted)
            if position == sorted.count || sorted[position] != id { sorted.insert(id, at: position) }
        }
    }

    func remove(_ id: UploadID) {
        sorted.withLock { sorted in
            let position = Self.position(of: id, in: sorted)
            if position < sorted.count, sorted[position] == id { sorted.remove(at: position) }
        }
    }

    /// The number of identifiers that are older than an identifier.
    private static func position(of id: UploadID, in sorted: [UploadID]) -> Int {
        if let newest = sorted.last, newest < id { return sorted.count }
        var (lower, upper) = (0, sorted.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            if sorted[middle] < id { lower = middle + 1 } else { upper = middle }
        }
        return lower
    }
}

/// A record with a key, and the digest for comparing a repetition with it.
struct KeyedRecord: Sendable {
    let id: UploadID
    /// The SHA-256 digest of the record's JSON, in lower-case hexadecimal.
    let digest: String
}

/// The records of keys, and the uploads that wait to make a record under a key.
final class KeyIndex: Sendable {
    private enum Entry {
        case record(KeyedRecord)
        /// An upload is making the record. Other uploads wait for it, in order.
        case claimed(waiting: [CheckedContinuation<Claim, Never>])
    }

    enum Claim {
        /// The caller must make the record, and then call ``KeyIndex/settle(_:with:)``, even if making the record
        /// failed.
        case granted
        case taken(KeyedRecord)
    }

    private let entries: Mutex<[String: Entry]>

    /// - Parameter records: The records, by the digests of their keys.
    init(_ records: [String: KeyedRecord]) {
        entries = Mutex(records.mapValues { .record($0) })
    }

    /// The record of a key; `nil` if there is none.
    func record(under key: UploadKey) -> KeyedRecord? {
        entries.withLock { entries in
            if case .record(let record)? = entries[key.digest] { record } else { nil }
        }
    }

    /// Claims the right to make the record of a key. If another upload has claimed it, waits for that upload.
    func claim(_ key: UploadKey) async -> Claim {
        await withCheckedContinuation { continuation in
            let claim: Claim? = entries.withLock { entries in
                switch entries[key.digest] {
                case nil:
                    entries[key.digest] = .claimed(waiting: [])
                    return .granted
                case .record(let record):
                    return .taken(record)
                case .claimed(let waiting):
                    entries[key.digest] = .claimed(waiting: waiting + [continuation])
                    return nil
                }
            }
            if let claim { continuation.resume(returning: claim) }
        }
    }

    /// Ends a claim. `record` is the new record; `nil` if the upload failed. The claim then passes to the next upload.
    func settle(_ key: UploadKey, with record: KeyedRecord?) {
        let (resumed, claim): ([CheckedContinuation<Claim, Never>], Claim) = entries.withLock { entries in
            guard case .claimed(var waiting)? = entries[key.digest] else { return ([], .granted) }
            if let record {
                entries[key.digest] = .record(record)
                return (waiting, .taken(record))
            }
            guard !waiting.isEmpty else {
                entries[key.digest] = nil
                return ([], .granted)
            }
            let next = waiting.removeFirst()
            entries[key.digest] = .claimed(waiting: waiting)
            return ([next], .granted)
        }
        for continuation in resumed { continuation.resume(returning: claim) }
    }

    /// Removes a deleted record from the index.
    func forget(_ id: UploadID, under digest: String) {
        entries.withLock { entries in
            if case .record(let record)? = entries[digest], record.id == id { entries[digest] = nil }
        }
    }

    /// Removes a damaged record whose key is unknown. Searches all records.
    func forget(_ id: UploadID) {
        entries.withLock { entries in
            let key = entries.first { if case .record(let record) = $0.value { record.id == id } else { false } }?.key
            if let key { entries[key] = nil }
        }
    }
}

/// The records of a local store that were not announced to a webhook yet. Their folders contain an empty file ``name``.
final class LocalOutbox: Sendable {
    private struct State {
        var isKept = false
        var ids: Set<UploadID>
    }

    private let state: Mutex<State>

    /// The name of the empty file in a record's folder.
    static let name = "outbox"

    /// - Parameter ids: The records in the outbox when the store is opened.
    init(_ ids: [UploadID]) {
        state = Mutex(State(ids: Set(ids)))
    }

    /// Whether new records are added to the outbox.
    var isKept: Bool { state.withLock { $0.isKept } }

    var ids: [UploadID] { state.withLock { $0.ids }.sorted() }

    func contains(_ id: UploadID) -> Bool { state.withLock { $0.ids.contains(id) } }

    func keep() { state.withLock { $0.isKept = true } }

    func insert(_ id: UploadID) { state.withLock { _ = $0.ids.insert(id) } }

    func remove(_ id: UploadID) { state.withLock { _ = $0.ids.remove(id) } }
}

extension LocalUploadStore: OutboxStore {
    package func keepOutbox() { outboxIndex.keep() }

    package func outbox() async throws -> [UploadID] { outboxIndex.ids }

    package func isInOutbox(_ id: UploadID) async throws -> Bool { outboxIndex.contains(id) }

    package func settle(_ id: UploadID) async throws {
        // Even if the file cannot be removed, the message about the record is not sent again before the next start.
        outboxIndex.remove(id)
        try await onFileThread { [directory] in
            let file = directory.folder(of: id).appending(LocalOutbox.name)
            guard try !DurableFiles.isMissing(file) else { return }
            try FileManager.default.removeItem(atPath: file.string)
        }
    }
}
