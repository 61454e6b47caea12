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
    private let reporter: OutcomeReporter?
    private let duty: Duty
    private let registry: BackgroundSessionRegistry
    private let state = Mutex(State())
    private let signal = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(
        _ session: BackgroundSession, _ opening: QueueOpening, _ service: any TransferService, _ time: QueueTime,
        _ reporter: OutcomeReporter?, _ registry: BackgroundSessionRegistry, duty: Duty = .sending
    ) {
        self.registry = registry
        self.reporter = reporter
        self.duty = duty
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
        reporter?.start()
        signalRound()
    }

    /// Disconnects from the service. Transfers continue.
    ///
    /// - Parameter isReplaced: Whether another queue of this process has the session now.
    func close(isReplaced: Bool = false) {
        registry.remove(self)
        state.withLock { $0.isReplaced = $0.isReplaced || isReplaced }
        signal.continuation.finish()
        if isReplaced { opening.changes.notify() }
    }

    /// Whether this process sends the uploads itself at the moment.
    var isProcessSending: Bool { state.withLock { $0.localRuns > 0 } }

    func localRunBegins() { state.withLock { $0.localRuns += 1 } }

    /// Hands over what the run has left.
    func localRunEnds() {
        state.withLock { $0.localRuns -= 1 }
        handOverSoon()
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Waits until the task has ended after ``close()``.
    func closed() async {
        await state.withLock { $0.task }?.value
    }

    /// Notes that the queue may have changed: uploads that are due are handed over, and transfers that are no longer
    /// wanted are cancelled.
    func noteChange() {
        state.withLock { $0.inbox.hasChanges = true }
        signalRound()
    }

    /// Hands over what was just enqueued, within the activity of the caller if there is one: the system does not
    /// suspend the app before that.
    func handOverSoon() {
        let grant = opening.activity.begin()
        let isOpen = state.withLock { state in
            if state.isClosed { return false }
            state.inbox.hasChanges = true
            if let grant { state.inbox.grants.append(grant) }
            return true
        }
        if isOpen { start() } else { grant?.end() }
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
        opening.log.note("The system woke the app for the session \(session.identifier).", at: time.date())
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
        if case .sent(let id, let bytes) = event, state.withLock({ !$0.sending.insert(id).inserted }) {
            return receiveProgress(of: id, bytes)
        }
        state.withLock { state in
            switch event {
            case .ended(let id, _): state.sending.remove(id)
            case .invalidated: state.sending = []
            default: break
            }
            state.inbox.events.append(event)
        }
        signalRound()
    }

    private func signalRound() {
        state.withLock { $0.isSignalled = true }
        signal.continuation.yield()
    }

    /// Returns when no round is played, and none is to be played at once.
    func rested() async {
        await withCheckedContinuation { continuation in
            let rests = state.withLock { state in
                if state.isClosed || state.task == nil || !(state.isPlaying || state.isSignalled) { return true }
                state.resting.append(continuation)
                return false
            }
            if rests { continuation.resume() }
        }
    }

    private func roundBegins() { state.withLock { ($0.isPlaying, $0.isSignalled) = (true, false) } }

    private func roundEnds() {
        let resting = state.withLock { state in
            state.isPlaying = false
            defer { if !state.isSignalled || state.isClosed { state.resting = [] } }
            return state.isSignalled && !state.isClosed ? [] : state.resting
        }
        for continuation in resting { continuation.resume() }
    }

    /// Keeps how far an attempt is. The system reports that many times a second.
    private func receiveProgress(of id: AttemptID, _ bytes: Int64) {
        let now = time.instant()
        let due = state.withLock { state -> ContinuousClock.Instant? in
            state.inbox.progress[id] = bytes
            if state.isProgressDue { return nil }
            state.isProgressDue = true
            return max(state.nextProgress ?? now, now)
        }
        guard let due else { return }
        guard due > now else {
            signalRound()
            return
        }
        Task { @concurrent [weak self, time] in
            try? await time.sleep(due)
            self?.signalRound()
        }
    }

    /// The shortest time between two rounds that only note progress.
    private static let progressPause = Duration.milliseconds(250)

    func takeEvents() -> [AttemptEvent] {
        state.withLock { state in
            defer { (state.inbox.events, state.inbox.progress) = ([], [:]) }
            return state.inbox.allEvents
        }
    }

    /// Calls the system's completion handlers at the end of the round: the system may suspend the app then, and the
    /// session must have been given up before that if nothing of it is open.
    func callHandlersSoon() { state.withLock { $0.callsHandlers = true } }

    private func callHandlersIfDue() {
        let isDue = state.withLock { state in
            defer { state.callsHandlers = false }
            return state.callsHandlers
        }
        if isDue { callHandlers() }
    }

    private func callHandlers() {
        let due = state.withLock { state in
            defer { state.handlers = [] }
            return state.handlers
        }
        guard let reporter, !due.isEmpty else {
            for handler in due { handler() }
            return
        }
        // In a task of its own, because the app's closure may use the queue.
        Task { @concurrent in
            await reporter.reportAll()
            for handler in due { handler() }
        }
    }

    private func run() async {
        var opened: QueueRun<BackgroundCarrier>?
        var leaving = Leaving.closed
        for await _ in signal.stream {
            roundBegins()
            defer { roundEnds() }
            // A last signal may still be there.
            if state.withLock({ $0.isReplaced }) { break }
            // An activity is an assertion in another process, and nothing is written.
            if opened != nil, state.withLock({ $0.inbox.hasOnlyProgress }) {
                if let end = await playRound(&opened) {
                    leaving = end
                    break
                }
                callHandlersIfDue()
                continue
            }
            do {
                let grant = try opening.activity.granted()
                defer { grant.end() }
                if let end = await playRound(&opened) {
                    leaving = end
                    break
                }
                callHandlersIfDue()
            } catch {
                postpone(error)
            }
        }
        registry.remove(self)
        state.withLock { $0.isClosed = true }
        let grant = opening.activity.begin()
        // What the service reports from here on, it keeps for the next queue.
        if opened != nil {
            switch leaving {
            case .closed, .refused: await service.disconnect()
            case .nothingOpen:
                await service.release()
                opening.log.note("The session \(session.identifier) was given up.", at: time.date())
            }
        }
        let rest = takeInbox()
        defer { rest.endGrants() }
        for waiter in rest.waiters { waiter.resume(throwing: CancellationError()) }
        _ = try? await opened?.play(.closed(rest.allEvents))
        grant?.end()
        callHandlers()
        roundEnds()
    }

    /// Why a sender leaves its session.
    private enum Leaving {
        case closed
        /// The other process has the session, and settles its uploads itself.
        case refused
        /// All that another process has handed over is settled.
        case nothingOpen
    }

    /// - Returns: Why this was the last round, or `nil` if it was not.
    private func playRound(_ opened: inout QueueRun<BackgroundCarrier>?) async -> Leaving? {
        let inbox = takeInbox()
        defer { inbox.endGrants() }
        let news = QueueMachine.News(
            events: inbox.allEvents, hasHandlers: !inbox.handlers.isEmpty,
            hasChanges: inbox.hasChanges || !inbox.waiters.isEmpty)
        do {
            if opened == nil { opened = try await makeRun() }
            _ = try await opened?.play(.woken(news))
            // The system may suspend the app from here on, and end it without notice.
            if !inbox.hasOnlyProgress { opened?.noteRest() }
            for waiter in inbox.waiters { waiter.resume() }
            return await hasNothingOpen(opened) ? .nothingOpen : nil
        } catch {
            // The system must not wait for a queue that cannot be opened. It keeps the events for the next process.
            if opened == nil { callHandlers() }
            if inbox.waiters.isEmpty { note(error) }
            for waiter in inbox.waiters { waiter.resume(throwing: error) }
            if (error as? UploadQueueError)?.mayPass == true { signalLater() }
            return duty == .settling && (error as? UploadQueueError)?.code == .sessionInUse ? .refused : nil
        }
    }

    /// Whether all that another process has handed over is settled.
    private func hasNothingOpen(_ opened: QueueRun<BackgroundCarrier>?) async -> Bool {
        guard duty == .settling, opened?.hasAttempts == false else { return false }
        // An upload may have been paused since the round compared. What the system still has of it is stopped and
        // settled first.
        if (try? await service.transfers().isEmpty) == true { return true }
        signalLater()
        return false
    }

    /// Leaves what is to be done for later, because the system is about to suspend the app.
    private func postpone(_ error: any Error) {
        let inbox = state.withLock { state in
            state.handlers += state.inbox.handlers
            defer { (state.inbox.handlers, state.inbox.waiters, state.inbox.grants) = ([], [], []) }
            return state.inbox
        }
        for waiter in inbox.waiters { waiter.resume(throwing: error) }
        inbox.endGrants()
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
                acceptedStatuses: session.acceptedStatuses,
                maximumConcurrentUploads: duty == .sending ? max(session.maximumOpenUploads, 1) : 0), store, time,
            BackgroundCarrier(sender: self, session: session, store: store, service: service, time: time))
    }

    /// Returns what is to be done, and empties the inbox.
    private func takeInbox() -> Inbox {
        let next = time.instant() + Self.progressPause
        return state.withLock { state in
            defer { state.inbox = Inbox() }
            (state.isProgressDue, state.nextProgress) = (false, next)
            state.handlers += state.inbox.handlers
            return state.inbox
        }
    }
}
