import GRDB
import HTTPTypes
public import PostcardClient
public import PostcardFoundation
import PostcardWire

// MARK: - Changing uploads

extension UploadQueue {
    /// Sends a failed or cancelled upload again, like a new one. An upload that waits for its next attempt is sent now.
    ///
    /// An upload may have failed although the server accepted the form. ``QueuedUpload/Failure/delivery`` is then
    /// `responseLost` or `accepted`, and the server may store the form twice unless it honors the `Idempotency-Key`. An
    /// upload whose ``UploadConditions/expires`` has passed no longer expires.
    ///
    /// - Throws: ``UploadQueueError`` if there is no such upload, if it is waiting, being sent, paused or done, or if
    ///   its form is no longer on disk.
    public func retry(_ id: QueuedUpload.ID) async throws(UploadQueueError) {
        try await change(id, holdingBack: true) { [time] db, row, store in
            switch row.upload.state {
            case .failed, .cancelled, .retrying, .importing(because: .some):
                // The picked items were not copied yet.
                if try db.restartImport(of: id) { return }
                try db.retryUpload(id, at: time.date())
            case .importing(because: nil), .waiting, .waitingForNetwork, .sending, .paused, .done:
                throw UploadQueueError.wrongState(id, row.upload.state.name, cannot: "retried")
            }
            if !store.hasBody(row) { throw UploadQueueError.bodyMissing(id) }
        }
        resumeImportsSoon()
    }

    /// Records that the server has the form of an upload that may have arrived, according to the user or the server.
    /// The upload is then ``QueuedUpload/State/done(_:)``, with a response whose status is 0.
    ///
    /// - Throws: ``UploadQueueError`` if there is no such upload, or if it has not failed with the
    ///   ``QueuedUpload/Failure/delivery`` `responseLost` or `accepted`.
    public func confirmArrival(of id: QueuedUpload.ID) async throws(UploadQueueError) {
        try await change(id) { [time] db, row, _ in
            guard case .failed(let failure) = row.upload.state, failure.delivery.mayHaveArrived else {
                throw UploadQueueError.wrongState(id, row.upload.state.name, cannot: "confirmed")
            }
            try db.finishUpload(
                id, with: QueuedUpload.Response(status: 0, headerFields: [:], body: Data()), at: time.date())
            // The next cleanup removes the body.
        }
        reporter?.start()
    }

    /// Sends an upload to another URL from now on, such as after the app's server has moved. The upload is sent like a
    /// newly enqueued one, with the same header fields.
    ///
    /// An upload that is being sent is cancelled first. If the old server has accepted the form by then, the upload is
    /// done.
    ///
    /// - Throws: ``UploadQueueError`` if there is no such upload, if it is done, if its form was signed for its URL, if
    ///   the new URL cannot receive a form, or if the form is no longer on disk.
    public func retry(_ id: QueuedUpload.ID, to url: URL) async throws(UploadQueueError) {
        try await change(id, holdingBack: true) { [time] db, row, store in
            if case .done = row.upload.state { throw UploadQueueError.wrongState(id, "done", cannot: "sent elsewhere") }
            if try db.hasImport(of: id) { throw UploadQueueError.wrongState(id, "importing", cannot: "sent elsewhere") }
            if row.signed != nil { throw UploadQueueError.signed(id) }
            do {
                _ = try UploadRequest(
                    url: url, method: row.upload.method, headerFields: HTTPFields(), body: nil, maximumResponseBytes: 0)
            } catch {
                throw UploadQueueError.invalidURL(url, error)
            }
            if !store.hasBody(row) { throw UploadQueueError.bodyMissing(id) }
            // A server with another origin may lack the form even if the old server has it.
            try db.readdressUpload(
                id, to: url, keepingDelivery: url.hasOrigin(of: row.upload.url), at: time.date())
        }
    }

    /// Cancels an upload. If the upload is being sent, the sending process or the system stops the transfer. If the
    /// server has accepted the form by then, the upload is done.
    ///
    /// - Throws: ``UploadQueueError`` if there is no such upload, or if it is done.
    public func cancel(_ id: QueuedUpload.ID) async throws(UploadQueueError) {
        let sessions = try await work { store throws(UploadQueueError) in
            let sessions = try store.database.write { db in
                guard let state = try db.state(id) else { throw UploadQueueError.unknownUpload(id) }
                if state == .done { throw UploadQueueError.wrongState(id, state.rawValue, cannot: "cancelled") }
                let sessions = try db.sessions(of: id)
                try db.cancelUpload(id)
                return sessions
            }
            store.notifyChange()
            return sessions
        }
        await stopTransfers(of: sessions)
    }

    /// Pauses an upload until it is resumed. A paused upload holds back the later uploads of its group.
    ///
    /// The upload keeps its progress if the server resumes uploads. For a background session, the server must support a
    /// draft of Resumable Uploads for HTTP that the system supports, and must have announced this before the pause.
    /// Otherwise the upload starts over when it is resumed. It also starts over if the server has removed its bytes, or
    /// if an update has moved the app's files.
    ///
    /// - Throws: ``UploadQueueError`` if there is no such upload, or if it has ended.
    public func pause(_ id: QueuedUpload.ID) async throws(UploadQueueError) {
        try await change(id) { db, row, _ in
            if row.upload.state.isEnded || row.upload.state.kind == .importing {
                throw UploadQueueError.wrongState(id, row.upload.state.name, cannot: "paused")
            }
            try db.pauseUpload(id)
        }
    }

