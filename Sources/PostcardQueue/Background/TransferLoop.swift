import GRDB
import HTTPTypes
import PostcardClient
import PostcardFiles
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The task of a ``BackgroundSender``: connects to the service, hands uploads over, and settles how transfers end, one
/// thing after the other.
struct TransferLoop {
    private let session: BackgroundSession
    private let store: QueueStore
    private let service: any TransferService

    private enum Connection {
        case disconnected
        /// It is not known which of the claimed uploads the service has: those of earlier processes, and those after a
        /// failure that could not be saved.
        case connected
        /// The service has the transfers that the database says it has.
        case reconciled
    }

    private var connection = Connection.disconnected
    /// The transfers that the service has, as far as this process knows.
    private var open: [Transfer.ID: OpenTransfer] = [:]
    /// Events that arrived before the connection was reconciled.
    private var events: [TransferEvent] = []
    /// Ends of transfers that are not in the database yet, for example because the disk was full.
    private var unsettled: [(id: Transfer.ID, end: TransferEnd, body: Data)] = []
    /// The system's completion handlers. The system suspends the app again when they have been called.
    private var handlers: [@Sendable () -> Void] = []
    /// Whether the service has delivered all events since the connection, or since the last handlers were called.
    private var hasDeliveredAll = false
    /// Transfers whose ends must be settled before the handlers are called.
    private var awaited: Set<Transfer.ID> = []
    /// Uploads that could not be handed over, and when to try again.
    private var postponed: [QueuedUpload.ID: ContinuousClock.Instant] = [:]

    private struct OpenTransfer {
        let upload: QueuedUpload.ID
        /// The beginning of the response's body.
        var body = Data()
        var isSending = false
    }

    /// How long to wait before an upload that could not be handed over is tried again.
    private static let postponement = Duration.seconds(60)

    /// The maximum number of uploads claimed in one write, so that writes stay short.
    private static let claimCount = 50

    init(_ session: BackgroundSession, _ store: QueueStore, _ service: any TransferService) {
        self.session = session
        self.store = store
        self.service = service
    }

    mutating func run(for sender: BackgroundSender) async {
        for await _ in sender.signals {
            let inbox = sender.takeInbox()
            do {
                try await process(inbox, for: sender)
                for waiter in inbox.waiters { waiter.resume() }
            } catch {
                if inbox.waiters.isEmpty { sender.fail(with: error) }
                for waiter in inbox.waiters { waiter.resume(throwing: error) }
                // The system must not wait for something that cannot be done now.
                callHandlers()
            }
        }
        let rest = sender.end()
        for waiter in rest.waiters { waiter.resume(throwing: CancellationError()) }
        handlers += rest.handlers
        callHandlers()
        if connection != .disconnected { await service.disconnect() }
    }

    private mutating func process(_ inbox: BackgroundSender.Inbox, for sender: BackgroundSender) async throws {
        handlers += inbox.handlers
        events += inbox.events
        let hadDeliveredAll = hasDeliveredAll
        if connection != .reconciled { try await reconcile(sender) }
        try settleEvents()
        if inbox.hasOnlyProgress { return }
        try await cancelObsolete()
        try await handOver()
        // "All delivered" may have come before the handler, or belong to an earlier wake-up. Then the transfers that
        // have ended since are still to be reported.
        if hadDeliveredAll, !inbox.handlers.isEmpty {
            awaited = Set(try await service.transfers().filter(\.value).keys)
        }
        awaited.formIntersection(open.keys)
        if hasDeliveredAll, awaited.isEmpty, !handlers.isEmpty { callHandlers() }
    }

    private mutating func callHandlers() {
        let due = handlers
        handlers = []
        hasDeliveredAll = due.isEmpty && hasDeliveredAll
        for handler in due { handler() }
    }
}

// MARK: - Reconciling

