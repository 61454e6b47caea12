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

/// Hands a queue's uploads to a transfer service, and settles how they end.
///
/// Collects what is to be done: events of the service, changes of the queue, and wake-ups by the system. A
/// ``QueueMachine`` decides, and a single task carries out one thing after the other.
final class BackgroundSender: Sendable {
    let session: BackgroundSession
    private let store: QueueStore
    private let service: any TransferService
    private let time: QueueTime
    private let state = Mutex(State())
    private let signal = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// What is to be done next.
    private struct Inbox {
        var events: [AttemptEvent] = []
        /// The system's completion handlers, to be called when all events are settled.
        var handlers: [@Sendable () -> Void] = []
        /// The callers of ``BackgroundSender/handOver()``.
        var waiters: [CheckedContinuation<Void, any Error>] = []
        /// Whether the queue may have changed.
        var hasChanges = false
    }

    private struct State {
        var inbox = Inbox()
        /// The handlers of the inboxes that were taken.
        var handlers: [@Sendable () -> Void] = []
        var failure: (any Error)?
        var isClosed = false
        var task: Task<Void, Never>?
    }

    init(_ session: BackgroundSession, _ store: QueueStore, _ service: any TransferService, _ time: QueueTime) {
        self.session = session
        self.store = store
        self.service = service
        self.time = time
    }

    /// Starts the task if it is not running. It runs until ``close()``.
    func start() {
        state.withLock { state in
            guard state.task == nil else { return }
            state.inbox.hasChanges = true
            state.task = Task { await run() }
        }
        signal.continuation.yield()
    }

    /// Disconnects from the service. Transfers continue.
    func close() {
        BackgroundSessionRegistry.shared.remove(self)
        signal.continuation.finish()
    }

    /// Waits until the task has ended after ``close()``.
    func closed() async {
        await state.withLock { $0.task }?.value
    }

    /// Notes that the queue may have changed: uploads that are due are handed over, and transfers that are no longer
    /// wanted are cancelled.
    func noteChange() {
        state.withLock { $0.inbox.hasChanges = true }
        signal.continuation.yield()
    }

    /// Notes that the system has woken the app, and calls the handler once all events are settled and what follows is
    /// handed over.
    func wakeUp(_ handler: @escaping @Sendable () -> Void) {
        let isOpen = state.withLock { state in
            if !state.isClosed { state.inbox.handlers.append(handler) }
            return !state.isClosed
        }
        if isOpen { start() } else { handler() }
    }

    /// Hands over what is due, and returns when that is done.
    func handOver() async throws {
        try await withCheckedThrowingContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isClosed { state.inbox.waiters.append(continuation) }
                return !state.isClosed
            }
            if isOpen { start() } else { continuation.resume(throwing: CancellationError()) }
        }
    }

    /// Throws an error that the task met since the last call, unless it may pass by itself, such as a full disk.
    func checkFailure() throws {
        let failure = state.withLock { $0.failure.take() }
        if let failure, (failure as? UploadQueueError)?.mayPass != true { throw failure }
    }

    private func run() async {
        var run = QueueRun(
            QueueMachine.Rules(session: session.identifier, retryPolicy: session.retryPolicy), store, time, self)
        for await _ in signal.stream {
            let inbox = takeInbox()
            let news = QueueMachine.News(
                events: inbox.events, hasHandlers: !inbox.handlers.isEmpty,
                hasChanges: inbox.hasChanges || !inbox.waiters.isEmpty)
            do {
                _ = try await run.play(.woken(news))
                for waiter in inbox.waiters { waiter.resume() }
            } catch {
                if inbox.waiters.isEmpty { state.withLock { $0.failure = error } }
                for waiter in inbox.waiters { waiter.resume(throwing: error) }
            }
        }
        state.withLock { $0.isClosed = true }
        let rest = takeInbox()
        for waiter in rest.waiters { waiter.resume(throwing: CancellationError()) }
        _ = try? await run.play(.closed(rest.events))
    }

    /// Returns what is to be done, and empties the inbox.
    private func takeInbox() -> Inbox {
        state.withLock { state in
            defer { state.inbox = Inbox() }
            state.handlers += state.inbox.handlers
            return state.inbox
        }
    }
}

extension BackgroundSender: AttemptCarrier {
    func connect() async throws {
        // What a process that has ended was sending by itself.
        if let lock = try? store.directory.lock() {
            try store.database.write { try $0.recoverUploads() }
            withExtendedLifetime(lock) {}
        }
        try await service.connect { [weak self] event in
            guard let self else { return }
            state.withLock { $0.inbox.events.append(event) }
            signal.continuation.yield()
        }
    }

    func attempts() async throws -> [AttemptID: Bool] { try await service.transfers() }

    func takeEvents() -> [AttemptEvent] {
        state.withLock { state in
            defer { state.inbox.events = [] }
            return state.inbox.events
        }
    }

    /// Also claims uploads whose time has not come: the system waits for it.
    func claim(_ count: Int, excluding uploads: Set<QueuedUpload.ID>) throws -> (rows: [UploadRow], nextDue: Date?) {
        while true {
            // Read first: a write locks the database, and iOS ends an app that is suspended with a lock.
            let ids = try store.database.read { try $0.transfersToClaim(excluding: uploads, limit: count) }
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
            let transfer = try await transfer(of: row)
            // A background session ends the app if the file is missing.
            try store.directory.openBody(row.uuid, length: row.upload.totalBytes).close()
            hasBegun = true
            try await service.begin(transfer)
            return nil
        } catch let error as FileError where error.mayPass {
            // Such as before the first unlock: nothing was sent, so no attempt is used up.
            return QueueMachine.Refusal(
                outcome: .postponed("The upload could not be handed to the system: \(error)"), hasBegun: hasBegun)
        } catch {
            let outcome = AttemptOutcome(error) { .postponed("The upload could not be handed to the system: \($0)") }
            return QueueMachine.Refusal(outcome: outcome, hasBegun: hasBegun)
        }
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
        return Transfer(
            id: row.attempt, url: request.url, method: upload.method, headerFields: fields,
            body: store.directory.bodyURL(row.uuid), length: upload.totalBytes,
            earliestBegin: row.earliestBegin.flatMap { $0 > time.date() ? $0 : nil },
            networks: upload.conditions.networks)
    }

    func cancel(_ attempt: AttemptID) async { await service.cancel(attempt) }

    func callHandlers() {
        let due = state.withLock { state in
            defer { state.handlers = [] }
            return state.handlers
        }
        for handler in due { handler() }
    }

    func disconnect() async { await service.disconnect() }

    func notifyChange() { store.notifyChange() }
}

/// An error of the app's closure ``BackgroundSession/headerFields``. The upload is handed over later.
private struct HeaderFieldsError: Error, CustomStringConvertible {
    let description: String
}
