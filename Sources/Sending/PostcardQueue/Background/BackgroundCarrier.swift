import GRDB
import HTTPTypes
import PostcardClient
import PostcardFiles
import PostcardFoundation
import SystemPackage

/// Does the work of a ``BackgroundSender`` that involves the queue's files or the transfer service.
struct BackgroundCarrier: AttemptCarrier {
    let sender: BackgroundSender
    let session: BackgroundSession
    let store: QueueStore
    let service: any TransferService
    let time: QueueTime

    func connect() async throws {
        let (session, store) = (session, store)
        // The failure for uploads that an earlier process, not the system, was sending when that process ended.
        let unclear = session.retryPolicy.unclearFailure
        try store.directory.whileNoneSends {
            try store.database.write { try $0.recoverUploads(failingUnclear: unclear) }
        }
        // Reading first avoids a write, which locks the database. iOS ends an app that is suspended with a lock.
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

    /// Makes new header fields for an attempt that was handed to the system before it was due, and begins now. Returns
    /// `nil` if the app has no closure for header fields.
    private static func freshFields(
        of attempt: AttemptID, _ session: BackgroundSession, _ store: QueueStore
    ) async -> HTTPFields? {
        guard let headerFields = session.headerFields else { return nil }
        let row = try? store.database.read { db in
            try db.attempts(of: session.identifier)[attempt].flatMap { try db.row($0) }
        }
        // A resumed upload must keep the request in the resume data. Otherwise the system may send the whole form
        // again.
        guard let row = row ?? nil, row.signed == nil, row.resumeData == nil else { return nil }
        // If the closure throws, the old fields are sent. If the server then refuses the form, the upload is handed to
        // the system again.
        return try? await headerFields(row.upload)
    }

    func attempts() async throws -> [AttemptID: Bool] { try await service.transfers() }

    func takeEvents() -> [AttemptEvent] { sender.takeEvents() }

    /// Marks uploads as being sent, even those that are due later. The system waits until they are due.
    func claim(_ claim: QueueMachine.Claim) throws -> (rows: [UploadRow], nextDue: Date?) {
        if sender.isProcessSending { return ([], nil) }
        while true {
            // Reading first avoids a write, which locks the database. iOS ends an app that is suspended with a lock.
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
            // If the app is being suspended, the remaining uploads are handed to the system when the app runs again.
            let grant = try store.activity.granted()
            defer { grant.end() }
            // The queue now has a new form for this upload. The next attempt sends that form.
            if try await replaceExpiredForm(of: row) {
                return QueueMachine.Refusal(outcome: .stopped(mayHaveArrived: false), hasBegun: false)
            }
            let transfer = try await transfer(of: row)
            // If the file were missing, a background session would crash the app.
            try store.directory.openBody(row.uuid, length: row.upload.totalBytes).close()
            hasBegun = true
            try await service.begin(transfer)
            return nil
        } catch let error as FileError where error.mayPass {
            // The file cannot be read now, such as before the first unlock. This is no attempt: nothing was sent.
            return QueueMachine.Refusal(outcome: Self.postponed(error), hasBegun: hasBegun)
        } catch {
            return QueueMachine.Refusal(outcome: AttemptOutcome(error, otherwise: Self.postponed), hasBegun: hasBegun)
        }
    }

    private static func postponed(_ error: any Error) -> AttemptOutcome {
        .postponed(
            QueuedUpload.Failure(
                .postponed, "The upload could not be handed to the system: \(error)", delivery: .responseLost))
    }

    /// Replaces the presigned form of an upload if it has expired. The attempt then does not begin.
    ///
    /// - Returns: Whether the form had expired.
    /// - Throws: The upload's error if the app has no closure for a new form.
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
            // Removes the old body, or the new one if the upload was changed in the meantime.
            store.directory.removeBody(isReplaced ? row.uuid : form.uuid)
            return true
        } catch {
            store.directory.removeBody(form.uuid)
            throw error
        }
    }

    /// Calls a closure of the app, and cancels the call after the maximum time of a wake-up. The queue waits for the
    /// call.
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
        // An object store must not get credentials of the app.
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
        // From here on, the system may suspend the app and end it without notice.
        store.database.noteRest()
        sender.callHandlersSoon()
    }

    func notifyChange() { store.notifyChange() }
}

/// An error of the app's closures ``BackgroundSession/headerFields`` and ``BackgroundSession/presignedForm``. The
/// upload is then handed to the system later.
private struct ClosureError: Error, CustomStringConvertible {
    let description: String
}

