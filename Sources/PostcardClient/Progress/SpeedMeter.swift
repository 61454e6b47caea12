/// Tells the speed of the last few seconds from how far an upload was at which moment.
package struct SpeedMeter: Sendable {
    private var samples: [Sample] = []

    private struct Sample {
        var time: ContinuousClock.Instant
        var bytes: Int64
    }

    /// Long enough that a connection's bursts even out, short enough that a change of the network is seen.
    private static let window = Duration.seconds(3)

    /// Samples closer than this are one: they bound the memory and not the precision.
    private static let spacing = Duration.milliseconds(100)

    package init() {}

    /// - Parameters:
    ///   - bytes: How many bytes were sent in all.
    ///   - time: When that was; no earlier than the sample before.
    package mutating func add(_ bytes: Int64, at time: ContinuousClock.Instant) {
        let sample = Sample(time: time, bytes: bytes)
        if samples.count >= 2, time - samples[samples.count - 2].time < Self.spacing {
            samples[samples.count - 1] = sample
        } else {
            samples.append(sample)
        }
        while samples.count > 2, time - samples[1].time > Self.window { samples.removeFirst() }
    }

    /// `nil` until two moments can be compared.
    package var bytesPerSecond: Double? {
        guard let first = samples.first, let last = samples.last else { return nil }
        let seconds = (last.time - first.time) / Duration.seconds(1)
        return seconds > 0.01 ? Double(last.bytes - first.bytes) / seconds : nil
    }

    /// How long a number of bytes takes at this speed; `nil` where there is no speed, or none to speak of: longer
    /// than a year is as good as never.
    func timeRemaining(for bytes: Int64) -> Duration? {
        if bytes == 0 { return .zero }
        guard let bytesPerSecond, bytesPerSecond > 0 else { return nil }
        let seconds = Double(bytes) / bytesPerSecond
        return seconds < 31_536_000 ? .seconds(seconds) : nil
    }
}
