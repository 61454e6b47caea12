import Logging
import PostcardServer

/// Publishes what other receivers have stored and deleted, while anyone listens.
///
/// Receivers that share a store do not talk to each other. So the store is asked for its newest records every few
/// seconds: once for all listeners, and for each new record once more.
actor StoreFollower {
    private let store: any MaintainedUploadStore
    private let interval: Duration
    private let live: LiveEvents
    private let logger: Logger
    /// Called for each upload that is gone from the store.
    private let onDeletion: @Sendable (UploadID) -> Void
    /// What the store had when it was last asked; `nil` while no one listens.
    private var known: Known?
    private var beginning: Task<Known, any Error>?
    private var isFailing = false

    /// More new records are not published: listeners are disconnected, and read the list again.
    private static let maximumRecords = 100

    private struct Known: Sendable {
        var records: Set<UploadID>
        /// When the store was asked.
        var asked: ContinuousClock.Instant
    }

    /// - Returns: `nil` if no other receiver uses the store.
    init?(
        _ store: any MaintainedUploadStore, _ live: LiveEvents, logger: Logger,
        onDeletion: @escaping @Sendable (UploadID) -> Void = { _ in }
    ) {
        guard let interval = store.followingInterval else { return nil }
        self.store = store
        self.interval = interval
        self.live = live
        self.logger = logger
        self.onDeletion = onDeletion
    }

    /// Begins to follow the store, unless it is followed already. A listener that was added before misses nothing from
    /// here on.
    ///
    /// - Throws: `UploadStoreError` if the store fails.
    func begin() async throws {
        guard known == nil else { return }
        let task =
            beginning
            ?? Task { [store] in
                let asked = ContinuousClock.now
                return Known(records: Set(try await store.newestRecords().identifiers), asked: asked)
            }
        beginning = task
        defer { beginning = nil }
        let first = try await task.value
        guard known == nil else { return }
        known = first
        Task { await follow() }
    }

    private func follow() async {
        while let last = known {
            live.publish(.behind(seconds: seconds(since: last.asked)))
            try? await Task.sleep(for: interval)
            guard live.hasListeners else { break }
            await ask(after: last)
        }
        known = nil
    }

    private func ask(after last: Known) async {
        let asked = ContinuousClock.now
        do {
            let newest = try await store.newestRecords()
            try await publish(newest, after: last)
            known = Known(records: Set(newest.identifiers), asked: asked)
            isFailing = false
        } catch {
            if !isFailing { logger.warning("Could not follow the store", metadata: ["error": "\(error)"]) }
            isFailing = true
        }
    }

    private func publish(_ newest: NewestRecords, after last: Known) async throws {
        let records = Set(newest.identifiers)
        let new = newest.identifiers.filter { !last.records.contains($0) && !live.hasPublished($0) }
        // If all records that were known are further back than the store was asked for, others may be, too.
        let isGap = newest.oldest != nil && !last.records.isEmpty && records.isDisjoint(with: last.records)
        guard new.count <= Self.maximumRecords, !isGap else { return live.disconnect() }
        for id in new.reversed() {
            if let record = try await store.record(id) { live.publish(.uploaded(record)) }
        }
        for id in last.records.subtracting(records) where newest.oldest.map({ id >= $0 }) ?? true {
            onDeletion(id)
            live.publish(.deleted(id))
        }
    }

    /// For how many seconds at most events are missing, before the store is asked again.
    private func seconds(since asked: ContinuousClock.Instant) -> Int {
        Int(((asked.duration(to: .now) + interval) / .seconds(1)).rounded(.up))
    }
}
