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

/// Sends the uploads of a queue in this process: looks what is to be done whenever something has changed.
struct QueueRun {
    private let store: QueueStore
    private let client: UploadClient
    private let options: QueueOptions
    private let ledger = Ledger()

    init(_ store: QueueStore, _ client: UploadClient, _ options: QueueOptions) {
        self.store = store
        self.options = options
        var client = client
        client.retry.maximumAttempts = 1
        client.resumption = options.resumption
        self.client = client
    }

    /// Which uploads are being sent, and how to end them.
    private final class Ledger: Sendable {
        private struct Entries {
            var active: [QueuedUpload.ID: AsyncStream<Never>.Continuation] = [:]
            var failure: (any Error)?
        }

        private let entries = Mutex(Entries())

        var active: Set<QueuedUpload.ID> { entries.withLock { Set($0.active.keys) } }

        func begin(_ id: QueuedUpload.ID) -> AsyncStream<Never> {
            let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
            entries.withLock { $0.active[id] = continuation }
            return stream
        }

        func end(_ id: QueuedUpload.ID, failure: (any Error)?) {
            entries.withLock {
                $0.active[id] = nil
                if $0.failure == nil { $0.failure = failure }
            }
        }

        func cancel(_ id: QueuedUpload.ID) {
            entries.withLock { $0.active[id] }?.finish()
        }

        func checkFailure() throws {
            if let failure = entries.withLock({ $0.failure }) { throw failure }
        }
    }

    func run() async throws {
        try store.database.write { try $0.recoverUploads() }
        try store.sweep()
        try await withThrowingDiscardingTaskGroup { group in
            defer { group.cancelAll() }
            group.addTask { [changes = store.changes] in
                for await _ in NetworkMonitor.shared.changes() { changes.note() }
            }
            var alarm: ContinuousClock.Instant?
            for await _ in store.changes.stream() {
                // Asked before all else: what ends from here on is seen by the next look.
                let isIdle = ledger.active.isEmpty
                try ledger.checkFailure()
                try store.saveProgress()
                try endCancelled()
                let hasMore = try sendNext(in: &group)
                if options.endsWhenEmpty, isIdle, !hasMore { return }
                let now = ContinuousClock.now
                if let next = try nextLook(now), alarm.map({ $0 <= now || next < $0 }) ?? true {
                    alarm = next
                    group.addTask { [changes = store.changes] in
                        // Cancelled with the run, whose end it must not be.
                        try? await Task.sleep(until: next, clock: .continuous)
                        changes.note()
                    }
                }
            }
            try Task.checkCancellation()
        }
    }

    /// Begins as many uploads as there are places for.
    ///
    /// - Returns: Whether anything was begun, or waits for its time.
    private func sendNext(in group: inout ThrowingDiscardingTaskGroup<any Error>) throws -> Bool {
        var hasBegun = false
        while ledger.active.count < options.concurrency {
            let masks = NetworkPath.allowedMasks(on: options.networkPath())
            let record = try store.database.writeWithoutSync {
                try $0.claimUpload(allowedBy: masks, excluding: ledger.active, at: Date())
            }
            guard let record else {
                return try hasBegun || store.database.read { try !$0.isQueuePaused && $0.nextDue() != nil }
            }
            begin(record, in: &group)
            hasBegun = true
        }
        return true
    }

    private func begin(_ record: UploadRecord, in group: inout ThrowingDiscardingTaskGroup<any Error>) {
        let id = record.upload.id
        let cancellation = ledger.begin(id)
        store.sights.note()
        group.addTask { [store, client, ledger, policy = options.retryPolicy] in
            var failure: (any Error)?
            do {
                let attempt = QueueAttempt(record: record, store: store, client: client, retryPolicy: policy)
                try await attempt.run(until: cancellation)
            } catch {
                failure = error
            }
            ledger.end(id, failure: failure)
            store.noteChange()
        }
    }

    /// Ends what was cancelled or paused while it was being sent.
    private func endCancelled() throws {
        let active = ledger.active
        guard !active.isEmpty else { return }
        let sending = try store.database.read { try $0.sendingUploads() }
        for id in active.subtracting(sending) { ledger.cancel(id) }
    }

