import GRDB
import HTTPTypes
import PostcardClient
import PostcardFiles
import Synchronization
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Hands a queue's uploads to a transfer service, and settles what it reports.
///
/// One task does everything, one thing after the other: it is woken by events, by changes of the queue, and when the system
/// wakes the app.
final class BackgroundOutbox: Sendable {
    let session: BackgroundSession
    private let store: QueueStore
    private let service: any TransferService
    private let inbox = Mutex(Inbox())
    private let wakes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// What is to be done next.
    struct Inbox {
        var events: [TransferEvent] = []
        var handlers: [@Sendable () -> Void] = []
        /// Who waits until what is due was handed over, or could not be.
        var waiters: [CheckedContinuation<Void, any Error>] = []
        var hasChanges = false
        var failure: (any Error)?
        fileprivate var isClosed = false
        fileprivate var task: Task<Void, Never>?
    }

    init(_ session: BackgroundSession, _ store: QueueStore, _ service: any TransferService) {
        self.session = session
        self.store = store
        self.service = service
    }

    /// Begins to work, if it has not begun. It goes on until ``close()``.
    func start() {
        inbox.withLock { inbox in
            guard inbox.task == nil else { return }
            inbox.hasChanges = true
            inbox.task = Task {
                var work = BackgroundWork(session, store, service)
                await work.run(for: self)
            }
        }
        wakes.continuation.yield()
    }

    /// Disconnects from the service. What was handed over goes on.
    func close() {
        BackgroundSessions.shared.remove(self)
        wakes.continuation.finish()
    }

    /// Refuses new handlers and waiters, and gives back those that are left.
    func end() -> Inbox {
        inbox.withLock { $0.isClosed = true }
        return take()
    }

    /// Waits until it has disconnected after ``close()``.
    func closed() async {
        await inbox.withLock { $0.task }?.value
    }

    /// The queue may have changed: hands over what is due, and ends what is no longer wanted.
    func noteChange() {
        inbox.withLock { $0.hasChanges = true }
        wakes.continuation.yield()
    }

    /// The service has reported an event.
    func note(_ event: TransferEvent) {
        inbox.withLock { $0.events.append(event) }
        wakes.continuation.yield()
    }

    /// The system has woken the app: calls the handler when everything is settled and handed over.
    func wakeUp(_ handler: @escaping @Sendable () -> Void) {
        let isOpen = inbox.withLock { inbox in
            if !inbox.isClosed { inbox.handlers.append(handler) }
            return !inbox.isClosed
        }
        if isOpen { start() } else { handler() }
    }

    /// Hands over what is due, and returns when that is done.
    func handOver() async throws {
        try await withCheckedThrowingContinuation { continuation in
            let isOpen = inbox.withLock { inbox in
                if !inbox.isClosed { inbox.waiters.append(continuation) }
                return !inbox.isClosed
            }
            if isOpen { start() } else { continuation.resume(throwing: CancellationError()) }
        }
    }

    /// Throws what went wrong since the last call and does not pass by itself. After a full disk, say, the work goes on.
    func checkFailure() throws {
        let failure = inbox.withLock { $0.failure.take() }
        if let failure, (failure as? UploadQueueError)?.mayPass != true { throw failure }
    }

    func note(_ failure: any Error) {
        inbox.withLock { $0.failure = failure }
    }

    /// One element whenever there is something to do; several may be one.
    var calls: AsyncStream<Void> { wakes.stream }

    func takeEvents() -> [TransferEvent] {
        inbox.withLock { inbox in
            defer { inbox.events = [] }
            return inbox.events
        }
    }

    /// Takes what is to be done.
    func take() -> Inbox {
        inbox.withLock { inbox in
            let taken = inbox
            inbox.events = []
            inbox.handlers = []
            inbox.waiters = []
            inbox.hasChanges = false
            return taken
        }
    }
}

