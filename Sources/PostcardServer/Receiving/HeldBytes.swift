import Synchronization

/// Counts the bytes of all forms under way that stay in memory until their records are written.
final class HeldBytes: Sendable {
    private let maximum: Int
    private let held = Atomic<Int>(0)

    init(maximum: Int) {
        self.maximum = maximum
    }

    /// - Throws: ``UploadProblem`` where all forms together would hold more than they may; nothing is taken then.
    func take(_ count: Int) throws(UploadProblem) {
        guard held.add(count, ordering: .relaxed).newValue <= maximum else {
            giveBack(count)
            throw .tooMuchHeld(maximum: maximum)
        }
    }

    func giveBack(_ count: Int) {
        held.subtract(count, ordering: .relaxed)
    }
}
