import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Hands out identifiers that only grow, even where the clock stands still or is set back.
final class UploadIDSource: Sendable {
    private let last: Atomic<Int64>

    /// - Parameter newest: The newest identifier that is already in use.
    init(after newest: UploadID?) {
        last = Atomic(newest?.milliseconds ?? 0)
    }

    func next() -> (id: UploadID, time: Date) {
        let now = Date()
        return (next(now: Int64(now.timeIntervalSince1970 * 1000)), now)
    }

    /// - Parameter now: Milliseconds since 1970.
    func next(now: Int64) -> UploadID {
        var known = last.load(ordering: .relaxed)
        while true {
            let next = max(now, known + 1)
            let (isTaken, latest) = last.compareExchange(expected: known, desired: next, ordering: .relaxed)
            if isTaken {
                var generator = SystemRandomNumberGenerator()
                return UploadID(milliseconds: next, using: &generator)
            }
            known = latest
        }
    }
}
