import PostcardServer

/// A store that forwards to another one what it does not do itself.
protocol ForwardingUploadStore: UploadStore {
    associatedtype Base: UploadStore

    var base: Base { get }
}

extension ForwardingUploadStore {
    func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending Base.Upload {
        try await base.beginUpload(under: key, announcedBytes: announcedBytes)
    }
    func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID] {
        try await base.identifiers(limit: limit, after: id)
    }
    func record(_ id: UploadID) async throws -> UploadRecord? { try await base.record(id) }
    func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)? {
        try await base.openFile(index, of: id)
    }
    func delete(_ id: UploadID) async throws -> Bool { try await base.delete(id) }
}
