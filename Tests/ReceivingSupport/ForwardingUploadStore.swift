package import PostcardStore

/// A store that forwards to another one what it does not do itself.
package protocol ForwardingUploadStore: UploadStore {
    associatedtype Base: UploadStore

    var base: Base { get }
}

extension ForwardingUploadStore {
    package func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending Base.Upload {
        try await base.beginUpload(under: key, announcedBytes: announcedBytes)
    }
    package func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID] {
        try await base.identifiers(limit: limit, after: id)
    }
    package func record(_ id: UploadID) async throws -> UploadRecord? { try await base.record(id) }
    package func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)? {
        try await base.openFile(index, of: id)
    }
    package func delete(_ id: UploadID) async throws -> Bool { try await base.delete(id) }
}
