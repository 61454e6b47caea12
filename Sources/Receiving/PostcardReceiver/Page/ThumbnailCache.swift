import NIOCore
import Synchronization

/// The most recently made thumbnails, by the digests of their files.
final class ThumbnailCache: Sendable {
    enum Entry: Sendable {
        case picture(ByteBuffer)
        /// The file is not a readable picture.
        case none
    }

    private struct State {
        var entries: [String: (entry: Entry, used: UInt64)] = [:]
        var bytes = 0
        var clock: UInt64 = 0
    }

    private let maximumBytes: Int
    private let state = Mutex(State())

    /// The memory for each cached thumbnail in addition to its picture, in bytes.
    private static let entryBytes = 256

    /// - Parameter maximumBytes: The maximum total size of all cached thumbnails, in bytes.
    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
    }

    subscript(digest: String) -> Entry? {
        state.withLock { state in
            state.clock += 1
            state.entries[digest]?.used = state.clock
            return state.entries[digest]?.entry
        }
    }

    /// Adds a thumbnail. If the cache is full, the least recently used thumbnails are removed.
    func add(_ entry: Entry, for digest: String) {
        state.withLock { state in
            state.clock += 1
            if let known = state.entries.updateValue((entry, state.clock), forKey: digest) {
                state.bytes -= Self.size(of: known.entry)
            }
            state.bytes += Self.size(of: entry)
            // A quarter of the cache is removed at once, because finding the oldest entries is slow.
            guard state.bytes > maximumBytes else { return }
            for (digest, old) in state.entries.sorted(by: { $0.value.used < $1.value.used }) {
                guard state.bytes > maximumBytes / 4 * 3 else { return }
                state.entries[digest] = nil
                state.bytes -= Self.size(of: old.entry)
            }
        }
    }

    /// The total size of all cached thumbnails, in bytes.
    var bytes: Int { state.withLock(\.bytes) }

    private static func size(of entry: Entry) -> Int {
        switch entry {
        case .picture(let bytes): entryBytes + bytes.readableBytes
        case .none: entryBytes
        }
    }
}