/// Changes the rows of uploads that a background session sends. Each method is called within one database write.
extension Database {
    /// Marks uploads as handed to a background session, even those that are due later. The system waits until then.
    ///
    /// - Parameter ids: The uploads from ``transfersToClaim(_:for:at:)``.
    /// - Returns: The uploads that could still be marked and can be read, in the same order.
    func claimTransfers(_ ids: [QueuedUpload.ID], for session: String, at now: Date) throws -> [UploadRow] {
        if try isQueuePaused { return [] }
        return try ids.compactMap { id in
            try execute(
                sql: """
                    UPDATE upload SET state = CASE WHEN due > ? THEN state ELSE 'sending' END, schedule = NULL,
                        session = ?, attempts = \(Self.increment("attempts")), resource = NULL,
                        sent = CASE WHEN id IN (SELECT id FROM resumption WHERE resumeData IS NOT NULL) THEN sent ELSE 0 END,
                        started = coalesce(started, max(?, coalesce(notBefore, 0)))
                    WHERE id = ? AND schedule IN (0, 1)
                    """, arguments: [now.timeIntervalSince1970, session, now.timeIntervalSince1970, id])
            // Another process may have marked the upload in the meantime.
            guard changesCount == 1 else { return nil }
            try noteAttempt(of: id)
            try forgetPausing(of: id)
            return try readable(id)
        }
    }

    /// Replaces the expired form of an upload, and puts the upload back into the queue. The attempt does not count.
    ///
    /// - Returns: Whether the upload was still marked for the attempt. Otherwise the upload stays unchanged.
    func replaceForm(of row: UploadRow, with form: NewForm) throws -> Bool {
        let id = row.upload.id
        guard let current = try self.row(id), current.attempt == row.attempt, current.isHeld(by: row.session) else {
            return false
        }
        try ruleOutDelivery(of: id)
        try forgetResumption(of: id)
        try execute(
            sql: """
                UPDATE upload SET uuid = ?, url = ?, method = ?, total = ?, sent = 0, attempts = max(attempts, 1) - 1,
                    session = NULL, schedule = \(Self.place), state = CASE WHEN state = 'sending' THEN 'waiting' ELSE state END
                WHERE id = ?
                """,
            arguments: [form.uuid.uuidString, form.url.absoluteString, form.method.rawValue, form.totalBytes, id])
        var fields = form.headerFields
        fields[.idempotencyKey] = nil
        let encoder = JSONEncoder()
        try execute(
            sql: "UPDATE request SET headerFields = ?, contentType = ?, parts = ?, signed = ? WHERE id = ?",
            arguments: [
                try encoder.encode(UploadRow.Field.list(fields)), form.contentType, try encoder.encode(form.parts),
                try form.signed.map { try encoder.encode($0) }, id,
            ])
        return true
    }

    /// The identifiers of the sessions that have the given upload, or any upload if `id` is `nil`.
    ///
    /// - Parameter holdsBack: Whether to include the sessions that have later uploads of the upload's group and are not
    ///   sending them yet.
    func sessions(of id: QueuedUpload.ID? = nil, holdingBack holdsBack: Bool = false) throws -> Set<String> {
        let values = try DatabaseValue.fetchAll(
            self,
            sql: """
                SELECT DISTINCT session FROM upload INDEXED BY upload_session
                WHERE session IS NOT NULL
                    AND (:id IS NULL OR id = :id OR :holdsBack AND id > :id AND state <> 'sending'
                        AND sequence = (SELECT sequence FROM upload WHERE id = :id))
                """, arguments: ["id": id, "holdsBack": holdsBack])
        return Set(values.compactMap(String.fromDatabaseValue))
    }

    /// The uploads to hand to a background session next: first those that are due, by priority, and then others by the
    /// time at which they are due.
    func transfersToClaim(
        _ claim: QueueMachine.Claim, for session: String, at now: Date
    ) throws -> [QueuedUpload.ID] {
        if try isQueuePaused { return [] }
        let waiting = """
            SELECT id FROM upload
            WHERE schedule IN (0, 1) AND id NOT IN (\(claim.excluded.map(String.init).joined(separator: ", ")))
            """
        let time = now.timeIntervalSince1970
        // A value that is not a time counts as due, because its upload would otherwise never be sent.
        let due = try QueuedUpload.ID.fetchAll(
            self,
            sql: "\(waiting) AND (due <= ? OR typeof(due) <> 'real') ORDER BY priority DESC, id LIMIT ?",
            arguments: [time, claim.count])
        // An earlier process may have handed these uploads to the system.
        let handedOver = try Int.fetchOne(
            self,
            sql: """
                SELECT count(*) FROM upload INDEXED BY upload_session
                WHERE session = ? AND state <> 'sending' AND due > ? AND typeof(due) = 'real'
                """, arguments: [session, time])
        let room = min(claim.count - due.count, claim.later - (handedOver ?? 0))
        guard room > 0 else { return due }
        return try due
            + QueuedUpload.ID.fetchAll(
                self,
                sql: "\(waiting) AND due > ? AND typeof(due) = 'real' ORDER BY due, priority DESC, id LIMIT ?",
                arguments: [time, room])
    }
}
