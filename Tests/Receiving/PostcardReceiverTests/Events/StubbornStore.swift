import PostcardServer
import Synchronization

/// A store that cannot delete some uploads, and counts the records that are read.
struct StubbornStore: MaintainedUploadStore {
    let local: LocalUploadStore
    let stubborn: State

    final class State: Sendable {
        let ids = Mutex<Set<UploadID>>([])
        let tries = Mutex(0)
        let reads = Mutex(0)
        let sizes = Mutex<[UploadID: Int64]?>(nil)
    }

    init(_ local: LocalUploadStore) {
        self.local = local
        stubborn = State()
    }

    var dependency: String { local.dependency }
    var sweepInterval: Duration { local.sweepInterval }
    var followingInterval: Duration? { local.followingInterval }
    func checkReadiness() async throws { try await local.checkReadiness() }
    func sweep() async throws { await local.sweep() }
    func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending LocalUpload {
        try await local.beginUpload(under: key, announcedBytes: announcedBytes)
    }
    func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID] {
        try await local.identifiers(limit: limit, after: id)
    }
    func record(_ id: UploadID) async throws -> UploadRecord? {
        stubborn.reads.withLock { $0 += 1 }
        return try await local.record(id)
    }
    func sizes() async throws -> [UploadID: Int64]? { stubborn.sizes.withLock { $0 } }
    func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)? {
        try await local.openFile(index, of: id)
    }
    func delete(_ id: UploadID) async throws -> Bool {
        guard !stubborn.ids.withLock({ $0.contains(id) }) else {
            stubborn.tries.withLock { $0 += 1 }
            throw UploadStoreError(.unavailable, "It cannot be deleted.")
        }
        return try await local.delete(id)
    }
}