    /// In seconds: the machine's time may be set meanwhile.
    private static let longestWait = 86_400.0

    /// When to look again without anything having happened: when something is due, or others may have done something.
    private func nextLook(_ now: ContinuousClock.Instant) throws -> ContinuousClock.Instant? {
        let due = try store.database.read { try $0.nextDue() }
            .map { Duration.seconds(min(max(0, $0.timeIntervalSinceNow), Self.longestWait)) + .milliseconds(1) }
        return [due, options.pollInterval].compactMap { $0 }.min().map { now + $0 }
    }
}

/// One attempt of one upload in this process, and what the database notes of it.
struct QueueAttempt: Sendable {
    let record: UploadRecord
    let store: QueueStore
    let client: UploadClient
    let retryPolicy: RetryPolicy

    private var id: QueuedUpload.ID { record.upload.id }

    /// Sends the upload, until the stream ends.
    ///
    /// - Throws: ``UploadQueueError``. What becomes of the upload is not thrown but written down.
    func run(until cancellation: AsyncStream<Never>) async throws {
        defer { store.progress.end(id) }
        do {
            try await finish(with: try await response(until: cancellation))
        } catch let error as UploadQueueError {
            throw error
        } catch is CancellationError {
            // One that was cancelled or paused is no longer marked as being sent, and stays as it is.
            try store.database.writeWithoutSync { db in
                if try db.sendingUploads().contains(id) { try db.returnUpload(id) }
            }
        } catch {
            try await note(error)
        }
    }

    /// Writes, and tries again every second while the disk is full or the database busy: what a server has answered is known
    /// nowhere else. Where the run ends meanwhile, the next one sends the form again, under the same key.
    private func writeWhenPossible(_ change: (Database) throws -> Void) async throws {
        while true {
            do {
                try store.database.write(change)
                return
            } catch {
                guard (error as UploadQueueError).mayPass else { throw error }
            }
            try await Task.sleep(for: .seconds(1), clock: .continuous)
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
        let upload = record.upload
        let database = store.database
        var client = client
        client.network.allowed = upload.conditions.networks
        return try await client.upload(
            try record.layout(in: store.folder), to: upload.url, method: upload.method,
            headerFields: record.headerFields, resuming: record.resource,
            savingResource: { resource in
                try database.writeWithoutSync { try $0.noteResource(resource, of: upload.id) }
            }
        ) { progress in
            store.progress.note(upload.id, bytesSent: progress.bytesSent)
            store.sights.note()
        }
    }

    /// Writes down that the server has accepted the upload.
    private func finish(with response: UploadResponse) async throws {
        let kept = QueuedUpload.Response(
            status: response.status.code, contentType: response.headerFields[.contentType],
            body: response.body.prefix(QueuedUpload.Response.maximumBodyBytes))
        try await writeWhenPossible { try $0.finishUpload(id, with: kept) }
        store.folder.removeBody(record.uuid)
    }

    /// Writes down a failure: for another attempt, or for good.
    private func note(_ error: any Error) async throws {
        let now = Date()
        let next: Date?
        var reason = "\(error)"
        switch error {
        case let error as UploadError:
            reason = error.message
            next = retryPolicy.nextAttempt(
                after: error, failures: record.failures + 1, mayBeRepetition: record.upload.attempts > 1, now: now)
        case let error as FileError where error.mayPass:
            // The body is still there.
            next = record.failures + 1 < retryPolicy.maximumAttempts ? now.addingTimeInterval(60) : nil
        case let error as FileError:
            reason = "The form is no longer in the queue's folder. Enqueue it again. \(error)"
            next = nil
        default:
            next = nil
        }
        try await writeWhenPossible { db in
            guard try db.sendingUploads().contains(id) else { return }
            if let next {
                try db.delayUpload(id, until: next, because: reason)
            } else {
                try db.failUpload(id, because: reason)
            }
        }
    }
}

extension FileError {
    /// Whether the same may work later: a locked phone, too many open files. A link or a folder stays one.
    fileprivate var mayPass: Bool {
        let passing: [Errno] = [
            .notPermitted, .permissionDenied, .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .ioError,
        ]
        return reason == nil && passing.contains(errno)
    }
}
