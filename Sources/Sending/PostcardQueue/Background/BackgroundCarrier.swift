import HTTPTypes
import PostcardClient
import PostcardFiles
import PostcardFoundation
import SystemPackage

/// Carries out for a ``BackgroundSender`` what concerns the queue's files and the transfer service.
struct BackgroundCarrier: AttemptCarrier {
    let sender: BackgroundSender
    let session: BackgroundSession
    let store: QueueStore
    let service: any TransferService
    let time: QueueTime

    func connect() async throws {
        let (session, store) = (session, store)
        // What a process that has ended was sending by itself.
        let unclear = session.retryPolicy.unclearFailure
        try store.directory.whileNoneSends {
            try store.database.write { try $0.recoverUploads(failingUnclear: unclear) }
        }
        // Read first: a write locks the database, and iOS ends an app that is suspended with a lock.
        let unreadable = try store.database.read { try $0.unreadableUploads(of: session.identifier) }
        if !unreadable.isEmpty {
            try store.database.write { db in for id in unreadable { _ = try db.readable(id) } }
            store.notifyChange()
        }
        try await service.connect { [weak sender = sender] event in
            sender?.receive(event)
        } freshFields: { attempt in
            await Self.freshFields(of: attempt, session, store)
        }
    }

    /// Header fields for an attempt that begins now and was handed over long ago, or `nil` if the app makes none.
    private static func freshFields(
        of attempt: AttemptID, _ session: BackgroundSession, _ store: QueueStore
    ) async -> HTTPFields? {
        guard let headerFields = session.headerFields else { return nil }
        let row = try? store.database.read { db in
            try db.attempts(of: session.identifier)[attempt].flatMap { try db.row($0) }
        }
        // A resumed upload has the request that the system keeps in the resume data: with another one, it may send the
        // whole form again.
        guard let row = row ?? nil, row.signed == nil, row.resumeData == nil else { return nil }
        // With the old fields, the server may refuse the form, and it is then handed over again.
        return try? await headerFields(row.upload)
    }

    func attempts() async throws -> [AttemptID: Bool] { try await service.transfers() }

    func takeEvents() -> [AttemptEvent] { sender.takeEvents() }

    /// Also claims uploads whose time has not come: the system waits for it.
    func claim(_ claim: QueueMachine.Claim) throws -> (rows: [UploadRow], nextDue: Date?) {
        if sender.isProcessSending { return ([], nil) }
        while true {
            // Read first: a write locks the database, and iOS ends an app that is suspended with a lock.
            let ids = try store.database.read {
                try $0.transfersToClaim(claim, for: session.identifier, at: time.date())
            }
            if ids.isEmpty { return ([], nil) }
            let rows = try store.database.write {
                try $0.claimTransfers(ids, for: session.identifier, at: time.date())
            }
            if !rows.isEmpty { return (rows, nil) }
        }
    }

    func begin(_ row: UploadRow) async -> QueueMachine.Refusal? {
        var hasBegun = false
        do {
            // The rest is handed over when the app runs again.
            let grant = try store.activity.granted()
            defer { grant.end() }
            // The queue has another form of this upload then, which is claimed next.
            if try await replaceExpiredForm(of: row) {
                return QueueMachine.Refusal(outcome: .stopped(mayHaveArrived: false), hasBegun: false)
            }
            let transfer = try await transfer(of: row)
            // A background session ends the app if the file is missing.
            try store.directory.openBody(row.uuid, length: row.upload.totalBytes).close()
            hasBegun = true
            try await service.begin(transfer)
            return nil
        } catch let error as FileError where error.mayPass {
            // Such as before the first unlock: nothing was sent, so no attempt is used up.
            return QueueMachine.Refusal(outcome: Self.postponed(error), hasBegun: hasBegun)
        } catch {
            return QueueMachine.Refusal(outcome: AttemptOutcome(error, otherwise: Self.postponed), hasBegun: hasBegun)
        }
    }

    private static func postponed(_ error: any Error) -> AttemptOutcome {
        .postponed(
            QueuedUpload.Failure(
                .postponed, "The upload could not be handed to the system: \(error)", mayHaveArrived: true))
    }