/// What the outbox's task knows and does.
private struct BackgroundWork {
    private let session: BackgroundSession
    private let store: QueueStore
    private let service: any TransferService

    private var isConnected = false
    /// Whether it is known which of the claimed uploads the service has: those of earlier processes, and those after a
    /// failure that could not be written down.
    private var isReconciled = false
    /// What the service has, as far as this process knows.
    private var carried: [Transfer.ID: Carriage] = [:]
    /// What was reported and not looked at yet, because it is not known what earlier processes have handed over.
    private var events: [TransferEvent] = []
    /// Ends that could not be written down, because the disk was full, say.
    private var unsettled: [(Transfer.ID, TransferEnd, body: Data)] = []
    /// What the system waits for, to suspend the app again.
    private var handlers: [@Sendable () -> Void] = []
    /// Whether the service has delivered all events since it was connected or since handlers were called last.
    private var hasDeliveredAll = false
    /// Transfers whose ends must be settled before handlers are called.
    private var awaited: Set<Transfer.ID> = []

    private struct Carriage {
        let id: QueuedUpload.ID
        /// The beginning of the response's body.
        var body = Data()
        var isSending = false
    }

    /// Uploads that could not be handed over, and until when they wait.
    private var held: [QueuedUpload.ID: ContinuousClock.Instant] = [:]

    /// How long an upload waits that could not be handed over.
    private static let holdTime = Duration.seconds(60)

    /// The most uploads claimed at a time, so that writes stay short.
    private static let claimCount = 50

    init(_ session: BackgroundSession, _ store: QueueStore, _ service: any TransferService) {
        self.session = session
        self.store = store
        self.service = service
    }

    mutating func run(for outbox: BackgroundOutbox) async {
        for await _ in outbox.calls {
            let inbox = outbox.take()
            do {
                try await perform(inbox, for: outbox)
                for waiter in inbox.waiters { waiter.resume() }
            } catch {
                if inbox.waiters.isEmpty { outbox.note(error) }
                for waiter in inbox.waiters { waiter.resume(throwing: error) }
                // The system must not wait for ever for what cannot be done now.
                callHandlers()
            }
        }
        let rest = outbox.end()
        for waiter in rest.waiters { waiter.resume(throwing: CancellationError()) }
        handlers += rest.handlers
        callHandlers()
        if isConnected { await service.disconnect() }
    }

    private mutating func perform(_ inbox: BackgroundOutbox.Inbox, for outbox: BackgroundOutbox) async throws {
        handlers += inbox.handlers
        events += inbox.events
        let hadDeliveredAll = hasDeliveredAll
        if !isReconciled { try await connect(outbox) }
        try settleEvents()
        let hasEnded = inbox.events.contains { if case .sent = $0 { false } else { true } }
        guard inbox.hasChanges || hasEnded || !inbox.handlers.isEmpty || !inbox.waiters.isEmpty else { return }
        try await endObsolete()
        try await handOver()
        // The last event may have come before the handler, or have been an earlier wake-up's: then transfers have ended since,
        // and are reported soon.
        if hadDeliveredAll, !inbox.handlers.isEmpty {
            awaited = Set(try await service.transfers().filter(\.value).keys)
        }
        awaited.formIntersection(carried.keys)
        if hasDeliveredAll, awaited.isEmpty, !handlers.isEmpty { callHandlers() }
    }

    private mutating func callHandlers() {
        let due = handlers
        handlers = []
        hasDeliveredAll = due.isEmpty && hasDeliveredAll
        for handler in due { handler() }
    }
}

// MARK: - Connecting

