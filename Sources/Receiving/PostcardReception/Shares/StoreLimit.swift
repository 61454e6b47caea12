import PostcardFoundation
package import PostcardStore
import Synchronization

/// The limit of a store's total size, above which the oldest uploads are removed while new forms arrive.
///
/// While the store exceeds its limit by more than a tenth, a form becomes a record only if its client has not used up
/// its share of a second tenth, ``SharedResource/excessBytes``. Otherwise, the received form waits a moment. The store
/// therefore never exceeds its limit by more than a fifth and one form. A client that posts faster than uploads are
/// removed does not use up the limit of others.
package final class StoreLimit: Sendable {
    /// A new record that is not yet in the store's ledger, which contains the sizes of all uploads.
    package struct Arrival: Sendable {
        package let id: UploadID
        package let bytes: Int64
    }

    private struct State {
        /// The total number of bytes in the ledger.
        var ledgerBytes: Int128 = 0
        /// The number of bytes of the newest upload, which may exceed the limit by itself.
        var newestBytes: Int64 = 0
        /// The number of bytes of forms that are being committed, or were committed since the ledger was updated.
        var arrivingBytes: Int128 = 0
        var arrivals: [Arrival] = []
        /// The reservations of ``SharedResource/excessBytes``, kept until the excess is below a tenth of the limit.
        var holds: [ShareAccount.Hold] = []
        /// The forms that wait until they can become records.
        var waiting: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastNumber = 0
    }

    private let maximumBytes: Int64
    private let blockBytes: Int64
    private let shares: ShareAccount
    /// How long a received form may wait until older uploads are removed.
    private let patience: Duration
    private let onArrival: @Sendable () -> Void
    private let state = Mutex(State())

    /// `shares` limits the excess of each client: the total of ``SharedResource/excessBytes`` is ``tenth(of:)``.
    /// `blockBytes` is `MaintainedUploadStore.blockBytes`. `patience` is how long a received form may wait until older
    /// uploads are removed. `onArrival` is called after each new record.
    package init(
        of maximumBytes: Int64, blockBytes: Int64, shares: ShareAccount, patience: Duration = .seconds(5),
        onArrival: @escaping @Sendable () -> Void
    ) {
        self.maximumBytes = maximumBytes
        self.blockBytes = blockBytes
        self.shares = shares
        self.patience = patience
        self.onArrival = onArrival
    }

    /// A tenth of a limit: the excess up to which no client is refused.
    package static func tenth(of maximumBytes: Int64) -> Int { Int(clamping: maximumBytes / 10) }

    private func isExceeded(_ state: State) -> Bool {
        let countedBytes = state.ledgerBytes + state.arrivingBytes - Int128(max(state.newestBytes - maximumBytes, 0))
        return countedBytes > Int128(maximumBytes) + Int128(Self.tenth(of: maximumBytes))
    }

    /// The number of bytes that a form will have in the store, estimated before its record is known.
    private func expectedBytes(_ formBytes: Int64, files: Int) -> Int64 {
        let (bytes, isOver) = formBytes.addingReportingOverflow(blockBytes * Int64(files + 2))
        return isOver ? .max : bytes
    }

    /// Checks whether a form of an announced length could become a record now. Throws ``UploadProblem`` if the store
    /// exceeds its limit too far.
    func check(_ formBytes: Int64, of peer: PeerAddress?) throws(UploadProblem) {
        guard state.withLock({ isExceeded($0) }) else { return }
        try shares.check(Int(clamping: expectedBytes(formBytes, files: 1)), of: .excessBytes, for: peer)
    }

    /// Counts a form that is about to become a record, and waits a moment if the store exceeds its limit too far.
    /// Throws ``UploadProblem`` if the store exceeds its limit too far even after the wait, or `CancellationError`.
    func place(for formBytes: Int64, files: Int, of peer: PeerAddress?) async throws -> Place {
        let bytes = expectedBytes(formBytes, files: files)
        if let place = placeNow(bytes, of: peer) { return place }
        return try await within(patience, or: self.shares.usedUp(.excessBytes)) {
            let (changes, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
            let number = self.state.withLock { state in
                state.lastNumber += 1
                state.waiting[state.lastNumber] = continuation
                return state.lastNumber
            }
            defer { self.state.withLock { _ = $0.waiting.removeValue(forKey: number) } }
            // The store may have removed uploads since the first attempt.
            continuation.yield()
            for await _ in changes {
                if let place = self.placeNow(bytes, of: peer) { return place }
            }
            throw CancellationError()
        }
    }

    private func placeNow(_ bytes: Int64, of peer: PeerAddress?) -> Place? {
        let isOver = state.withLock { state in
            let isOver = isExceeded(state)
            if !isOver { state.arrivingBytes += Int128(bytes) }
            return isOver
        }
        guard isOver else { return Place(self, bytes, nil) }
        let amount = Int(clamping: bytes)
        guard let (hold, _) = shares.takeNow(amount...amount, of: .excessBytes, for: peer) else { return nil }
        state.withLock { $0.arrivingBytes += Int128(bytes) }
        return Place(self, bytes, hold)
    }

    private func giveBack(_ bytes: Int64) {
        state.withLock { state in
            state.arrivingBytes -= Int128(bytes)
            for waiting in state.waiting.values { waiting.yield() }
        }
    }

    /// Counts a form toward the limit. If this object is released before ``becomes(_:)`` is called, the form is no
    /// longer counted.
    final class Place: Sendable {
        private let limit: StoreLimit
        private let bytes: Int64
        private let hold: ShareAccount.Hold?
        private let isRecorded = Atomic(false)

        fileprivate init(_ limit: StoreLimit, _ bytes: Int64, _ hold: ShareAccount.Hold?) {
            self.limit = limit
            self.bytes = bytes
            self.hold = hold
        }

        deinit {
            if !isRecorded.load(ordering: .relaxed) { limit.giveBack(bytes) }
        }

        /// Reports the record of the form. Called at most once.
        func becomes(_ record: UploadRecord) {
            isRecorded.store(true, ordering: .relaxed)
            let arrival = Arrival(id: record.id, bytes: record.storedBytes(inBlocksOf: limit.blockBytes))
            limit.state.withLock { state in
                state.arrivingBytes += Int128(arrival.bytes) - Int128(bytes)
                state.arrivals.append(arrival)
                state.newestBytes = arrival.bytes
                if let hold { state.holds.append(hold) }
            }
            limit.onArrival()
        }
    }

    /// Updates the ledger. `enter` adds new records to it, and returns the bytes of all uploads and of the newest.
    package func update(_ enter: ([Arrival]) -> (all: Int128, newest: Int64)) {
        // These reservations are released outside the lock.
        var released: [ShareAccount.Hold] = []
        state.withLock { state in
            for arrival in state.arrivals { state.arrivingBytes -= Int128(arrival.bytes) }
            (state.ledgerBytes, state.newestBytes) = enter(state.arrivals)
            state.arrivals = []
            if !isExceeded(state) { swap(&released, &state.holds) }
        }
        released = []
        state.withLock { for waiting in $0.waiting.values { waiting.yield() } }
    }
}
