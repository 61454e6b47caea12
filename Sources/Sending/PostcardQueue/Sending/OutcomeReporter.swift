import PostcardFoundation
import Synchronization

/// Calls the app's closure for each upload that has ended. If the closure throws no error, acknowledges the upload.
final class OutcomeReporter: Sendable {
    private let opening: QueueOpening
    private let time: QueueTime
    private let report: @Sendable (QueuedUpload) async throws -> Void
    private let state = Mutex(State())

    private struct State {
        /// The task that waits for uploads to end and reports them.
        var following: Task<Void, Never>?
        /// The latest report. Each report begins after the previous report has ended.
        var latest: Task<Void, Never>?
    }

    init(_ opening: QueueOpening, _ time: QueueTime, _ report: @escaping @Sendable (QueuedUpload) async throws -> Void)
    {
        self.opening = opening
        self.time = time
        self.report = report
    }

    /// Reports uploads that have ended, now and later, until ``close()``.
    func start() {
        state.withLock { state in
            guard state.following == nil else { return }
            state.following = Task { @concurrent [weak self, ends = opening.ends] in
                for await _ in ends.stream() { await self?.reportAll() }
            }
        }
    }

    func close() { state.withLock { $0.following }?.cancel() }

    /// Reports all uploads that have ended, and then returns.
    func reportAll() async {
        let task = state.withLock { state in
            let task = Task { @concurrent [latest = state.latest] in
                await latest?.value
                await reportBatches()
            }
            state.latest = task
            return task
        }
        await task.value
    }

    /// Returns when all uploads that have ended were reported, or at once if the reporter was not started.
    func rested() async {
        if state.withLock({ $0.following != nil }) { await reportAll() }
    }

    /// Reports uploads in batches. After an error of the closure or of the acknowledgment, an upload is reported again.
    private func reportBatches() async {
        guard let store = try? await opening.store() else { return }
        var last: Int64 = 0
        while let (uploads, next) = try? store.unacknowledged(after: last), next > last {
            last = next
            var reported: [QueuedUpload] = []
            for upload in uploads where (try? await report(upload)) != nil { reported.append(upload) }
            try? store.acknowledge(reported, at: time.date())
        }
        store.database.noteRest()
    }
}
