import PostcardFiles
import PostcardFoundation
import Synchronization
import SystemPackage

/// The records of a local store that are still to be announced. Each has an empty file ``name`` in its folder, which is
/// there from the commit.
final class LocalOutbox: Sendable {
    private struct State {
        var isKept = false
        var ids: Set<UploadID>
    }

    private let state: Mutex<State>

    /// The name of the file in a record's folder.
    static let name = "outbox"

    /// - Parameter ids: The records of earlier starts.
    init(_ ids: [UploadID]) {
        state = Mutex(State(ids: Set(ids)))
    }

    /// Whether new records are in the outbox.
    var isKept: Bool { state.withLock { $0.isKept } }

    var ids: [UploadID] { state.withLock { $0.ids }.sorted() }

    func contains(_ id: UploadID) -> Bool { state.withLock { $0.ids.contains(id) } }

    func keep() { state.withLock { $0.isKept = true } }

    func insert(_ id: UploadID) { state.withLock { _ = $0.ids.insert(id) } }

    func remove(_ id: UploadID) { state.withLock { _ = $0.ids.remove(id) } }
}

extension LocalUploadStore: OutboxStore {
    package func keepOutbox() { outboxIndex.keep() }

    package func outbox() async throws -> [UploadID] { outboxIndex.ids }

    package func isInOutbox(_ id: UploadID) async throws -> Bool { outboxIndex.contains(id) }

    package func settle(_ id: UploadID) async throws {
        // Even if the file cannot be removed: until the next start once is enough.
        outboxIndex.remove(id)
        try await onFileThread { [directory] in
            let file = directory.folder(of: id).appending(LocalOutbox.name)
            guard try !DurableFiles.isMissing(file) else { return }
            try FileManager.default.removeItem(atPath: file.string)
        }
    }
}
