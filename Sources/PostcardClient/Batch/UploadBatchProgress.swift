/// How far a batch of uploads is: item by item, and in all.
public struct UploadBatchProgress: Sendable {
    /// How far each upload under way is, by its index.
    public internal(set) var items: [Int: UploadProgress] = [:]

    /// The number of uploads that ended with an answer that is accepted.
    public internal(set) var succeeded = 0

    /// The number of uploads that ended otherwise, cancelled ones included.
    public internal(set) var failed = 0

    /// The number of uploads in all; `nil` where the sequence does not say how many it has.
    public let count: Int?

    /// The number of bytes sent by all uploads so far. It never falls: what a retry sends again is not counted.
    public internal(set) var bytesSent: Int64 = 0

    /// What the uploads under way have sent, and their shares, at their farthest.
    private var farthest: [Int: (bytes: Int64, fraction: Double)] = [:]

    init(count: Int?) {
        self.count = count
        fraction = count.map { $0 > 0 ? 0 : 1 }
    }

    /// The share of the uploads that have ended, those under way counted by what they have sent: from 0 to 1, never
    /// falling; `nil` where ``count`` is.
    public private(set) var fraction: Double?

    /// Sums of the same shares in another order differ in their last bits, which must not look like a step back.
    private mutating func raiseFraction() {
        guard let count, let before = fraction else { return }
        let underWay = farthest.values.reduce(0) { $0 + $1.fraction }
        fraction = max(before, min((Double(succeeded + failed) + underWay) / Double(max(count, 1)), 1))
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
