import GRDB
import HTTPTypes
import PostcardClient
import PostcardFiles
import PostcardForm
import Synchronization
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Sends the uploads of a queue in this process. After each change, it checks what is to be started and stopped.
struct LocalSender {
    private let store: QueueStore
    private let client: UploadClient
    private let options: QueueOptions
    private let time: QueueTime
    private let attempts = Attempts()

    init(_ store: QueueStore, _ client: UploadClient, _ options: QueueOptions, _ time: QueueTime) {
        self.store = store
        self.options = options
        self.time = time
        var client = client
        // Delays must outlive the process: the queue keeps them.
        client.retry = options.retryPolicy
        client.retry.maximumAttempts = 1
        client.resumption = options.resumption
        self.client = client
    }

    /// The attempts in progress.
    private final class Attempts: Sendable {
        private struct State {
            /// Finishing a continuation cancels the attempt.
            var active: [QueuedUpload.ID: AsyncStream<Never>.Continuation] = [:]
            var failure: (any Error)?
        }

        private let state = Mutex(State())

        var active: Set<QueuedUpload.ID> { state.withLock { Set($0.active.keys) } }

        func begin(_ id: QueuedUpload.ID) -> AsyncStream<Never> {
            let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
            state.withLock { $0.active[id] = continuation }
            return stream
        }

        func end(_ id: QueuedUpload.ID, failure: (any Error)?) {
            state.withLock {
                $0.active[id] = nil
                if $0.failure == nil { $0.failure = failure }
            }
        }

        func cancel(_ id: QueuedUpload.ID) {
            state.withLock { $0.active[id] }?.finish()
        }

        func checkFailure() throws {
            if let failure = state.withLock({ $0.failure }) { throw failure }
        }
    }

    func run() async throws {
        try store.database.write { try $0.recoverUploads() }
        try store.sweep()
        try await withThrowingDiscardingTaskGroup { group in
            defer { group.cancelAll() }
            group.addTask { [changes = store.changes] in
                for await _ in NetworkMonitor.shared.changes() { changes.notify() }
            }
            var alarm: ContinuousClock.Instant?
            for await _ in store.changes.stream() {
                // Read first: attempts that end from here on are seen in the next round.
                let isIdle = attempts.active.isEmpty
                try attempts.checkFailure()
                try store.saveProgress()
                try cancelObsolete()
                let hasMore = try sendNext(in: &group)
                if options.endsWhenEmpty, isIdle, !hasMore { return }
                let now = time.instant()
                if let next = try nextRound(now), alarm.map({ $0 <= now || next < $0 }) ?? true {
                    alarm = next
                    group.addTask { [changes = store.changes, time] in
                        // A cancelled sleep must not end the group with an error.
                        try? await time.sleep(next)
                        changes.notify()
                    }
                }
            }
            try Task.checkCancellation()
        }
    }

    /// Starts uploads until the limit is reached.
    ///
    /// - Returns: Whether an upload was started, or waits for its time.
    private func sendNext(in group: inout ThrowingDiscardingTaskGroup<any Error>) throws -> Bool {
        let limit = options.concurrency - attempts.active.count
        var claimed: [UploadRow] = []
        while claimed.count < limit {
            let masks = NetworkPath.allowedMasks(on: options.networkPath())
            let row = try store.database.writeWithoutSync {
                try $0.claimUpload(allowedBy: masks, excluding: attempts.active, at: time.date())
            }
            guard let row else { break }
            claimed.append(row)
        }
        if claimed.isEmpty {
            return try limit <= 0 || store.database.read { try !$0.isQueuePaused && $0.nextDue() != nil }
        }
        // On disk before anything is sent: the next attempt must know of this one, even after a power cut.
        try store.database.write { db in
            for row in claimed { try db.noteAttempt(of: row.upload.id) }
        }
        for row in claimed { begin(row, in: &group) }
        return true
    }

    private func begin(_ row: UploadRow, in group: inout ThrowingDiscardingTaskGroup<any Error>) {
        let id = row.upload.id
        let cancellation = attempts.begin(id)
        store.updates.notify()
        group.addTask { [store, client, attempts, time, policy = options.retryPolicy] in
            var failure: (any Error)?
            do {
                let attempt = QueueAttempt(
                    row: row, store: store, client: client, retryPolicy: policy, time: time)
                try await attempt.run(until: cancellation)
            } catch {
                failure = error
            }
            attempts.end(id, failure: failure)
            store.notifyChange()
        }
    }

    /// Cancels the attempts of uploads that were cancelled or paused.
    private func cancelObsolete() throws {
        let active = attempts.active
        guard !active.isEmpty else { return }
        let sending = try store.database.read { try $0.sendingUploads() }
        for id in active.subtracting(sending) { attempts.cancel(id) }
    }

    /// The longest wait between rounds, in seconds, because the system's clock may be changed in the meantime.
    private static let longestWait = 86_400.0

    /// When the next round is due without a change: when an upload is due, or when other processes may have changed
    /// something.
    private func nextRound(_ now: ContinuousClock.Instant) throws -> ContinuousClock.Instant? {
        let date = time.date()
        let due = try store.database.read { try $0.nextDue() }
            .map { Duration.seconds(min(max(0, $0.timeIntervalSince(date)), Self.longestWait)) + .milliseconds(1) }
        return [due, options.pollInterval].compactMap(\.self).min().map { now + $0 }
    }
}

