import HTTPTypes
import PostcardClient
import PostcardFiles
import PostcardFoundation
import Synchronization
import SystemPackage

/// Hands a queue's uploads to a transfer service, and settles how they end.
///
/// Collects what is to be done: events of the service, changes of the queue, and wake-ups by the system. A
/// ``QueueMachine`` decides, and a single task carries out one thing after the other, with a ``BackgroundCarrier``.
final class BackgroundSender: Sendable {
    let session: BackgroundSession
    private let opening: QueueOpening
    private let service: any TransferService
    private let time: QueueTime
    /// Whether it hands uploads over. Otherwise it only settles and stops what the session has.
    private let claims: Bool
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
        /// Whether another queue of this process has the session.
        var isReplaced = false
        var isClosed = false
        var task: Task<Void, Never>?
    }

    init(
        _ session: BackgroundSession, _ opening: QueueOpening, _ service: any TransferService, _ time: QueueTime,
        claims: Bool = true
    ) {
        self.claims = claims
        self.session = session
        self.opening = opening
        self.service = service
        self.time = time
    }

    /// Starts the task if it is not running. It runs until ``close()``.
    func start() {
        state.withLock { state in
            guard state.task == nil else { return }
            state.inbox.hasChanges = true
            state.task = Task { @concurrent in await run() }
        }
        signal.continuation.yield()
    }

    /// Disconnects from the service. Transfers continue.
    ///
    /// - Parameter isReplaced: Whether another queue of this process has the session now.
    func close(isReplaced: Bool = false) {
        BackgroundSessionRegistry.shared.remove(self)
        state.withLock { $0.isReplaced = $0.isReplaced || isReplaced }
        signal.continuation.finish()
        if isReplaced { opening.changes.notify() }
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

    /// Notes that the system has woken the app, and calls the handler once: when all events are settled and what
    /// follows is handed over, or when the time for that is over.
    func wakeUp(_ handler: @escaping @Sendable () -> Void) {
        let once = SingleCall(handler)
        let isOpen = state.withLock { state in
            if !state.isClosed { state.inbox.handlers.append { once.call() } }
            return !state.isClosed
        }
        guard isOpen else { return handler() }
        start()
        // Files, the database or the system's transfer service may not respond for a while.
        let end = time.instant() + session.maximumWakeUp
        Task { @concurrent [time] in
            try? await time.sleep(end)
            once.call()
        }
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
        let (failure, isReplaced) = state.withLock { ($0.failure.take(), $0.isReplaced) }
        if isReplaced { throw UploadQueueError.replaced(session.identifier) }
        if let failure, (failure as? UploadQueueError)?.mayPass != true { throw failure }
    }

    /// Keeps an event of the service for the next round.
    func receive(_ event: AttemptEvent) {
        state.withLock { $0.inbox.events.append(event) }
        signal.continuation.yield()
    }

    func takeEvents() -> [AttemptEvent] {
        state.withLock { state in
            defer { state.inbox.events = [] }
            return state.inbox.events
        }
    }

    func callHandlers() {
        let due = state.withLock { state in
            defer { state.handlers = [] }
            return state.handlers
        }
        for handler in due { handler() }
    }

    private func run() async {
        var opened: QueueRun<BackgroundCarrier>?
        for await _ in signal.stream {
            // A last signal may still be there.
            if state.withLock({ $0.isReplaced }) { break }
            do {
                let grant = try opening.activity.begin()
                await playRound(&opened)
                grant.end()
            } catch {
                postpone(error)
            }
        }
        state.withLock { $0.isClosed = true }
        // What the service reports from here on, it keeps for the next queue.
        if opened != nil { await service.disconnect() }
        let rest = takeInbox()
        for waiter in rest.waiters { waiter.resume(throwing: CancellationError()) }
        let grant = try? opening.activity.begin()
        _ = try? await opened?.play(.closed(rest.events))
        grant?.end()
        callHandlers()
    }

    private func playRound(_ opened: inout QueueRun<BackgroundCarrier>?) async {
        let inbox = takeInbox()
        let news = QueueMachine.News(
            events: inbox.events, hasHandlers: !inbox.handlers.isEmpty,
            hasChanges: inbox.hasChanges || !inbox.waiters.isEmpty)
        do {
            if opened == nil { opened = try await makeRun() }
            _ = try await opened?.play(.woken(news))
            // The system may suspend the app from here on, and end it without notice.
            opened?.noteRest()
            for waiter in inbox.waiters { waiter.resume() }
        } catch {
            // The system must not wait for a queue that cannot be opened. It keeps the events for the next process.
            if opened == nil { callHandlers() }
            if inbox.waiters.isEmpty { note(error) }
            for waiter in inbox.waiters { waiter.resume(throwing: error) }
            if (error as? UploadQueueError)?.mayPass == true { signalLater() }
        }
    }

    /// Leaves what is to be done for later, because the system is about to suspend the app.
    private func postpone(_ error: any Error) {
        let waiters = state.withLock { state in
            state.handlers += state.inbox.handlers
            defer { (state.inbox.handlers, state.inbox.waiters) = ([], []) }
            return state.inbox.waiters
        }
        for waiter in waiters { waiter.resume(throwing: error) }
        callHandlers()
        signalLater()
    }

    /// Plays another round a little later, or when the app runs again.
    private func signalLater() {
        let end = time.instant() + Self.pause
        Task { @concurrent [weak self, time] in
            try? await time.sleep(end)
            self?.noteChange()
        }
    }

    private static let pause = Duration.seconds(1)

    /// Keeps an error for ``checkFailure()``.
    private func note(_ error: any Error) {
        state.withLock { $0.failure = error }
        // One that passes is met again in the next round, so it must not lead to one.
        if (error as? UploadQueueError)?.mayPass != true { opening.changes.notify() }
    }

    private func makeRun() async throws -> QueueRun<BackgroundCarrier> {
        let store = try await opening.store()
        return QueueRun(
            QueueMachine.Rules(
                session: session.identifier, retryPolicy: session.retryPolicy,
                makesFields: session.headerFields != nil, makesForms: session.presignedForm != nil,
                concurrency: claims ? max(session.maximumOpenUploads, 1) : 0), store, time,
            BackgroundCarrier(sender: self, session: session, store: store, service: service, time: time))
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

/// Calls a handler the first time.
final class SingleCall: Sendable {
    private let handler: Mutex<(@Sendable () -> Void)?>

    init(_ handler: @escaping @Sendable () -> Void) {
        self.handler = Mutex(handler)
    }

    func call() { handler.withLock { $0.take() }?() }
}