extension TransferLoop {
    /// Compares the transfers that the service has with those that the database says it has.
    private mutating func reconcile(_ sender: BackgroundSender) async throws {
        if connection == .disconnected {
            try await service.connect { [weak sender] in sender?.add($0) }
            connection = .connected
        }
        // What a process that has ended was sending by itself.
        if let lock = try? store.directory.lock() {
            try store.database.write { try $0.recoverUploads() }
            withExtendedLifetime(lock) {}
        }
        let found = try await service.transfers()
        let expected = try store.database.read { try $0.transfers(of: session.identifier) }
        let ended = Set(unsettled.map(\.id))
        for (transfer, upload) in expected where open[transfer] == nil && !ended.contains(transfer) {
            open[transfer] = OpenTransfer(upload: upload)
        }
        events += sender.takeEvents()
        try settleEvents()
        for (transfer, hasEnded) in found where expected[transfer] == nil && !hasEnded {
            await service.cancel(transfer)
        }
        try delayLost(expected.filter { found[$0.key] == nil && open[$0.key] != nil })
        connection = .reconciled
    }

    /// Retries uploads whose transfers the service no longer has, after a delay: their ends may be reported late.
    private mutating func delayLost(_ lost: [Transfer.ID: QueuedUpload.ID]) throws {
        if lost.isEmpty { return }
        try store.database.write { db in
            for id in lost.values {
                try db.delayUpload(
                    id, until: Date(timeIntervalSinceNow: session.lossDelay / .seconds(1)),
                    because:
                        "The system no longer has the upload and did not report how it ended. It will be sent again.",
                    isFailure: false, mayHaveArrived: true)
            }
        }
        for transfer in lost.keys { open[transfer] = nil }
        store.notifyChange()
    }

    /// Cancels the transfers of uploads that were cancelled, paused, retried or cleared.
    private mutating func cancelObsolete() async throws {
        let expected = try store.database.read { try $0.transfers(of: session.identifier) }
        for transfer in open.keys where expected[transfer] == nil {
            if let obsolete = open.removeValue(forKey: transfer) { store.progress.end(obsolete.upload) }
            await service.cancel(transfer)
        }
    }
}

// MARK: - Handing over

extension TransferLoop {
    /// Hands over everything that may be sent, now or later.
    private mutating func handOver() async throws {
        postponed = postponed.filter { $0.value > .now }
        while true {
            // Read first: a write locks the database, and iOS ends an app that is suspended with a lock.
            let ids = try store.database.read { db in
                try db.transfersToClaim(excluding: Array(postponed.keys), limit: Self.claimCount)
            }
            if ids.isEmpty { return }
            let claimed = try store.database.write {
                try $0.claimTransfers(ids, for: session.identifier, at: Date())
            }
            do {
                for row in claimed { try await handOver(row) }
            } catch {
                // This upload and those after it are claimed, but the service does not have them.
                connection = .connected
                throw error
            }
            store.notifyChange()
        }
    }

    private mutating func handOver(_ row: UploadRow) async throws {
        var hasBegun = false
        if let reason = row.expiry(by: session.schedule(for: row), at: Date()) {
            return try write { try $0.failUpload(row.upload.id, because: reason, mayHaveArrived: false) }
        }
        do {
            let transfer = try await transfer(of: row)
            // A background session ends the app if the file is missing.
            try store.directory.openBody(row.uuid, length: row.upload.totalBytes).close()
            open[row.transfer] = OpenTransfer(upload: row.upload.id)
            hasBegun = true
            try await service.begin(transfer)
        } catch let error as FileError where !error.mayPass {
            try write { db in
                try db.failUpload(
                    row.upload.id,
                    because: "The form is no longer in the queue's directory. Enqueue it again. \(error)",
                    mayHaveArrived: false)
            }
        } catch let error as UploadError {
            open[row.transfer] = nil
            try write { try $0.failUpload(row.upload.id, because: error.message, mayHaveArrived: hasBegun) }
        } catch {
            open[row.transfer] = nil
            postponed[row.upload.id] = .now.advanced(by: Self.postponement)
            try write { db in
                try db.delayUpload(
                    row.upload.id, until: Date(timeIntervalSinceNow: Self.postponement / .seconds(1)),
                    because: "The upload could not be handed to the system: \(error)", isFailure: false,
                    mayHaveArrived: hasBegun)
            }
        }
    }

