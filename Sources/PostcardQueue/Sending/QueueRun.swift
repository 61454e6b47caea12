#if Queue
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One run of a queue: looks what is to be done whenever something has changed.
struct QueueRun {
    private let queue: UploadQueue
    private let carrier: QueueCarrier
    private let options: QueueOptions
    private let ledger = Ledger()

    init(_ queue: UploadQueue, _ carrier: QueueCarrier, _ options: QueueOptions) {
        self.queue = queue
        self.carrier = carrier
        self.options = options
    }

    /// Which uploads are on their way, and how to end them.
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

    /// - Parameter sendings: What goes on from earlier runs, however many they are.
    func run(resuming sendings: [any QueueSending]) async throws {
        try await withThrowingTaskGroup { group in
            defer { group.cancelAll() }
            for sending in sendings { begin(sending, in: &group) }
            var alarm: ContinuousClock.Instant?
            for await _ in queue.changes.stream() {
                // Asked before all else: what ends from here on is seen by the next look.
                let isIdle = ledger.active.isEmpty
                try ledger.checkFailure()
                try saveProgress()
                try endCancelled()
                let hasMore = try sendNext(in: &group)
                if options.endsWhenEmpty, isIdle, !hasMore { return }
                let now = ContinuousClock.now
                if let next = try nextLook(now), alarm.map({ $0 <= now || next < $0 }) ?? true {
                    alarm = next
                    group.addTask { [changes = queue.changes] in
                        try await Task.sleep(until: next, clock: .continuous)
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
    private func sendNext(in group: inout ThrowingTaskGroup<Void, any Error>) throws -> Bool {
        var hasBegun = false
        while ledger.active.count < options.concurrency {
            guard let next = try carrier.claimNext(in: queue, options, excluding: ledger.active) else {
                return try hasBegun || queue.database.read { try $0.nextDue() } != nil
            }
            begin(next, in: &group)
            hasBegun = true
        }
        return true
    }

    private func begin(_ sending: any QueueSending, in group: inout ThrowingTaskGroup<Void, any Error>) {
        let cancellation = ledger.begin(sending.id)
        queue.sights.note()
        group.addTask { [queue, ledger] in
            var failure: (any Error)?
            do {
                try await sending.run(until: cancellation)
            } catch {
                failure = error
            }
            ledger.end(sending.id, failure: failure)
            queue.noteChange()
        }
    }

    /// Ends what somebody has cancelled while it was on its way.
    private func endCancelled() throws {
        let active = ledger.active
        guard !active.isEmpty else { return }
        let sending = try queue.database.read { try $0.sendingUploads() }
        for id in active.subtracting(sending) { ledger.cancel(id) }
    }

    private func saveProgress() throws {
        let progress = queue.progress.all()
        guard !progress.isEmpty else { return }
        try queue.database.writeHastily { db in
            for (id, bytesSent) in progress { try db.noteProgress(of: id, bytesSent: bytesSent) }
        }
    }

    /// In seconds: the machine's time may be set meanwhile.
    private static let longestWait = 86_400.0

    /// When to look again without anything having happened: as something is due, or others may have done something.
    private func nextLook(_ now: ContinuousClock.Instant) throws -> ContinuousClock.Instant? {
        let due = try queue.database.read { try $0.nextDue() }
            .map { Duration.seconds(min(max(0, $0.timeIntervalSinceNow), Self.longestWait)) + .milliseconds(1) }
        return [due, options.pollInterval].compactMap { $0 }.min().map { now + $0 }
    }
}
#endif
