import GRDB
import HTTPTypes
public import PostcardClient
import PostcardFoundation
import PostcardWire

extension UploadQueue {
    /// Cancels an upload for good, so that it cannot be retried. Its form is removed from disk at once, and the server
    /// is asked to delete its bytes of a resumable upload. If another process is sending the upload, that process stops
    /// and asks the server.
    ///
    /// - Parameters:
    ///   - id: The upload's identifier.
    ///   - client: The client that asks the server.
    /// - Returns: `true` if the server has no bytes of the upload, or if the process that sends the upload asks the
    ///   server to delete them; `false` if the server keeps the bytes until they expire.
    /// - Throws: ``UploadQueueError`` if there is no such upload, or if it is done.
    @discardableResult
    public func discard(_ id: QueuedUpload.ID, with client: UploadClient) async throws(UploadQueueError) -> Bool {
        let (leftover, sessions) = try await work { store throws(UploadQueueError) in
            let (row, leftover, sessions) = try store.database.write { db in
                guard let state = try db.state(id) else { throw UploadQueueError.unknownUpload(id) }
                if state == .done { throw UploadQueueError.wrongState(id, state.rawValue, cannot: "cancelled") }
                let row: UploadRow?
                do { row = try db.row(id) } catch is RowDamage { row = nil }
                let sessions = try db.sessions(of: id)
                try db.cancelUpload(id)
                try db.forgetResource(of: id)
                try db.forgetImport(of: id)
                return (row, row.flatMap(Leftover.init), sessions)
            }
            if let row {
                store.directory.removeBody(row.uuid)
                removeImports(of: [row.uuid], in: store)
            }
            store.notifyChange()
            // A process that sends the upload still uses the upload resource, and asks the server itself when it stops.
            return (row?.upload.state == .sending && store.hasSender ? nil : leftover, sessions)
        }
        await stopTransfers(of: sessions)
        guard let leftover else { return true }
        return await client.delete([leftover])
    }
}

extension QueueStore {
    /// Whether a process is sending uploads of the queue.
    fileprivate var hasSender: Bool {
        do {
            try withExtendedLifetime(directory.lock()) {}
            return false
        } catch {
            return true
        }
    }
}

/// An upload resource on a server for an upload that is no longer sent.
struct Leftover: Sendable {
    let resource: URL
    let url: URL
    let headerFields: HTTPFields

    /// Finds the upload resource in an upload's row. Returns `nil` if there is none.
    init?(_ row: UploadRow) {
        guard let resource = row.resource else { return nil }
        self.resource = resource
        url = row.upload.url
        headerFields = row.headerFields
    }
}

extension UploadClient {
    /// The maximum number of servers to ask at a time.
    private static let maximumDeletions = 8

    /// Asks servers to delete upload resources. A server that does not respond is asked only once. Returns whether all
    /// upload resources were deleted.
    @discardableResult
    func delete(_ leftovers: [Leftover]) async -> Bool {
        let servers = Dictionary(grouping: leftovers, by: \.resource.origin)
        return await withTaskGroup(of: Bool.self) { group in
            var isComplete = true
            for (index, leftovers) in servers.values.enumerated() {
                if index >= Self.maximumDeletions, let isDeleted = await group.next() {
                    isComplete = isComplete && isDeleted
                }
                group.addTask {
                    for leftover in leftovers {
                        let isDeleted = await delete(
                            leftover.resource, of: leftover.url, headerFields: leftover.headerFields)
                        if !isDeleted { return false }
                    }
                    return true
                }
            }
            return await group.reduce(isComplete) { $0 && $1 }
        }
    }
}

extension Database {
    /// The upload resources on servers for the given uploads. Uploads that are being sent are left out, because their
    /// senders ask the servers. Rows that cannot be read are left out too.
    func leftovers(of ids: [QueuedUpload.ID]) throws -> [Leftover] {
        try ids.compactMap { id in
            do {
                guard let row = try row(id), row.upload.state != .sending else { return nil }
                return Leftover(row)
            } catch is RowDamage { return nil }
        }
    }

    func forgetResource(of id: QueuedUpload.ID) throws {
        try execute(sql: "UPDATE upload SET resource = NULL WHERE id = ?", arguments: [id])
    }
}
