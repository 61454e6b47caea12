package import NIOCore

/// Measures whether a body arrives fast enough.
///
/// Each grace period is measured on its own, so a client that was fast at first cannot be slow forever. The time in
/// which the server did not read is not counted.
package struct TransferRate: Sendable {
    private let minimumBytesPerSecond: Int
    private let gracePeriod: Duration

    private var began: NIODeadline?
    private var bytes = 0
    private var pausedTime = Duration.zero
    private var pausedSince: NIODeadline?

    package init(minimumBytesPerSecond: Int, gracePeriod: Duration) {
        self.minimumBytesPerSecond = minimumBytesPerSecond
        self.gracePeriod = gracePeriod
    }

    package mutating func bodyBegins(at now: NIODeadline) {
        began = now
        bytes = 0
        pausedTime = .zero
        pausedSince = nil
    }

    package mutating func received(_ count: Int) { bytes += count }

    package mutating func readingPauses(at now: NIODeadline) {
        if pausedSince == nil { pausedSince = now }
    }

    package mutating func readingResumes(at now: NIODeadline) {
        guard let since = pausedSince else { return }
        pausedTime += since.duration(to: now)
        pausedSince = nil
    }

    /// - Returns: When to check again, or `nil` if the client is too slow.
    package mutating func check(at now: NIODeadline) -> Duration? {
        guard let began, minimumBytesPerSecond > 0 else { return gracePeriod }
        let paused = pausedTime + (pausedSince.map { $0.duration(to: now) } ?? .zero)
        let passed = began.duration(to: now) - paused
        guard passed >= gracePeriod else { return gracePeriod - passed }
        guard Double(bytes) >= Double(minimumBytesPerSecond) * (passed / .seconds(1)) else { return nil }
        bodyBegins(at: now)
        return gracePeriod
    }
}

extension NIODeadline {
    package func advanced(by duration: Duration) -> NIODeadline { self + TimeAmount(duration) }

    package func duration(to end: NIODeadline) -> Duration { Duration(end - self) }
}