extension BackgroundWork {
    /// Finds what earlier processes have handed over.
    private mutating func connect(_ outbox: BackgroundOutbox) async throws {
        if !isConnected {
            try await service.connect { [weak outbox] in outbox?.note($0) }
            isConnected = true
        }
        // What a process was sending itself when it ended, unless it still runs.
        if let lock = try? store.folder.lock() {
            try store.database.write { try $0.recoverUploads() }
            withExtendedLifetime(lock) {}
        }
        let found = try await service.transfers()
        let expected = try store.database.read { try $0.transfers(of: session.identifier) }
        let ended = Set(unsettled.map(\.0))
        for (transfer, id) in expected where carried[transfer] == nil && !ended.contains(transfer) {
            carried[transfer] = Carriage(id: id)
        }
        events += outbox.takeEvents()
        try settleEvents()
        for (transfer, hasEnded) in found where expected[transfer] == nil && !hasEnded {
            await service.cancel(transfer)
        }
        let lost = expected.filter { found[$0.key] == nil && carried[$0.key] != nil }
        if !lost.isEmpty { try delay(lost) }
        isReconciled = true
    }

    /// Sends uploads again, after a while, whose transfers the service no longer has.
    private mutating func delay(_ lost: [Transfer.ID: QueuedUpload.ID]) throws {
        try store.database.write { db in
            for id in lost.values {
                try db.delayUpload(
                    id, until: Date(timeIntervalSinceNow: session.lossDelay / .seconds(1)),
                    because: "The system no longer has this upload, and has not said how it ended. It is sent again.",
                    isFailure: false, mayHaveArrived: true)
            }
        }
        for transfer in lost.keys { carried[transfer] = nil }
        store.noteChange()
    }

    /// Ends transfers of uploads that were cancelled, paused, retried or cleared.
    private mutating func endObsolete() async throws {
        let expected = try store.database.read { try $0.transfers(of: session.identifier) }
        for transfer in carried.keys where expected[transfer] == nil {
            if let carriage = carried.removeValue(forKey: transfer) { store.progress.end(carriage.id) }
            await service.cancel(transfer)
        }
    }
}

// MARK: - Handing over

extension BackgroundWork {
    /// Hands over everything that may be sent, now or later.
    private mutating func handOver() async throws {
        held = held.filter { $0.value > .now }
        while true {
            // Looked at first, because writing locks the database, and an app must not be suspended while it does.
            let ids = try store.database.read { db in
                try db.transfersToClaim(excluding: Array(held.keys), limit: Self.claimCount)
            }
            if ids.isEmpty { return }
            let claimed = try store.database.write {
                try $0.claimTransfers(ids, for: session.identifier, at: Date())
            }
            do {
                for record in claimed { try await handOver(record) }
            } catch {
                // Neither this upload nor those after it were handed over, and the database says that they were.
                isReconciled = false
                throw error
            }
            store.noteChange()
        }
    }

    private mutating func handOver(_ record: UploadRecord) async throws {
        var hasBegun = false
        do {
            let request = try await request(of: record)
            // The system would end the app if the file were missing.
            try store.folder.openBody(record.uuid, length: record.upload.totalBytes).close()
            carried[record.transfer] = Carriage(id: record.upload.id)
            hasBegun = true
            try await service.begin(request)
        } catch let error as FileError where error.errno == .noSuchFileOrDirectory {
            carried[record.transfer] = nil
            try write(record) { db in
                try db.failUpload(
                    record.upload.id,
                    because: "The form is no longer in the queue's folder. Enqueue it again. \(error)",
                    mayHaveArrived: false)
            }
        } catch let error as UploadError {
            try write(record) { db in
                try db.failUpload(record.upload.id, because: error.message, mayHaveArrived: hasBegun)
            }
        } catch {
            carried[record.transfer] = nil
            held[record.upload.id] = .now.advanced(by: Self.holdTime)
            try write(record) { db in
                try db.delayUpload(
                    record.upload.id, until: Date(timeIntervalSinceNow: Self.holdTime / .seconds(1)),
                    because: "It could not be handed to the system: \(error)", isFailure: false,
                    mayHaveArrived: hasBegun)
            }
        }
    }

