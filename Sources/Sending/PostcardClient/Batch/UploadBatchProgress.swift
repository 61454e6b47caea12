/// The progress of a batch of uploads: item by item, and in total.
public struct UploadBatchProgress: Sendable {
    /// The progress of each running upload, by its index.
    public internal(set) var items: [Int: UploadProgress] = [:]

    /// The number of uploads that succeeded.
    public internal(set) var succeeded = 0

    /// The number of uploads that failed or were cancelled.
    public internal(set) var failed = 0

    /// The total number of uploads; `nil` if the sequence does not know its count.
    public let count: Int?

    /// The number of bytes sent by all uploads so far. It never falls: bytes that a retry sends again are not counted.
    public internal(set) var bytesSent: Int64 = 0

    /// The most bytes that each running upload has sent, and the largest fraction.
    private var farthest: [Int: (bytes: Int64, fraction: Double)] = [:]

    init(count: Int?) {
        self.count = count
        fraction = count.map { $0 > 0 ? 0 : 1 }
    }

    /// The fraction of the uploads that have ended, where running ones count with what they have sent: from 0 to 1,
    /// never falling; `nil` if ``count`` is `nil`.
    public private(set) var fraction: Double?

    /// Sums of the same fractions in another order differ in their last bits, which must not look like a step back.
    private mutating func raiseFraction() {
        guard let count, let before = fraction else { return }
        let running = farthest.values.reduce(0) { $0 + $1.fraction }
        fraction = max(before, min((Double(succeeded + failed) + running) / Double(max(count, 1)), 1))
    }

    mutating func note(_ progress: UploadProgress, of index: Int) {
        items[index] = progress
        let before = farthest[index] ?? (0, 0)
        bytesSent += max(progress.bytesSent - before.bytes, 0)
        farthest[index] = (max(progress.bytesSent, before.bytes), max(progress.fraction ?? 0, before.fraction))
        raiseFraction()
    }

    mutating func note(_ outcome: UploadOutcome) {
        items[outcome.index] = nil
        farthest[outcome.index] = nil
        switch outcome.result {
        case .success: succeeded += 1
        case .failure: failed += 1
        }
        raiseFraction()
    }
}
