import Logging
import PostcardFoundation
import PostcardServer
import ServiceLifecycle
import Synchronization

/// Removes what a ``RetentionPolicy`` does not keep.
struct RetentionKeeper: Service {
    let store: any MaintainedUploadStore
    let policy: RetentionPolicy
    let meter: UploadMeter
    let logger: Logger
    /// Called for each upload that was removed.
    let onRemoval: @Sendable (UploadID) -> Void
    /// The time of the machine's clock, and the time since any fixed moment.
    let now: @Sendable () -> (wall: Date, uptime: Duration)

    /// Whether other receivers may delete uploads too.
    private var isShared: Bool { store.followingInterval != nil }
    /// Events that had no room.
    private let missedEvents = MissedEvents()
    private let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation

    private final class MissedEvents: Sendable {
        private let areThere = Atomic(false)

        func note() { areThere.store(true, ordering: .relaxed) }
        func take() -> Bool { areThere.exchange(false, ordering: .relaxed) }
    }

    private enum Event {
        case recorded(UploadID, bytes: Int64)
        case deleted(UploadID)
        /// Time to look at the sizes.
        case sizesDue
        /// Time to look at everything.
        case due
    }

    /// How long a store that other receivers use may exceed the limit before it is listed: a listing of all uploads costs
    /// as many requests as there are thousands.
    private static let sharedInterval = Duration.seconds(600)

