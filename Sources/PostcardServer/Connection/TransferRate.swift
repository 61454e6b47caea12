/// Whether a body comes in fast enough. It is judged by stretches of one grace period, so that a sender who was fast
/// at first cannot be slow for ever; the time in which nobody read is not the sender's.
struct TransferRate {
    private let minimumBytesPerSecond: Int
    private let gracePeriod: Duration

    private var began: ContinuousClock.Instant?
    private var bytes = 0
    private var heldBack = Duration.zero
    private var heldSince: ContinuousClock.Instant?

    init(minimumBytesPerSecond: Int, gracePeriod: Duration) {
        self.minimumBytesPerSecond = minimumBytesPerSecond
        self.gracePeriod = gracePeriod
    }

    mutating func bodyBegins(at now: ContinuousClock.Instant) {
        began = now
        bytes = 0
        heldBack = .zero
        heldSince = nil
    }

    mutating func received(_ count: Int) { bytes += count }

    mutating func readingStops(at now: ContinuousClock.Instant) {
        if heldSince == nil { heldSince = now }
    }

    mutating func readingGoesOn(at now: ContinuousClock.Instant) {
        guard let since = heldSince else { return }
        heldBack += since.duration(to: now)
        heldSince = nil
    }

    /// - Returns: After how long to judge again; `nil` where the sender is too slow.
    mutating func judge(at now: ContinuousClock.Instant) -> Duration? {
        guard let began, minimumBytesPerSecond > 0 else { return gracePeriod }
        let held = heldBack + (heldSince.map { $0.duration(to: now) } ?? .zero)
        let passed = began.duration(to: now) - held
        guard passed >= gracePeriod else { return gracePeriod - passed }
        guard Double(bytes) >= Double(minimumBytesPerSecond) * (passed / .seconds(1)) else { return nil }
        bodyBegins(at: now)
        return gracePeriod
    }
}
