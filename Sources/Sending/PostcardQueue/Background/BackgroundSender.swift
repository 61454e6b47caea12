import HTTPTypes
import PostcardClient
import PostcardFiles
import PostcardFoundation
import Synchronization
import SystemPackage

/// Hands a queue's uploads to a transfer service, and records how they end.
///
/// A single task works in rounds. Each round takes the events of the service, the changes of the queue, and the
/// wake-ups by the system. A ``QueueMachine`` decides on actions, and a ``BackgroundCarrier`` carries them out.
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

    /// Disconnects from the service, whose transfers continue.
    ///
    /// - Parameter isReplaced: Whether another queue of this process uses the session now.
    func close(isReplaced: Bool = false) {
        registry.remove(self)
        state.withLock { $0.isReplaced = $0.isReplaced || isReplaced }
        signal.continuation.finish()
        if isReplaced { opening.changes.notify() }
    }

    /// Whether this process sends the uploads itself now.
    var isProcessSending: Bool { state.withLock { $0.localRuns > 0 } }

    func localRunBegins() { state.withLock { $0.localRuns += 1 } }

    /// Records that a run has ended, and hands its remaining uploads to the service.
    func localRunEnds() {
        state.withLock { $0.localRuns -= 1 }
        handOverSoon()
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Waits until the task has ended after ``close()``.
    func closed() async {
        await state.withLock { $0.task }?.value
    }

    /// Records that the queue may have changed. Uploads that are due are handed over, and unwanted transfers are
    /// cancelled.
    func noteChange() {
        state.withLock { $0.inbox.hasChanges = true }
        signalRound()
    }

    /// Hands newly enqueued uploads to the service. Until then, asks the system not to suspend the app.
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

    /// Records that the system has woken the app. Calls the handler once: when all events are handled and the next
    /// uploads are handed to the service, or when the time of the wake-up is over.
    func wakeUp(_ handler: @escaping @Sendable () -> Void) {
        let once = SingleCall(handler)
        let isOpen = state.withLock { state in
            if !state.isClosed { state.inbox.handlers.append { once.call() } }
            return !state.isClosed
        }
        guard isOpen else { return handler() }
        opening.log.note("The system woke the app for the session \(session.identifier).", at: time.date())
        start()
        // Files, the database or the system's transfer service may not respond in time.
        let end = time.instant() + session.maximumWakeUp
        Task { @concurrent [time] in
            try? await time.sleep(end)
            once.call()
        }
    }

    /// Hands all due uploads to the service, and then returns.
    func handOver() async throws {
        try await withCheckedThrowingContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isClosed { state.inbox.waiters.append(continuation) }
                return !state.isClosed
            }
            if isOpen { start() } else { continuation.resume(throwing: CancellationError()) }
        }
    }

    /// Throws the error that was stored since the last call. Ignores an error that may pass, such as a full disk.
    func checkFailure() throws {
        let (failure, isReplaced) = state.withLock { ($0.failure.take(), $0.isReplaced) }
        if isReplaced { throw UploadQueueError.replaced(session.identifier) }
        if let failure, (failure as? UploadQueueError)?.mayPass != true { throw failure }
    }

    /// Stores an event of the service for the next round.
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

    /// Waits until no round is running or due at once.
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

    /// Stores the progress of an attempt, which the system reports many times a second.
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

    /// The minimum time between two rounds that only record progress.
    private static let progressPause = Duration.milliseconds(250)

    func takeEvents() -> [AttemptEvent] {
        state.withLock { state in
            defer { (state.inbox.events, state.inbox.progress) = ([], [:]) }
            return state.inbox.allEvents
        }
    }

    /// Calls the system's completion handlers at the end of the round. The system may suspend the app then, so a
    /// session without remaining uploads must be given up first.
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
        // A separate task calls the app's closure, because the closure may use the queue.
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
            // After another queue has taken the session, a last signal may still be in the stream.
            if state.withLock({ $0.isReplaced }) { break }
            // Progress alone writes nothing to disk, so the system need not be asked to keep the app running.
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
        // From here on, the service keeps its events for the next queue.
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

    /// The reason why a sender leaves its session.
    private enum Leaving {
        case closed
        /// The process that has handed over the uploads uses the session, and records how they end.
        case refused
        /// No upload that another process has handed to the system is left.
        case nothingOpen
    }

    /// Runs a round. Returns the reason to leave the session, or `nil` to continue.
    private func playRound(_ opened: inout QueueRun<BackgroundCarrier>?) async -> Leaving? {
        let inbox = takeInbox()
        defer { inbox.endGrants() }
        let news = QueueMachine.News(
            events: inbox.allEvents, hasHandlers: !inbox.handlers.isEmpty,
            hasChanges: inbox.hasChanges || !inbox.waiters.isEmpty)
        do {
            if opened == nil { opened = try await makeRun() }
            _ = try await opened?.play(.woken(news))
            // From here on, the system may suspend the app and end it without notice.
            if !inbox.hasOnlyProgress { opened?.noteRest() }
            for waiter in inbox.waiters { waiter.resume() }
            return await hasNothingOpen(opened) ? .nothingOpen : nil
        } catch {
            // The system must not wait for a queue that cannot be opened. It keeps its events for the next process that
            // connects.
            if opened == nil { callHandlers() }
            if inbox.waiters.isEmpty { note(error) }
            for waiter in inbox.waiters { waiter.resume(throwing: error) }
            if (error as? UploadQueueError)?.mayPass == true { signalLater() }
            return duty == .settling && (error as? UploadQueueError)?.code == .sessionInUse ? .refused : nil
        }
    }

    /// Whether no upload that another process has handed to the system is left.
    private func hasNothingOpen(_ opened: QueueRun<BackgroundCarrier>?) async -> Bool {
        guard duty == .settling, opened?.hasAttempts == false else { return false }
        // An upload may have been paused during the round. The session is kept until the transfer has stopped and its
        // end is recorded.
        if (try? await service.transfers().isEmpty) == true { return true }
        signalLater()
        return false
    }

    /// Leaves the work for later, because the system is about to suspend the app.
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

    /// Runs another round a little later, or when the app runs again.
    private func signalLater() {
        let end = time.instant() + Self.pause
        Task { @concurrent [weak self, time] in
            try? await time.sleep(end)
            self?.noteChange()
        }
    }

    private static let pause = Duration.seconds(1)

    /// Stores an error for ``checkFailure()``.
    private func note(_ error: any Error) {
        state.withLock { $0.failure = error }
        // An error that may pass must not cause another round, in which it would occur again.
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

    /// Takes the work out of the inbox.
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