    init(
        of store: any MaintainedUploadStore, by policy: RetentionPolicy, meter: UploadMeter, logger: Logger,
        onRemoval: @escaping @Sendable (UploadID) -> Void = { _ in },
        now: @escaping @Sendable () -> (wall: Date, uptime: Duration) = RetentionKeeper.machineTime
    ) {
        self.store = store
        self.policy = policy
        self.meter = meter
        self.logger = logger
        self.onRemoval = onRemoval
        self.now = now
        // What does not fit is found when everything is looked at.
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(4096))
    }

    private static let start = ContinuousClock.now

    static let machineTime: @Sendable () -> (wall: Date, uptime: Duration) = {
        (Date(), start.duration(to: .now))
    }

    /// Takes note of what became of a request.
    func note(_ outcome: UploadReport.Outcome) {
        guard policy.maximumBytes != nil else { return }
        let event: Event
        switch outcome {
        case .recorded(let record): event = .recorded(record.id, bytes: record.storedBytes)
        case .deleted(let id): event = .deleted(id)
        case .repeated: return
        }
        if case .dropped = continuation.yield(event) { missedEvents.note() }
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withTaskGroup(of: Void.self) { tasks in
                tasks.addTask {
                    while !Task.isCancelled {
                        continuation.yield(.due)
                        try? await Task.sleep(for: store.sweepInterval)
                    }
                }
                if isShared {
                    tasks.addTask {
                        while !Task.isCancelled {
                            try? await Task.sleep(for: Self.sharedInterval)
                            continuation.yield(.sizesDue)
                        }
                    }
                }
                var clock: RetentionClock?
                var ledger = RetentionLedger()
                for await event in events where !Task.isCancelled {
                    switch event {
                    case .recorded(let id, let bytes):
                        ledger.insert(recorded: id, bytes: bytes)
                        if isShared { continue }
                    case .deleted(let id):
                        ledger.remove(id)
                        if isShared { continue }
                    case .sizesDue: break
                    case .due:
                        await removeOld(&clock, &ledger)
                        guard await learnSizes(&ledger) else { continue }
                        await retryExcess(&ledger)
                        await removeKnownExcess(&ledger)
                        continue
                    }
                    await removeExcess(&ledger)
                }
                tasks.cancelAll()
            }
        }
    }

    /// Removes everything that is too old.
    ///
    /// - Parameter clock: What is known of the time; `nil` at first.
    func removeOld(_ clock: inout RetentionClock?, _ ledger: inout RetentionLedger) async {
        guard let age = policy.maximumAge else { return }
        let (wall, uptime) = now()
        var known: RetentionClock
        if let clock {
            known = clock
        } else {
            do {
                // The clock may be wrong since the machine was started. Without uploads it can do no harm.
                let newest = try await store.identifiers(limit: 1, after: nil).first
                known = RetentionClock(since: newest?.time ?? wall, uptime: uptime)
            } catch {
                return report(error, "Could not list the uploads to remove old ones", of: nil, .read)
            }
        }
        let time = known.time(wall: wall, uptime: uptime)
        clock = known
        let limit = time.addingTimeInterval(-(age / .seconds(1)))
        // No upload has an earlier time.
        guard limit.timeIntervalSince1970 > 0 else { return }
        let oldest = UploadID(earliestAt: Int64(limit.timeIntervalSince1970 * 1000))
        guard let old = await identifiers(olderThan: oldest) else { return }
        // Those that could not be removed have a turn of their own, so that the others do not wait behind them.
        await remove(old.reversed().filter(ledger.failed.contains), because: .age, &ledger)
        await remove(old.reversed().filter { !ledger.failed.contains($0) }, because: .age, &ledger)
    }

    /// How many records are read one after the other to learn their sizes, rather than to ask for all sizes at once.
    static let fewUploads = 100

    /// Learns the sizes of all uploads.
    ///
    /// - Returns: Whether the ledger has the uploads of the store.
    @discardableResult
    func learnSizes(_ ledger: inout RetentionLedger) async -> Bool {
        guard policy.maximumBytes != nil, let listed = await identifiers(olderThan: nil) else { return false }
        let unknown = ledger.reconcile(with: listed)
        var sizes: [UploadID: Int64] = [:]
        if unknown.count > Self.fewUploads {
            do {
                sizes = try await store.sizes() ?? [:]
            } catch {
                report(error, "Could not list the sizes of the uploads", of: nil, .read)
                return true
            }
        }
        for id in unknown where !Task.isCancelled {
            if let bytes = sizes[id] {
                ledger.insert(id, bytes: bytes)
                continue
            }
            do {
                if let record = try await store.record(id) { ledger.insert(id, bytes: record.storedBytes) }
            } catch {
                // A damaged one is set aside, and the others can still be counted.
                report(error, "Could not read the size of an upload", of: id, .read)
            }
        }
        return true
    }

    /// Tries to remove those again that could not be removed.
    func retryExcess(_ ledger: inout RetentionLedger) async {
        guard let maximum = policy.maximumBytes else { return }
        await remove(ledger.excess(over: maximum).filter(ledger.failed.contains), because: .quota, &ledger)
    }

    /// Removes what exceeds the limit. The store is listed before if others may have deleted uploads in it: what fits must
    /// not be removed for one that is gone.
    func removeExcess(_ ledger: inout RetentionLedger) async {
        guard let maximum = policy.maximumBytes else { return }
        let isExceeded = !ledger.excess(over: maximum, but: ledger.failed).isEmpty
        if isExceeded, isShared || missedEvents.take() {
            guard await learnSizes(&ledger) else { return }
        }
        await removeKnownExcess(&ledger)
    }

    private func removeKnownExcess(_ ledger: inout RetentionLedger) async {
        guard let maximum = policy.maximumBytes else { return }
        await remove(ledger.excess(over: maximum, but: ledger.failed), because: .quota, &ledger)
        meter.stores(bytes: ledger.totalBytes)
    }

    /// The identifiers of all uploads that are older than one, newest first; `nil` if the store fails.
    private func identifiers(olderThan id: UploadID?) async -> [UploadID]? {
        var all: [UploadID] = []
        do {
            while !Task.isCancelled {
                let page = try await store.identifiers(limit: 1000, after: all.last ?? id)
                all += page
                if page.count < 1000 { return all }
            }
        } catch {
            report(error, "Could not list the uploads to remove old ones", of: nil, .read)
        }
        return nil
    }

    /// How many uploads in succession may fail to be removed before the rest is left for later.
    private static let maximumFailures = 3

    private func remove(
        _ ids: some Sequence<UploadID>, because reason: RetentionPolicy.Reason, _ ledger: inout RetentionLedger
    ) async {
        var failures = 0
        for id in ids where failures < Self.maximumFailures && !Task.isCancelled {
            do {
                let isRemoved = try await store.delete(id)
                failures = 0
                ledger.remove(id)
                // Otherwise a client was faster, or another receiver.
                guard isRemoved else { continue }
                meter.removed(because: reason.rawValue)
                logger.notice("Removed an upload", metadata: ["upload": "\(id)", "reason": "\(reason.rawValue)"])
                onRemoval(id)
            } catch {
                failures += 1
                ledger.keep(id)
                report(error, "Could not remove an upload", of: id, .delete)
            }
        }
    }

    private func report(
        _ error: any Error, _ message: Logger.Message, of id: UploadID?, _ operation: UploadMeter.StoreOperation
    ) {
        // The receiver shuts down.
        guard !Task.isCancelled else { return }
        meter.storeFailed(operation, error)
        logger.warning(message, metadata: ["upload": "\(id.map(\.text) ?? "")", "error": "\(error)"])
    }
}