    private func write(_ change: (Database) throws -> Void) throws {
        try store.database.write(change)
        store.notifyChange()
    }

    private func transfer(of row: UploadRow) async throws -> Transfer {
        let upload = row.upload
        var fields = row.headerFields
        if let headerFields = session.headerFields {
            let added: HTTPFields
            do {
                added = try await headerFields(upload)
            } catch {
                throw HeaderFieldsError(description: "its header fields could not be made: \(error)")
            }
            for name in Set(added.map(\.name)) { fields[fields: name] = added[fields: name] }
        }
        let request = try UploadRequest(
            url: upload.url, method: upload.method, headerFields: fields, body: nil, maximumResponseBytes: 0)
        fields = request.headerFields
        fields[.contentType] = row.contentType
        var earliest = upload.conditions.notBefore
        if case .retrying(let due, _) = upload.state { earliest = due }
        return Transfer(
            id: row.transfer, url: request.url, method: upload.method, headerFields: fields,
            body: store.directory.bodyURL(row.uuid), length: upload.totalBytes,
            earliestBegin: earliest.flatMap { $0 > Date() ? $0 : nil }, networks: upload.conditions.networks)
    }
}

/// An error of the app's closure ``BackgroundSession/headerFields``. The upload is handed over later.
private struct HeaderFieldsError: Error, CustomStringConvertible {
    let description: String
}

// MARK: - Settling events

extension TransferLoop {
    private mutating func settleEvents() throws {
        let reported = events
        events = []
        for event in reported {
            switch event {
            case .sent(let transfer, let bytes): noteSent(bytes, by: transfer)
            case .received(let transfer, let data):
                let rest = QueuedUpload.Response.maximumBodyBytes - (open[transfer]?.body.count ?? 0)
                open[transfer]?.body.append(data.prefix(rest))
            case .ended(let transfer, let end):
                unsettled.append((transfer, end, open.removeValue(forKey: transfer)?.body ?? Data()))
            case .deliveredAll:
                hasDeliveredAll = true
                awaited = []
            }
        }
        while let (transfer, end, body) = unsettled.first {
            try settle(transfer, end, body)
            unsettled.removeFirst()
        }
    }

    private mutating func noteSent(_ bytes: Int64, by id: Transfer.ID) {
        guard var transfer = open[id] else { return }
        store.progress.note(transfer.upload, bytesSent: bytes)
        if !transfer.isSending {
            transfer.isSending = true
            open[id] = transfer
            // If this fails, the upload is listed as waiting although it is being sent. Nothing else depends on it.
            try? store.database.writeWithoutSync { try $0.beginTransfer(of: transfer.upload) }
            store.notifyChange()
        }
        store.updates.notify()
    }

    /// Records what the end of a transfer means. An event that arrives twice changes nothing.
    private func settle(_ transfer: Transfer.ID, _ end: TransferEnd, _ body: Data) throws {
        let isDone = try store.database.write { db -> Bool in
            guard let row = try db.row(named: transfer.upload) else { return false }
            let upload = row.upload
            store.progress.end(upload.id)
            if case .done = upload.state { return false }
            let outcome = TransferOutcome(
                end, body: body, of: upload, after: row.delivery(before: transfer.attempt))
            if case .accepted(let response) = outcome {
                // Even if the upload was cancelled or paused since, the server has it.
                try db.finishUpload(upload.id, with: response)
                return true
            }
            if row.transfer == transfer, row.session == session.identifier {
                try db.record(outcome, of: row, for: session, at: Date())
            }
            return false
        }
        if isDone { store.directory.removeBody(transfer.upload) }
        store.notifyChange()
    }
}
