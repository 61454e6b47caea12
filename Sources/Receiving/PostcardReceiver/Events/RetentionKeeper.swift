import Logging
import PostcardFoundation
import PostcardReception
import PostcardServer
import ServiceLifecycle
import Synchronization

/// The results of the concurrent removals of a batch of uploads.
private final class Removals: Sendable {
    let all = Mutex<[UploadID: Result<Bool, any Error>]>([:])
}

/// Removes the uploads that a ``RetentionPolicy`` does not keep.
struct RetentionKeeper: Service {
    let store: any MaintainedUploadStore
    let policy: RetentionPolicy
    let meter: UploadMeter
    let logger: Logger
    let onRemoval: @Sendable (UploadID) -> Void
    /// Returns the current time of the machine's clock, and the time since a fixed moment.
    let now: @Sendable () -> (wall: Date, uptime: Duration)
    /// Refuses forms while uploads are removed; `nil` if the policy does not limit bytes.
    let limit: StoreLimit?

    /// Whether other receivers may use the store too.
    private var isShared: Bool { store.followingInterval != nil }
    private let news: RetentionNews
    private let begun = AsyncStream<Never>.makeStream()

    /// The interval at which a shared store is listed while it exceeds the limit by at most the tolerated excess.
    /// Listing takes one request for each 1,000 uploads.
    private static let sharedInterval = Duration.seconds(600)
    /// The interval at which a shared store is listed while it seems to exceed the limit by more than the tolerated
    /// excess.
    private static let excessInterval = Duration.seconds(30)
    /// The divisor of the limit that gives the tolerated excess. At twice the tolerated excess, forms are refused.
    private static let tolerance: Int64 = 20

    init(
        of store: any MaintainedUploadStore, by policy: RetentionPolicy, meter: UploadMeter, logger: Logger,
        shares: ShareAccount = ShareAccount(ShareLimits(clientShare: 1)),
        onRemoval: @escaping @Sendable (UploadID) -> Void = { _ in },
        now: @escaping @Sendable () -> (wall: Date, uptime: Duration) = RetentionKeeper.machineTime
    ) {
        self.store = store
        self.policy = policy
        self.meter = meter
        self.logger = logger
        self.onRemoval = onRemoval
        self.now = now
        let news = RetentionNews()
        self.news = news
        limit = policy.maximumBytes.map { maximum in
            StoreLimit(of: maximum, blockBytes: store.blockBytes, shares: shares) { news.add() }
        }
    }

    private static let start = ContinuousClock.now

    static let machineTime: @Sendable () -> (wall: Date, uptime: Duration) = {
        (Date(), start.duration(to: .now))
    }

    func note(_ event: UploadReport.RecordEvent) {
        if case .deleted(let id) = event { news.add { $0.deleted.append(id) } }
    }

    /// Waits until all uploads of an unshared store are known. Forms that arrive earlier could exceed the limit.
    func waitUntilBegun() async {
        guard !isShared else { return }
        for await _ in begun.stream {}
    }

    func run() async throws {
        defer { begun.continuation.finish() }
        await cancelWhenGracefulShutdown {
            await withTaskGroup(of: Void.self) { tasks in
                repeatEvery(store.sweepInterval, in: &tasks) { $0.due.look = true }
                if isShared { repeatEvery(Self.excessInterval, in: &tasks) { $0.due.listing = true } }
                var ages: UploadAges?
                var ledger = RetentionLedger()
                if !isShared { await begin(&ages, &ledger) }
                var listed = ContinuousClock.now
                await lookAtEverything(&ages, &ledger)
                for await _ in news.changes where !Task.isCancelled {
                    bringUpToDate(&ledger)
                    let due = news.takeDue()
                    if due.look {
                        listed = .now
                        await lookAtEverything(&ages, &ledger)
                    } else if !isShared {
                        await removeExcess(&ledger)
                    } else if due.listing, isWorthListing(ledger, since: listed) {
                        listed = .now
                        await removeExcess(&ledger)
                    }
                }
                tasks.cancelAll()
            }
        }
    }

    private func repeatEvery(
        _ interval: Duration, in tasks: inout TaskGroup<Void>,
        _ change: @escaping @Sendable (inout RetentionNews.State) -> Void
    ) {
        tasks.addTask {
            while !Task.isCancelled {
                try? await Task.sleep(for: interval)
                news.add(change)
            }
        }
    }

    /// Reads the ages and sizes of all uploads, before the first form arrives.
    private func begin(_ ages: inout UploadAges?, _ ledger: inout RetentionLedger) async {
        if let maximum = policy.maximumAge { _ = await end(ofOlderThan: maximum / .seconds(1), &ages) }
        await learnSizes(&ledger)
        bringUpToDate(&ledger)
        begun.continuation.finish()
    }

    private func lookAtEverything(_ ages: inout UploadAges?, _ ledger: inout RetentionLedger) async {
        await removeOld(&ages, &ledger)
        if await learnSizes(&ledger) {
            await retryExcess(&ledger)
            await removeKnownExcess(&ledger)
        }
    }

    private func isWorthListing(_ ledger: RetentionLedger, since listed: ContinuousClock.Instant) -> Bool {
        guard let maximum = policy.maximumBytes else { return false }
        let tolerated = Int64(clamping: Int128(maximum) + Int128(maximum / Self.tolerance))
        return !ledger.excess(over: tolerated, but: ledger.failed).isEmpty
            || listed.duration(to: .now) >= Self.sharedInterval
    }