    private func write(_ record: UploadRecord, _ change: (Database) throws -> Void) throws {
        try store.database.write(change)
        store.noteChange()
    }

    private func request(of record: UploadRecord) async throws -> Transfer {
        let upload = record.upload
        var fields = record.headerFields
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
        fields[.contentType] = record.contentType
        var earliest = upload.conditions.notBefore
        if case .retrying(let due, _) = upload.state { earliest = due }
        return Transfer(
            id: record.transfer, url: request.url, method: upload.method, headerFields: fields,
            body: store.folder.bodyURL(record.uuid), length: upload.totalBytes,
            earliestBegin: earliest.flatMap { $0 > Date() ? $0 : nil }, networks: upload.conditions.networks)
    }
}

// MARK: - Settling events

extension BackgroundWork {
    private mutating func settleEvents() throws {
        let reported = events
        events = []
        for event in reported {
            switch event {
            case .sent(let transfer, let bytes): noteSent(bytes, by: transfer)
            case .received(let transfer, let data):
                let rest = QueuedUpload.Response.maximumBodyBytes - (carried[transfer]?.body.count ?? 0)
                carried[transfer]?.body.append(data.prefix(rest))
            case .ended(let transfer, let end):
                unsettled.append((transfer, end, carried.removeValue(forKey: transfer)?.body ?? Data()))
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

    private mutating func noteSent(_ bytes: Int64, by transfer: Transfer.ID) {
        guard var carriage = carried[transfer] else { return }
        store.progress.note(carriage.id, bytesSent: bytes)
        if !carriage.isSending {
            carriage.isSending = true
            carried[transfer] = carriage
            // If it cannot be written, the upload only looks as if it still waited.
            try? store.database.writeWithoutSync { try $0.beginTransfer(of: carriage.id) }
            store.noteChange()
        }
        store.sights.note()
    }

    /// Writes down what the end of a transfer means. An event that comes a second time changes nothing.
    private func settle(_ transfer: Transfer.ID, _ end: TransferEnd, _ body: Data) throws {
        let now = Date()
        let isDone = try store.database.write { db -> Bool in
            guard let record = try db.record(named: transfer.upload) else { return false }
            let upload = record.upload
            store.progress.end(upload.id)
            if case .done = upload.state { return false }
            let outcome = TransferOutcome(
                end, body: body, of: upload, mayBeRepetition: record.mayHaveArrived(before: transfer.attempt))
            if case .accepted(let response) = outcome {
                // Whatever was decided since: the server has it.
                try db.finishUpload(upload.id, with: response)
                return true
            }
            guard record.transfer == transfer, record.session == session.identifier else { return false }
            switch outcome {
            case .accepted: break
            case .interrupted:
                try db.delayUpload(
                    upload.id, until: now.addingTimeInterval(session.lossDelay / .seconds(1)),
                    because:
                        "The system cancelled the upload, for instance because the app was quit. It is sent again.",
                    isFailure: false, mayHaveArrived: true)
            case .strayed(let reason): try db.failUpload(upload.id, because: reason)
            case .failed(let error):
                // The system repeats a request whose connection broke, and does not say so: without a response, the form
                // may have arrived whatever the last failure was.
                let mayHaveArrived = error.response == nil || error.mayHaveArrived
                let next = session.retryPolicy.nextAttempt(
                    after: error, failures: record.failures + 1, mayBeRepetition: true, now: now)
                if let next {
                    try db.delayUpload(
                        upload.id, until: next, because: error.message, mayHaveArrived: mayHaveArrived)
                } else {
                    try db.failUpload(upload.id, because: "\(error)", mayHaveArrived: mayHaveArrived)
                }
            }
            return false
        }
        if isDone { store.folder.removeBody(transfer.upload) }
        store.noteChange()
    }
}

/// Why an upload cannot be handed over now.
private struct HeaderFieldsError: Error, CustomStringConvertible {
    let description: String
}
