import PostcardServer
import Synchronization

/// What has happened since the ledger was last brought up to date, besides the arrivals of ``StoreLimit``.
final class RetentionNews: Sendable {
    struct State {
        var deleted: [UploadID] = []
        var due = Due()
    }

    /// What it is time for.
    struct Due {
        /// To look at everything.
        var look = false
        /// To list a store that other receivers use.
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
