import Synchronization

/// Counts the files that are read ahead, each of which holds up to 2 MiB: the block that is read, and the next one while
/// it arrives.
final class ReadingAhead: Sendable {
    private let free = Atomic(16)

    /// A place among them, given back when the last reference is gone.
    final class Place: Sendable {
        private let all: ReadingAhead

        fileprivate init(_ all: ReadingAhead) {
            self.all = all
        }

        deinit {
            all.free.add(1, ordering: .relaxed)
        }
    }

    /// - Returns: `nil` if there is none.
    func place() -> Place? {
        guard free.subtract(1, ordering: .relaxed).newValue >= 0 else {
            free.add(1, ordering: .relaxed)
            return nil
        }
        return Place(self)
    }
}
