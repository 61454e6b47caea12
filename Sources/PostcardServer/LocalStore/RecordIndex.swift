import Synchronization

/// The identifiers of a store's records in memory, so that a page of a listing costs the same however many there are.
final class RecordIndex: Sendable {
    /// Oldest first.
    private let sorted: Mutex<[UploadID]>

    init(_ ids: [UploadID]) {
        sorted = Mutex(ids.sorted())
    }

    /// Identifiers, newest first.
    ///
    /// - Parameter id: Only those older than this one.
    func newest(_ limit: Int, before id: UploadID?) -> [UploadID] {
        sorted.withLock { sorted in
            let end = id.map { Self.position(of: $0, in: sorted) } ?? sorted.count
            return sorted[..<end].suffix(max(limit, 0)).reversed()
        }
    }

    func insert(_ id: UploadID) {
        sorted.withLock { sorted in
            // As a rule it is the newest.
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

    /// How many identifiers are older.
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

/// Which record was made under which key, and which keys an upload is about to make one under.
final class KeyIndex: Sendable {
    private enum Entry {
        case record(UploadID)
        /// One upload makes the record; the others wait for it, in their order.
        case claimed(waiting: [CheckedContinuation<Claim, Never>])
    }

    enum Claim {
        /// The record may be made, and ``KeyIndex/settle(_:with:)`` is to be called whatever becomes of it.
        case granted
        /// There is a record.
        case taken(UploadID)
    }

    private let entries: Mutex<[String: Entry]>

    /// - Parameter records: The records that were made under keys, by the keys' digests.
    init(_ records: [String: UploadID]) {
        entries = Mutex(records.mapValues { .record($0) })
    }

    /// The record that was made under a key.
    func record(under key: UploadKey) -> UploadID? {
        entries.withLock { entries in
            guard case .record(let id)? = entries[key.digest] else { return nil }
            return id
        }
    }

    /// Asks to make the record of a key. Where another upload is about to, waits for what becomes of that.
    func claim(_ key: UploadKey) async -> Claim {
        await withCheckedContinuation { continuation in
            let claim: Claim? = entries.withLock { entries in
                switch entries[key.digest] {
                case nil:
                    entries[key.digest] = .claimed(waiting: [])
                    return .granted
                case .record(let id):
                    return .taken(id)
                case .claimed(let waiting):
                    entries[key.digest] = .claimed(waiting: waiting + [continuation])
                    return nil
                }
            }
            if let claim { continuation.resume(returning: claim) }
        }
    }

    /// Says what became of a claim that was granted.
    ///
    /// - Parameter id: The record; where there is none, the claim goes to the upload that has waited longest.
    func settle(_ key: UploadKey, with id: UploadID?) {
        let (resumed, claim): ([CheckedContinuation<Claim, Never>], Claim) = entries.withLock { entries in
            guard case .claimed(var waiting)? = entries[key.digest] else { return ([], .granted) }
            if let id {
                entries[key.digest] = .record(id)
                return (waiting, .taken(id))
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

    /// Forgets a record that is no more.
    func forget(_ id: UploadID, under digest: String) {
        entries.withLock { entries in
            if case .record(id)? = entries[digest] { entries[digest] = nil }
        }
    }
}
