import Synchronization

/// Hands a queue's uploads to a transfer service, and settles how they end.
///
/// Collects what is to be done: events of the service, changes of the queue, and wake-ups by the system. A single task
/// does it, in a ``TransferLoop``.
final class BackgroundSender: Sendable {
    let session: BackgroundSession
    private let store: QueueStore
    private let service: any TransferService
    private let state = Mutex(State())
    private let signal = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// What is to be done next.
    struct Inbox {
        var events: [TransferEvent] = []
        /// The system's completion handlers, to be called when all events are settled.
        var handlers: [@Sendable () -> Void] = []
        /// The callers of ``BackgroundSender/handOver()``.
        var waiters: [CheckedContinuation<Void, any Error>] = []
        /// Whether the queue may have changed.
        var hasChanges = false

        /// Whether nothing is left to do but to note how far transfers are.
        var hasOnlyProgress: Bool {
            let hasOtherEvents = events.contains { if case .sent = $0 { false } else { true } }
            return !hasOtherEvents && !hasChanges && handlers.isEmpty && waiters.isEmpty
        }
    }

    private struct State {
        var inbox = Inbox()
        var failure: (any Error)?
        var isClosed = false
        var task: Task<Void, Never>?
    }

    init(_ session: BackgroundSession, _ store: QueueStore, _ service: any TransferService) {
        self.session = session
        self.store = store
        self.service = service
    }

    /// Starts the loop if it is not running. It runs until ``close()``.
    func start() {
        state.withLock { state in
            guard state.task == nil else { return }
            state.inbox.hasChanges = true
            state.task = Task {
                var loop = TransferLoop(session, store, service)
                await loop.run(for: self)
            }
        }
        signal.continuation.yield()
    }

    /// Disconnects from the service. Transfers continue.
    func close() {
        BackgroundSessionRegistry.shared.remove(self)
        signal.continuation.finish()
    }

    /// Waits until the loop has ended after ``close()``.
    func closed() async {
        await state.withLock { $0.task }?.value
    }

    /// Notes that the queue may have changed: uploads that are due are handed over, and transfers that are no longer
    /// wanted are cancelled.
    func notifyChange() {
        state.withLock { $0.inbox.hasChanges = true }
        signal.continuation.yield()
    }

    /// Notes an event of the service.
    func add(_ event: TransferEvent) {
        state.withLock { $0.inbox.events.append(event) }
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

    /// Throws an error that the loop met since the last call, unless it may pass by itself, such as a full disk.
    func checkFailure() throws {
        let failure = state.withLock { $0.failure.take() }
        if let failure, (failure as? UploadQueueError)?.mayPass != true { throw failure }
    }
}

// MARK: - For the loop

extension BackgroundSender {
    /// One element whenever there is something to do. Several signals may become one.
    var signals: AsyncStream<Void> { signal.stream }

    /// Returns what is to be done, and empties the inbox.
    func takeInbox() -> Inbox {
        state.withLock { state in
            defer { state.inbox = Inbox() }
            return state.inbox
        }
    }

    /// Returns the events so far, and removes them from the inbox.
    func takeEvents() -> [TransferEvent] {
        state.withLock { state in
            defer { state.inbox.events = [] }
            return state.inbox.events
        }
    }

    /// Keeps an error for ``checkFailure()``.
    func fail(with error: any Error) {
        state.withLock { $0.failure = error }
    }

    /// Refuses new handlers and waiters, and returns those that are left.
    func end() -> Inbox {
        state.withLock { $0.isClosed = true }
        return takeInbox()
    }
}

/// The senders of this process by the identifiers of their sessions. The system may wake the app for a session before
/// the app has made its queue.
final class BackgroundSessionRegistry: Sendable {
    static let shared = BackgroundSessionRegistry()

    private struct Entry {
        weak var sender: BackgroundSender?
        /// The system's completion handlers that wait for the queue.
        var handlers: [@Sendable () -> Void] = []
    }

    private let entries = Mutex<[String: Entry]>([:])

    /// Adds the sender of a session, and passes it the wake-ups that waited for it.
    ///
    /// - Throws: ``UploadQueueError`` with code ``UploadQueueError/Code/inUse`` if the session has a sender.
    func add(_ sender: BackgroundSender) throws(UploadQueueError) {
        let identifier = sender.session.identifier
        let handlers = try entries.withLock { entries throws(UploadQueueError) in
            var entry = entries[identifier] ?? Entry()
            if entry.sender != nil { throw UploadQueueError.sessionInUse(identifier) }
            entry.sender = sender
            defer { entry.handlers = []; entries[identifier] = entry }
            return entry.handlers
        }
        for handler in handlers { sender.wakeUp(handler) }
    }

    /// Removes a sender that is closed.
    func remove(_ sender: BackgroundSender) {
        entries.withLock { entries in
            if entries[sender.session.identifier]?.sender === sender { entries[sender.session.identifier] = nil }
        }
    }

    /// Passes a wake-up to the session's sender, now or when there is one.
    func wakeUp(_ identifier: String, _ handler: @escaping @Sendable () -> Void) {
        let sender = entries.withLock { entries -> BackgroundSender? in
            if let sender = entries[identifier]?.sender { return sender }
            entries[identifier, default: Entry()].handlers.append(handler)
            return nil
        }
        sender?.wakeUp(handler)
    }
}