/// The clocks of a run: the calendar's, by which uploads are due, and a steady one to wait by. Tests pass their own.
struct QueueTime: Sendable {
    var date: @Sendable () -> Date = { Date() }
    var instant: @Sendable () -> ContinuousClock.Instant = { .now }
    var sleep: @Sendable (_ end: ContinuousClock.Instant) async throws -> Void = {
        try await Task.sleep(until: $0, clock: .continuous)
    }
}

/// One attempt to send an upload in this process, and how its outcome is recorded.
struct QueueAttempt: Sendable {
    let row: UploadRow
    let store: QueueStore
    let client: UploadClient
    let retryPolicy: RetryPolicy
    let time: QueueTime

    private var id: QueuedUpload.ID { row.upload.id }

    private var schedule: RetrySchedule {
        RetrySchedule(retryPolicy, for: row.upload.url, totalTimeout: client.timeouts.total)
    }

    /// Sends the upload, unless the stream ends first.
    ///
    /// - Throws: ``UploadQueueError``. The upload's own errors are recorded and not thrown.
    func run(until cancellation: AsyncStream<Never>) async throws {
        defer { store.progress.end(id) }
        if let reason = row.expiry(by: schedule, at: time.date()) {
            try await writeWhenPossible { db in
                if try db.sendingUploads().contains(id) {
                    try db.failUpload(id, because: reason, mayHaveArrived: false)
                }
            }
            return
        }
        do {
            try await finish(with: try await response(until: cancellation))
        } catch let error as UploadQueueError {
            throw error
        } catch is CancellationError {
            // An upload that was cancelled or paused is no longer marked as being sent, and stays as it is.
            try store.database.writeWithoutSync { db in
                if try db.sendingUploads().contains(id) { try db.returnUpload(id) }
            }
        } catch {
            try await record(error)
        }
    }

    /// Writes, and tries again every second while the disk is full or the database busy: the server's response is
    /// recorded nowhere else. If the run ends before that, the next one sends the form again with the same
    /// `Idempotency-Key`.
    private func writeWhenPossible(_ change: (Database) throws -> Void) async throws {
        while true {
            do {
                try store.database.write(change)
                return
            } catch {
                guard (error as UploadQueueError).mayPass else { throw error }
            }
            try await time.sleep(time.instant() + .seconds(1))
        }
    }

    private func response(until cancellation: AsyncStream<Never>) async throws -> UploadResponse {
        try await withThrowingTaskGroup(of: UploadResponse.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await response() }
            group.addTask {
                for await _ in cancellation {}
                throw CancellationError()
            }
            guard let response = try await group.next() else { throw CancellationError() }
            return response
        }
    }

    private func response() async throws -> UploadResponse {
        let upload = row.upload
        let database = store.database
        var client = client
        client.network.allowed = upload.conditions.networks
        return try await client.upload(
            try row.layout(in: store.directory), to: upload.url, method: upload.method,
            headerFields: row.headerFields, resuming: row.resource,
            savingResource: { resource in
                try database.writeWithoutSync { try $0.noteResource(resource, of: upload.id) }
            }, after: row.delivery(before: upload.attempts), elapsed: row.elapsed(at: time.date())
        ) { progress in
            store.progress.note(upload.id, bytesSent: progress.bytesSent)
            store.updates.notify()
        }
    }

    /// Records that the server accepted the upload.
    private func finish(with response: UploadResponse) async throws {
        let stored = QueuedUpload.Response(
            status: response.status.code, contentType: response.headerFields[.contentType],
            body: response.body.prefix(QueuedUpload.Response.maximumBodyBytes))
        try await writeWhenPossible { try $0.finishUpload(id, with: stored) }
        store.directory.removeBody(row.uuid)
    }

    /// Records a failure: the upload is sent again later, or has failed.
    private func record(_ error: any Error) async throws {
        let now = time.date()
        try await writeWhenPossible { db in
            if try db.sendingUploads().contains(id) { try db.record(error, of: row, by: schedule, at: now) }
        }
    }
}

extension Database {
    /// How long to wait before a body is read again that could not be read, for example because the phone was locked.
    private static let bodyPause = Duration.seconds(60)

    /// Records why an attempt of this process failed.
    func record(_ error: any Error, of row: UploadRow, by schedule: RetrySchedule, at now: Date) throws {
        let failure: RetrySchedule.Failure
        switch error {
        case let error as UploadError:
            failure = RetrySchedule.Failure(error, at: now)
        case let error as FileError where error.mayPass:
            failure = RetrySchedule.Failure(
                .unreadableBody("\(error)", underlyingError: error), at: now, pause: Self.bodyPause)
        case let error as FileError:
            failure = RetrySchedule.Failure(
                .unreadableBody(
                    "The form is no longer in the queue's directory. Enqueue it again. \(error)",
                    underlyingError: error), at: now)
        default:
            // An error of an interceptor: nothing says what became of the form.
            return try failUpload(row.upload.id, because: "\(error)")
        }
        try recordFailure(
            failure, of: row, by: schedule, after: row.delivery(before: row.upload.attempts),
            mayHaveArrived: failure.error.mayHaveArrived, at: now)
    }
}

extension UploadError {
    /// Whether a server may have accepted the form.
    var mayHaveArrived: Bool { delivery == .responseLost || delivery == .accepted }
}
