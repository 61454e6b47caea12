#if Server
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Hands out identifiers that only grow, even where the clock stands still or is set back.
struct UploadIDSource: Sendable {
    private var last: Int64

    /// - Parameter newest: The newest identifier that is already in use.
    init(after newest: UploadID?) {
        last = newest?.milliseconds ?? 0
    }

    /// - Parameter now: Milliseconds since 1970.
    mutating func next(now: Int64) -> UploadID {
        last = max(now, last + 1)
        var generator = SystemRandomNumberGenerator()
        return UploadID(milliseconds: last, using: &generator)
    }
}

/// A source for all uploads of a store.
final class SharedIDSource: Sendable {
    private let source: Mutex<UploadIDSource>

    init(after newest: UploadID?) {
        source = Mutex(UploadIDSource(after: newest))
    }

    func next() -> (id: UploadID, time: Date) {
        let now = Date()
        let id = source.withLock { $0.next(now: Int64(now.timeIntervalSince1970 * 1000)) }
        return (id, now)
    }
}
#endif
