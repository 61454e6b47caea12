import PostcardServer
import Synchronization

/// The uploads of a store with their sizes, oldest first.
struct RetentionLedger: Sendable {
    private struct Entry {
        let id: UploadID
        let bytes: Int64
    }

    /// The entries, as a slice because the first is removed most often.
    private var entries: ArraySlice<Entry> = []
    private var removed = RecentUploads()
    /// The uploads whose removal has failed and must be tried again.
    private(set) var failed: Set<UploadID> = []

    /// The size of all uploads together. The sum of the sizes in a damaged directory may be larger than an `Int64`.
    private(set) var totalBytes: Int128 = 0

    var count: Int { entries.count }

    /// Adds an upload, unless it is already known.
    mutating func insert(_ id: UploadID, bytes: Int64) {
        let position = position(of: id)
        guard position == entries.endIndex || entries[position].id != id else { return }
        entries.insert(Entry(id: id, bytes: bytes), at: position)
        totalBytes += Int128(bytes)
    }

    /// Adds an upload whose request has ended, unless the upload was already removed.
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

    /// Notes that an upload could not be removed.
    mutating func keep(_ id: UploadID) { failed.insert(id) }

    /// Removes all uploads that are missing in a listing of the store.
    ///
    /// - Parameter listed: The identifiers of the listing, newest first.
    /// - Returns: The listed identifiers whose sizes are unknown, oldest first.
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

    /// The uploads to remove so that the others have at most this many bytes, oldest first. The newest upload is never
    /// removed: its sender has just been told that it was stored.
    ///
    /// - Parameter kept: Uploads that stay in any case. Defaults to none.
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

    /// The size of the newest upload.
    var newestBytes: Int64 { entries.last?.bytes ?? 0 }

    /// The index of an upload, or the index at which it would be inserted.
    private func position(of id: UploadID) -> Int {
        // The upload is almost always the newest.
        if let newest = entries.last, newest.id < id { return entries.endIndex }
        var (lower, upper) = (entries.startIndex, entries.endIndex)
        while lower < upper {
            let middle = (lower + upper) / 2
            if entries[middle].id < id { lower = middle + 1 } else { upper = middle }
        }
        return lower
    }
}

/// The events since the ledger was last updated, except the arrivals of ``StoreLimit``.
final class RetentionNews: Sendable {
    struct State {
        var deleted: [UploadID] = []
        var due = Due()
    }

    /// The work that is due.
    struct Due {
        /// Whether all uploads must be checked.
        var look = false
        /// Whether a store that other receivers use must be listed.
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
