import PostcardFiles
import Synchronization
import SystemPackage

/// Waits until the names in a directory are on the disk, once for all who ask while it waits for others.
final class SharedDirectorySync: Sendable {
    private struct State {
        /// The last turn whose names are on the disk.
        var done: UInt64 = 0
        /// The turns whose names may not be: the system reports a failure once, whoever asks first.
        var failed: [(turns: ClosedRange<UInt64>, error: FileError)] = []
    }

    private let path: FilePath
    private let turns = Atomic<UInt64>(0)
    private let state = Mutex(State())

    init(_ path: FilePath) {
        self.path = path
    }

    /// Returns once every name that was made before the call is on the disk. Blocks.
    func synchronize() throws(FileError) {
        let turn = turns.add(1, ordering: .sequentiallyConsistent).newValue
        try state.withLock { state throws(FileError) in
            if let failure = state.failed.first(where: { $0.turns.contains(turn) }) { throw failure.error }
            if turn <= state.done { return }
            // Whoever has a turn by now made their names before.
            let latest = turns.load(ordering: .sequentiallyConsistent)
            do throws(FileError) {
                try DurableFiles.synchronizeDirectory(path)
            } catch {
                let first = max(state.done, state.failed.last?.turns.upperBound ?? 0) + 1
                state.failed.append((first...latest, error))
                throw error
            }
            state.done = latest
        }
    }
}
