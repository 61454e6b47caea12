import Synchronization

/// An exit test blocks one of Swift's own threads until its process has ended. Two at a time leave a machine of two
/// processors none for the server that the process waits for: they take turns, whichever their suites are.
package enum BlockingTurn {
    private struct Turn {
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private static let turn = Mutex(Turn())

    /// Does something when its turn comes.
    package static func take(_ work: () async throws -> Void) async rethrows {
        await withCheckedContinuation { continuation in
            let isFree = turn.withLock { turn in
                defer { turn.isTaken = true }
                if turn.isTaken { turn.waiting.append(continuation) }
                return !turn.isTaken
            }
            if isFree { continuation.resume() }
        }
        defer {
            let next = turn.withLock { turn in
                turn.isTaken = !turn.waiting.isEmpty
                return turn.waiting.isEmpty ? nil : turn.waiting.removeFirst()
            }
            next?.resume()
        }
        try await work()
    }
}
