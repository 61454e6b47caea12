import PostcardServer
import Synchronization

/// The uploads of a store with their sizes, oldest first.
struct RetentionLedger: Sendable {
    private struct Entry {
        let id: UploadID
        let bytes: Int64
    }

    /// The uploads with their sizes, oldest first. The type is a slice, because a slice removes its first element
    /// fastest.
    private var entries: ArraySlice<Entry> = []
    private var removed = RecentUploads()
    /// The uploads whose removal has failed. Their removal is tried again.
    private(set) var failed: Set<UploadID> = []

    /// The total size of all uploads. In a damaged directory, the sum may exceed `Int64`.
    private(set) var totalBytes: Int128 = 0

    var count: Int { entries.count }

    /// Adds an upload, unless it is already known.
    mutating func insert(_ id: UploadID, bytes: Int64) {
        let position = position(of: id)
        guard position == entries.endIndex || entries[position].id != id else { return }
        entries.insert(Entry(id: id, bytes: bytes), at: position)
        totalBytes += Int128(bytes)
    }

    /// Adds an upload whose request has ended, unless the upload has already been removed.
    mutating func insert(recorded id: UploadID, bytes: Int64) {
        if !removed.contains(id) { insert(id, bytes: bytes) }
    }

    mutating func remove(_ id: UploadID) {
        failed.remove(id)
        removed.insert(id)
        let position = position(of: id)
        guard position < entries.endIndex, entries[position].id == id else { return }
        totalBytes -= Int128(entries[position].bytes)
        if position == entries.startIndex { entries.removeFirst() } else { entries.remove(at: position) }
    }

    /// Records that an upload could not be removed, so that it is still in the store.
    mutating func keep(_ id: UploadID) { failed.insert(id) }

    /// Removes all uploads that are missing from a listing of the store. `listed` are the identifiers in the listing,
    /// newest first. Returns the listed identifiers whose sizes are unknown, oldest first.
    mutating func reconcile(with listed: [UploadID]) -> [UploadID] {
        var kept: [Entry] = []
        var unknown: [UploadID] = []
        var known = entries
        for id in listed.reversed() {
            while let first = known.first, first.id < id { known.removeFirst() }
            if let first = known.first, first.id == id {
                kept.append(first)
                known.removeFirst()
            } else {
                unknown.append(id)
            }
        }
        entries = kept[...]
        totalBytes = kept.reduce(0) { $0 + Int128($1.bytes) }
        return unknown
    }

    /// The uploads to remove, oldest first, so that the remaining uploads have at most `maximumBytes`. The uploads in
    /// `kept` are never among them. The newest upload is always kept too: its sender has just received the response
    /// that the upload is stored.
    func excess(over maximumBytes: Int64, but kept: Set<UploadID> = []) -> [UploadID] {
        var excess: [UploadID] = []
        var rest = totalBytes
        for entry in entries.dropLast() where !kept.contains(entry.id) {
            guard rest > Int128(maximumBytes) else { break }
            excess.append(entry.id)
            rest -= Int128(entry.bytes)
        }
        return excess
    }

    var newestBytes: Int64 { entries.last?.bytes ?? 0 }

    /// The index of an upload, or the index at which to insert it.
    private func position(of id: UploadID) -> Int {
        // The upload is usually the newest.
        if let newest = entries.last, newest.id < id { return entries.endIndex }
        var (lower, upper) = (entries.startIndex, entries.endIndex)
        while lower < upper {
            let middle = (lower + upper) / 2
            if entries[middle].id < id { lower = middle + 1 } else { upper = middle }
        }
        return lower
    }
}

/// The deletions and due checks since the ledger was last updated. ``StoreLimit`` records the new uploads.
final class RetentionNews: Sendable {
    struct State {
        var deleted: [UploadID] = []
        var due = Due()
    }

    struct Due {
        /// Whether all uploads must be checked against the policy.
        var look = false
        /// Whether a shared store must be listed.
        var listing = false
    }

    private let state = Mutex(State())
    let (changes, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    func add(_ change: (inout State) -> Void = { _ in }) {
        state.withLock { change(&$0) }
        continuation.yield()
    }

    func takeDeleted() -> [UploadID] {
        state.withLock { state in
            defer { state.deleted = [] }
            return state.deleted
        }
    }

    func takeDue() -> Due {
        state.withLock { state in
            defer { state.due = Due() }
            return state.due
        }
    }
}