    /// Updates the ledger with uploads that were added or deleted.
    private func bringUpToDate(_ ledger: inout RetentionLedger) {
        for id in news.takeDeleted() { ledger.remove(id) }
        limit?.update { arrivals in
            for arrival in arrivals { ledger.insert(recorded: arrival.id, bytes: arrival.bytes) }
            return (ledger.totalBytes, ledger.newestBytes)
        }
    }

    // MARK: - Age

    /// Removes all uploads that exceed the maximum age. `ages` are the known ages; `nil` before the first call.
    func removeOld(_ ages: inout UploadAges?, _ ledger: inout RetentionLedger) async {
        guard let maximum = policy.maximumAge, let end = await end(ofOlderThan: maximum / .seconds(1), &ages),
            let old = await identifiers(olderThan: end)
        else { return }
        // Uploads that could not be removed before are tried separately, so that other uploads need not wait for them.
        await remove(old.reversed().filter(ledger.failed.contains), because: .age, &ledger)
        await remove(old.reversed().filter { !ledger.failed.contains($0) }, because: .age, &ledger)
    }

    // MARK: - Size

    /// The maximum number of unknown sizes that are all read from the records of the uploads. If more sizes are
    /// unknown, the store lists the sizes of all its uploads.
    static let fewUploads = 100

    /// Reads the sizes of all uploads. Returns whether the ledger now contains all uploads of the store.
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
                guard let record = try await store.record(id) else { continue }
                ledger.insert(id, bytes: record.storedBytes(inBlocksOf: store.blockBytes))
            } catch {
                // The store sets the damaged record aside. The sizes of other uploads can still be read.
                report(error, "Could not read the size of an upload", of: id, .read)
            }
        }
        return true
    }

    /// Retries the removal of uploads that could not be removed before.
    func retryExcess(_ ledger: inout RetentionLedger) async {
        guard let maximum = policy.maximumBytes else { return }
        await remove(ledger.excess(over: maximum).filter(ledger.failed.contains), because: .quota, &ledger)
    }

    /// Removes the oldest uploads until the limit is met. A shared store is listed first, because other receivers may
    /// already have deleted uploads.
    func removeExcess(_ ledger: inout RetentionLedger) async {
        guard let maximum = policy.maximumBytes else { return }
        if isShared, !ledger.excess(over: maximum, but: ledger.failed).isEmpty {
            guard await learnSizes(&ledger) else { return }
        }
        await removeKnownExcess(&ledger)
    }

    private func removeKnownExcess(_ ledger: inout RetentionLedger) async {
        guard let maximum = policy.maximumBytes else { return }
        await remove(ledger.excess(over: maximum, but: ledger.failed), because: .quota, &ledger)
        bringUpToDate(&ledger)
        meter.stores(bytes: ledger.totalBytes)
    }

    // MARK: - The store

    /// The identifiers of all uploads that are older than an upload, newest first; `nil` if the store fails.
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

    /// The number of uploads removed at once. More removals would occupy the threads that write the files of new forms.
    private static let batchCount = 8

    /// Removes uploads in concurrent batches. If all removals of a batch fail, the later batches are not tried.
    private func remove(_ ids: [UploadID], because reason: RetentionPolicy.Reason, _ ledger: inout RetentionLedger)
        async
    {
        var rest = ids[...]
        while !rest.isEmpty, !Task.isCancelled {
            let batch = rest.prefix(Self.batchCount)
            rest = rest.dropFirst(batch.count)
            // The tasks return no tuples, because in optimized code a task group of tuples reads invalid memory.
            let removals = Removals()
            await withTaskGroup(of: Void.self) { tasks in
                for id in batch {
                    tasks.addTask {
                        let isRemoved: Result<Bool, any Error>
                        do { isRemoved = .success(try await store.delete(id)) } catch { isRemoved = .failure(error) }
                        removals.all.withLock { $0[id] = isRemoved }
                    }
                }
            }
            var hasFailed = true
            for (id, isRemoved) in removals.all.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
                switch isRemoved {
                case .success(let isRemoved):
                    hasFailed = false
                    ledger.remove(id)
                    // If the removal reports `false`, a client or another receiver has already removed the upload.
                    if isRemoved { noteRemoval(of: id, because: reason) }
                case .failure(let error):
                    ledger.keep(id)
                    report(error, "Could not remove an upload", of: id, .delete)
                }
            }
            if hasFailed { return }
            bringUpToDate(&ledger)
        }
    }

    private func noteRemoval(of id: UploadID, because reason: RetentionPolicy.Reason) {
        meter.removed(because: reason.rawValue)
        logger.notice("Removed an upload", metadata: ["upload": "\(id)", "reason": "\(reason.rawValue)"])
        onRemoval(id)
    }

    func report(
        _ error: any Error, _ message: Logger.Message, of id: UploadID?, _ operation: UploadMeter.StoreOperation
    ) {
        // A failure during shutdown is not reported.
        guard !Task.isCancelled else { return }
        meter.storeFailed(operation, error)
        logger.warning(message, metadata: ["upload": "\(id.map(\.text) ?? "")", "error": "\(error)"])
    }
}
