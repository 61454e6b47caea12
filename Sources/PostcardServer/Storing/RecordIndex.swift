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