    /// Resumes a paused upload. It keeps its progress if the server resumes uploads; otherwise it starts over. See
    /// ``pause(_:)``.
    ///
    /// - Throws: ``UploadQueueError`` if there is no such upload, or if it is not paused.
    public func resume(_ id: QueuedUpload.ID) async throws(UploadQueueError) {
        try await change(id, holdingBack: true) { [time] db, row, _ in
            guard row.upload.state == .paused else {
                throw UploadQueueError.wrongState(id, row.upload.state.name, cannot: "resumed")
            }
            try db.retryUpload(id, at: time.date())
        }
    }

    /// Changes an upload, and stops its transfer if the transfer is open.
    ///
    /// - Parameter holdsBack: Whether the change may make later uploads of the same group wait.
    private func change(
        _ id: QueuedUpload.ID, holdingBack holdsBack: Bool = false,
        _ change: @Sendable (Database, UploadRow, QueueStore) throws -> Void
    ) async throws(UploadQueueError) {
        let sessions = try await work { store throws(UploadQueueError) in
            let sessions = try store.database.write { db in
                guard let row = try db.row(id) else { throw UploadQueueError.unknownUpload(id) }
                let sessions = try db.sessions(of: id, holdingBack: holdsBack)
                try change(db, row, store)
                return sessions
            }
            store.notifyChange()
            return sessions
        }
        await stopTransfers(of: sessions)
    }
}

// MARK: - Changing the whole queue

extension UploadQueue {
    /// Pauses the whole queue until ``resume()``, even after restarts. Uploads that are being sent go back into the
    /// queue and keep their progress as with ``pause(_:)``. New uploads wait.
    ///
    /// - Throws: ``UploadQueueError`` if the database fails.
    public func pause() async throws(UploadQueueError) {
        try await changeAll { db, _ in try db.setQueuePaused(true) }
    }

    /// Resumes the whole queue. Uploads that were paused one by one stay paused.
    ///
    /// - Throws: ``UploadQueueError`` if the database fails.
    public func resume() async throws(UploadQueueError) {
        try await changeAll { db, _ in try db.setQueuePaused(false) }
    }

    /// Retries all failed uploads whose forms are still on disk.
    ///
    /// - Throws: ``UploadQueueError`` if the database fails.
    public func retryAll() async throws(UploadQueueError) {
        try await changeAll { [time] db, store in
            var groups: Set<String> = []
            for id in try QueuedUpload.ID.fetchAll(db, sql: "SELECT id FROM upload WHERE state = 'failed' ORDER BY id")
            {
                do {
                    guard let row = try db.row(id) else { continue }
                    if try db.restartImport(of: id) { continue }
                    guard store.hasBody(row) else { continue }
                    // The first upload of a group holds back the group's other uploads.
                    let isFirst = row.upload.conditions.group.map { groups.insert($0).inserted } ?? false
                    try db.retryUpload(id, at: time.date(), holdingBack: isFirst)
                } catch is RowDamage {
                    // An upload with a damaged row would fail again.
                }
            }
        }
        resumeImportsSoon()
    }

    /// Cancels all uploads that have not ended.
    ///
    /// - Throws: ``UploadQueueError`` if the database fails.
    public func cancelAll() async throws(UploadQueueError) {
        try await changeAll { db, _ in try db.cancelAllUploads() }
    }

    /// Removes all uploads in the given states with their forms, including uploads that the app has not acknowledged.
    /// The queue may have the only copy of a failed upload's form.
    ///
    /// - Parameters:
    ///   - states: The states. Uploads that are being sent are stopped. Defaults to `done`.
    ///   - client: The client that asks servers to delete their bytes of resumable uploads. Defaults to `nil`: servers
    ///     keep the bytes until they expire.
    /// - Returns: The number of uploads removed.
    /// - Throws: ``UploadQueueError`` if the database fails.
    @discardableResult
    public func clear(
        _ states: Set<QueuedUpload.State.Kind> = [.done], with client: UploadClient? = nil
    ) async throws(UploadQueueError) -> Int {
        try await remove(with: client) { try $0.ids(in: states) }
    }

    /// Removes an upload in any state, with its form. If the upload is being sent, the process or system that sends it
    /// stops. The server may have accepted the form by then.
    ///
    /// - Parameters:
    ///   - id: The upload's identifier.
    ///   - client: The client that asks the server to delete its bytes of a resumable upload. Defaults to `nil`: the
    ///     server keeps the bytes until they expire.
    /// - Throws: ``UploadQueueError`` if there is no such upload, or if the database fails.
    public func remove(_ id: QueuedUpload.ID, with client: UploadClient? = nil) async throws(UploadQueueError) {
        _ = try await remove(with: client) { db in
            guard try db.state(id) != nil else { throw UploadQueueError.unknownUpload(id) }
            return [id]
        }
    }

    private func remove(
        with client: UploadClient?, _ select: @Sendable (Database) throws -> [QueuedUpload.ID]
    ) async throws(UploadQueueError) -> Int {
        let (count, leftovers, sessions) = try await work { store throws(UploadQueueError) in
            let (removed, leftovers) = try store.database.write { db in
                let ids = try select(db)
                let leftovers = client == nil ? [] : try db.leftovers(of: ids)
                return (try db.removeUploads(ids), leftovers)
            }
            for body in removed.bodies { store.directory.removeBody(body) }
            removeImports(of: removed.bodies, in: store)
            store.notifyChange()
            return (removed.count, leftovers, removed.sessions)
        }
        await stopTransfers(of: sessions)
        if let client { await client.delete(leftovers) }
        return count
    }

    private func changeAll(
        _ change: @Sendable (Database, QueueStore) throws -> Void
    ) async throws(UploadQueueError) {
        let sessions = try await work { store throws(UploadQueueError) in
            let sessions = try store.database.write { db in
                let sessions = try db.sessions()
                try change(db, store)
                return sessions
            }
            store.notifyChange()
            return sessions
        }
        await stopTransfers(of: sessions)
    }
}