    /// Replaces the form of an upload, if it was signed for a time that is over. The attempt does not begin then.
    ///
    /// - Returns: Whether it was.
    /// - Throws: The error of the upload if there is no closure that replaces it.
    private func replaceExpiredForm(of row: UploadRow) async throws -> Bool {
        guard let signed = row.signed, let expires = signed.expires else { return false }
        let now = time.date()
        guard let presignedForm = session.presignedForm else {
            let begin = max(now, row.earliestBegin ?? now)
            guard begin >= expires else { return false }
            throw UploadError.formExpired(row.upload.url, at: expires, before: now >= expires ? nil : begin)
        }
        guard now >= expires else { return false }
        let expiry = UploadError.formExpired(row.upload.url, at: expires)
        let fresh: PresignedForm
        do {
            fresh = try await withinWakeUp { try await presignedForm(row.upload) }
        } catch {
            throw ClosureError(description: "\(expiry.message) There is no new one yet: \(error)")
        }
        if fresh.hasExpired(at: time.date()) {
            throw ClosureError(description: "\(expiry.message) The new one has expired, too. Is the clock right?")
        }
        let address = SignedAddress(fresh, texts: signed.texts)
        let layout = try await fresh.layout(replacing: try row.layout(in: store.directory), texts: signed.texts)
        let request = QueuedRequest(
            url: fresh.openURL, method: fresh.method, headerFields: fresh.requestFields)
        let form = try await NewForm(writing: layout, request, address, in: store.directory)
        do {
            let isReplaced = try store.database.write { try $0.replaceForm(of: row, with: form) }
            // Otherwise the upload was changed meanwhile.
            store.directory.removeBody(isReplaced ? row.uuid : form.uuid)
            return true
        } catch {
            store.directory.removeBody(form.uuid)
            throw error
        }
    }

    /// Calls one of the app's closures, and cancels it if it takes longer than a wake-up may: the queue does nothing
    /// else meanwhile.
    private func withinWakeUp<Value: Sendable>(
        _ closure: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let limit = session.maximumWakeUp
        let end = time.instant() + limit
        return try await until(
            { [time] in try await time.sleep(end) }, or: ClosureError(description: "That took longer than \(limit)."),
            closure)
    }

    private func transfer(of row: UploadRow) async throws -> Transfer {
        let upload = row.upload
        var fields = row.headerFields
        // An object store gets no credentials of the app.
        if row.signed == nil, let headerFields = session.headerFields {
            let added: HTTPFields
            do {
                added = try await withinWakeUp { try await headerFields(upload) }
            } catch {
                throw ClosureError(description: "its header fields could not be made: \(error)")
            }
            for name in Set(added.map(\.name)) { fields[fields: name] = added[fields: name] }
        }
        let request = try UploadRequest(
            url: row.signed?.url ?? upload.url, method: upload.method, headerFields: fields, body: nil,
            maximumResponseBytes: 0)
        fields = request.headerFields
        fields[.contentType] = row.contentType
        return Transfer(
            id: row.attempt, upload: upload.id, url: request.url, method: upload.method, headerFields: fields,
            body: store.directory.bodyURL(row.uuid), length: upload.totalBytes,
            earliestBegin: row.earliestBegin.flatMap { $0 > time.date() ? $0 : nil },
            networks: upload.conditions.networks, priority: upload.conditions.priority, resumeData: row.resumeData)
    }

    func cancel(_ attempts: Set<AttemptID>, pausing paused: Set<AttemptID>) async -> [AttemptID: Data] {
        let cancelled = attempts.subtracting(paused)
        if !cancelled.isEmpty { await service.cancel(cancelled) }
        return paused.isEmpty ? [:] : await service.pause(paused)
    }

    var judges: Bool { session.accepts != nil }

    func rejection(of response: QueuedUpload.Response, to upload: QueuedUpload) async -> UploadError? {
        guard let accepts = session.accepts else { return nil }
        do {
            try await withinWakeUp { try await accepts(upload, response) }
            return nil
        } catch let error as ClosureError {
            return .rejected(response, to: upload, because: ResponseRejection(error.description, mayPass: true))
        } catch {
            return .rejected(response, to: upload, because: error)
        }
    }

    func callHandlers() {
        // The system may suspend the app from here on, and end it without notice.
        store.database.noteRest()
        sender.callHandlersSoon()
    }

    func notifyChange() { store.notifyChange() }
}

/// An error of one of the app's closures: ``BackgroundSession/headerFields`` or ``BackgroundSession/presignedForm``.
/// The upload is handed over later.
private struct ClosureError: Error, CustomStringConvertible {
    let description: String
}
