import Synchronization

/// The running uploads of a batch, and the outcomes that the caller has not received yet.
final class BatchRun: Sendable {
    private let work: @Sendable (BatchRun) async -> Void
    private let stopsAtFirstFailure: Bool
    private let report: (@Sendable (UploadBatchProgress) -> Void)?
    private let state: Mutex<State>

    private struct State {
        var phase = Phase.idle
        /// Whether further uploads are forbidden to start.
        var isStopped = false
        var uploads: [Int: Upload] = [:]
        var progress: UploadBatchProgress
        var reporting = Reporting.idle
        var outcomes: [UploadOutcome] = []
        var waiting: [CheckedContinuation<UploadOutcome?, Never>] = []
    }

    private enum Phase {
        case idle
        case running(Task<Void, Never>)
        case ended
    }

    /// Whether progress is being reported. Only one task at a time reports, so that the steps stay in order.
    private enum Reporting {
        case idle
        case running
        /// Progress has changed while it was being reported, and must be reported again.
        case due
    }

    /// The state of one upload of the batch. An upload can be cancelled before it starts.
    private enum Upload {
        case running(Task<UploadResponse, any Error>)
        case cancelled
        case ended
    }

    /// Makes the run of a batch. The uploads start when the first outcome is requested.
    ///
    /// - Parameters:
    ///   - items: The items to upload. The next item is taken when another upload may start.
    ///   - maximumConcurrentUploads: The maximum number of uploads at a time.
    ///   - stopsAtFirstFailure: Whether one failure cancels the other uploads.
    ///   - report: Called with the progress.
    ///   - events: Makes the upload of an item.
    init<Items: Sequence & Sendable>(
        _ items: Items, maximumConcurrentUploads: Int, stopsAtFirstFailure: Bool,
        reportingTo report: (@Sendable (UploadBatchProgress) -> Void)?,
        events: @escaping @Sendable (Items.Element) async throws -> UploadEvents
    ) where Items.Element: Sendable {
        self.stopsAtFirstFailure = stopsAtFirstFailure
        self.report = report
        // Only a random-access collection is sure to know its count without iterating.
        state = Mutex(State(progress: UploadBatchProgress(count: (items as? any RandomAccessCollection)?.count)))
        work = { run in
            var iterator = items.makeIterator()
            await run.run(maximumConcurrentUploads: max(maximumConcurrentUploads, 1)) {
                iterator.next().map { item in { @Sendable () async throws -> UploadEvents in try await events(item) } }
            }
        }
    }

    var progress: UploadBatchProgress { state.withLock { $0.progress } }

    /// Waits for the next outcome and returns it; returns `nil` after the last outcome.
    func next() async -> UploadOutcome? {
        await withTaskCancellationHandler {
            // If this task is already cancelled, the batch is stopped by now and starts no upload.
            begin()
            return await withCheckedContinuation { continuation in
                let known = state.withLock { state -> UploadOutcome?? in
                    if !state.outcomes.isEmpty { return state.outcomes.removeFirst() }
                    if case .ended = state.phase { return .some(nil) }
                    state.waiting.append(continuation)
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            // Running uploads then end with an error. The loop waits for them, so that no upload outlives the loop.
            cancel()
        }
    }

    func cancel() {
        let task = state.withLock { state -> Task<Void, Never>? in
            state.isStopped = true
            return if case .running(let task) = state.phase { task } else { nil }
        }
        task?.cancel()
    }

    func cancel(_ index: Int) {
        let task = state.withLock { state -> Task<UploadResponse, any Error>? in
            switch state.uploads[index] {
            case .running(let task): return task
            case nil: state.uploads[index] = .cancelled
            case .cancelled, .ended: break
            }
            return nil
        }
        task?.cancel()
    }

    private func begin() {
        state.withLock { state in
            guard case .idle = state.phase else { return }
            // The task retains the run, and ends by itself. Leaving the loop cancels the task.
            state.phase = .running(Task { await work(self) })
            if state.isStopped, case .running(let task) = state.phase { task.cancel() }
        }
    }
}

extension BatchRun {
    /// Makes an upload when the upload may start.
    private typealias MakeEvents = @Sendable () async throws -> UploadEvents

    /// Runs the uploads, at most `maximumConcurrentUploads` at a time.
    private func run(maximumConcurrentUploads: Int, taking next: () -> MakeEvents?) async {
        await withTaskGroup(of: UploadOutcome.self) { group in
            var index = 0
            var running = 0
            while true {
                while running < maximumConcurrentUploads, !state.withLock({ $0.isStopped }), let events = next() {
                    group.addTask { [index] in await self.upload(index, events) }
                    index += 1
                    running += 1
                }
                guard let outcome = await group.next() else { break }
                running -= 1
                if stopsAtFirstFailure, case .failure = outcome.result {
                    state.withLock { $0.isStopped = true }
                    group.cancelAll()
                }
                put(outcome)
            }
        }
        let waiting = state.withLock { state in
            state.phase = .ended
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: nil) }
    }

    /// Runs one upload in a separate task, so that it can be cancelled without the others.
    private func upload(_ index: Int, _ events: @escaping MakeEvents) async -> UploadOutcome {
        if Task.isCancelled { cancel(index) }
        let task = state.withLock { state -> Task<UploadResponse, any Error>? in
            if case .cancelled = state.uploads[index] { return nil }
            let task = Task { try await self.response(of: index, events) }
            state.uploads[index] = .running(task)
            return task
        }
        guard let task else { return UploadOutcome(index: index, result: .failure(CancellationError())) }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        return UploadOutcome(index: index, result: result)
    }

    private func response(of index: Int, _ events: MakeEvents) async throws -> UploadResponse {
        for try await event in try await events() {
            if let progress = event.progress { change { $0.note(progress, of: index) } }
            if case .done(let response) = event { return response }
        }
        throw CancellationError()
    }

    private func put(_ outcome: UploadOutcome) {
        change { $0.note(outcome) }
        let waiting = state.withLock { state -> CheckedContinuation<UploadOutcome?, Never>? in
            state.uploads[outcome.index] = .ended
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.outcomes.append(outcome)
            return nil
        }
        waiting?.resume(returning: outcome)
    }

    /// Changes the progress, and reports the progress without holding the lock. If another task is reporting, that task
    /// reports this change too.
    private func change(_ change: (inout UploadBatchProgress) -> Void) {
        guard let report else { return state.withLock { change(&$0.progress) } }
        var next = state.withLock { state -> UploadBatchProgress? in
            change(&state.progress)
            guard case .idle = state.reporting else {
                state.reporting = .due
                return nil
            }
            state.reporting = .running
            return state.progress
        }
        while let progress = next {
            report(progress)
            next = state.withLock { state in
                guard case .due = state.reporting else {
                    state.reporting = .idle
                    return nil
                }
                state.reporting = .running
                return state.progress
            }
        }
    }
}
