import PostcardForm

/// The progress of an upload, in total and for each part.
///
/// Within an attempt the numbers never fall. All bytes are bytes of the request's body. "Sent" means handed to the
/// connection, so bytes in the system's buffers count as sent.
public struct UploadProgress: Sendable {
    /// The number of the attempt, from 1. An attempt begins at 0 bytes again, unless it resumes the attempt before.
    public let attempt: Int

    /// Whether this attempt resumes the one before: bytes that the server has are not sent again.
    public let isResumed: Bool

    /// The number of bytes of the body sent, including the form's delimiters and headers.
    public let bytesSent: Int64

    /// The number of bytes of the body; `nil` if a stream of unknown length was not read to its end yet.
    public let totalBytes: Int64?

    /// The average speed over the last three seconds, in bytes per second; `nil` at the beginning.
    public let bytesPerSecond: Double?

    /// The time to send the rest of the body at the current speed, without the wait for the server's response. `nil` if
    /// the speed or the length is not known, or if the time would be more than a year.
    public let timeRemaining: Duration?

    private let layouts: [PartLayout]

    /// The ranges of the parts' contents in the body, for the parts whose ranges are known so far.
    let contentRanges: [Range<Int64>]

    /// The progress of one part of the form.
    public struct Part: Sendable, Hashable, Identifiable {
        /// The position of the part in the form, from 0.
        public let id: Int
        /// The name of the form's field.
        public let name: String
        /// The name of the file; `nil` for a text field.
        public let filename: String?
        /// The number of bytes of the part's content sent.
        public let bytesSent: Int64
        /// The number of bytes of the part's content; `nil` if a stream of unknown length was not read to its end yet.
        public let totalBytes: Int64?
        /// Whether the part's first byte was sent or is the next byte to send.
        public let hasBegun: Bool

        /// The fraction of the part's content sent, from 0 to 1; `nil` if ``totalBytes`` is `nil`.
        public var fraction: Double? {
            guard let totalBytes else { return nil }
            guard totalBytes > 0 else { return hasBegun ? 1 : 0 }
            return Double(bytesSent) / Double(totalBytes)
        }
    }

    init(
        attempt: Int, isResumed: Bool = false, bytesSent: Int64, totalBytes: Int64?, parts: [PartLayout],
        contentRanges: [Range<Int64>], meter: SpeedMeter = SpeedMeter()
    ) {
        self.attempt = attempt
        self.isResumed = isResumed
        self.bytesSent = bytesSent
        // The length of a stream is known once the stream was read, which may be before its bytes were sent.
        let isKnown = parts.allSatisfy { $0.contentLength != nil } || totalBytes.map { bytesSent >= $0 } ?? false
        self.totalBytes = isKnown ? totalBytes : nil
        layouts = parts
        self.contentRanges = contentRanges
        bytesPerSecond = meter.bytesPerSecond
        timeRemaining = self.totalBytes.flatMap { meter.timeRemaining(for: max($0 - bytesSent, 0)) }
    }

    /// The fraction of the body sent, from 0 to 1; `nil` if the body's length is not known.
    public var fraction: Double? {
        guard let totalBytes, totalBytes > 0 else { return nil }
        return Double(bytesSent) / Double(totalBytes)
    }

    /// The progress of every part of the form, in order, computed at each call.
    public var parts: [Part] {
        layouts.enumerated().map { index, part in
            let range = index < contentRanges.count ? contentRanges[index] : nil
            return Part(
                id: index, name: part.name, filename: part.filename,
                bytesSent: range.map { min(max(bytesSent - $0.lowerBound, 0), $0.upperBound - $0.lowerBound) } ?? 0,
                totalBytes: part.contentLength ?? (hasEnded(index) ? range.map { $0.upperBound - $0.lowerBound } : nil),
                hasBegun: range.map { $0.lowerBound <= bytesSent } ?? false)
        }
    }

    /// Whether all content of a part was sent. A stream of unknown length ends where the next part begins.
    func hasEnded(_ index: Int) -> Bool {
        guard index < contentRanges.count, contentRanges[index].upperBound <= bytesSent else { return false }
        return layouts[index].contentLength != nil || index + 1 < contentRanges.count
            || totalBytes.map { bytesSent >= $0 } ?? false
    }
}

/// Measures the average speed of the last few seconds.
package struct SpeedMeter: Sendable {
    private var samples: [Sample] = []

    private struct Sample {
        var time: ContinuousClock.Instant
        var bytes: Int64
    }

    /// The time for averaging the speed: long enough to even out bursts, short enough to show a network change.
    private static let window = Duration.seconds(3)

    /// The minimum time between samples. Closer samples are merged, which limits the memory and costs no precision.
    private static let spacing = Duration.milliseconds(100)

    package init() {}

    /// Adds a sample.
    ///
    /// - Parameters:
    ///   - bytes: The total number of bytes sent so far.
    ///   - time: The time of this sample, which is not before that of the previous sample.
    package mutating func add(_ bytes: Int64, at time: ContinuousClock.Instant) {
        let sample = Sample(time: time, bytes: bytes)
        if samples.count >= 2, time - samples[samples.count - 2].time < Self.spacing {
            samples[samples.count - 1] = sample
        } else {
            samples.append(sample)
        }
        while samples.count > 2, time - samples[1].time > Self.window { samples.removeFirst() }
    }

    /// The average speed; `nil` until there are two samples.
    package var bytesPerSecond: Double? {
        guard let first = samples.first, let last = samples.last else { return nil }
        let seconds = (last.time - first.time) / Duration.seconds(1)
        return seconds > 0.01 ? Double(last.bytes - first.bytes) / seconds : nil
    }

    /// How long sending a number of bytes takes at this speed; `nil` if the speed is not known, or for more than a
    /// year.
    func timeRemaining(for bytes: Int64) -> Duration? {
        if bytes == 0 { return .zero }
        guard let bytesPerSecond, bytesPerSecond > 0 else { return nil }
        let seconds = Double(bytes) / bytesPerSecond
        return seconds < 31_536_000 ? .seconds(seconds) : nil
    }
}

extension UploadProgress {
    /// Makes a progress for a preview of a screen, or for a test.
    ///
    /// ```swift
    /// #Preview { ProgressRow(progress: .preview(0.4, filenames: ["초코.jpg", "나비.jpg"])) }
    /// ```
    ///
    /// - Parameters:
    ///   - fraction: The fraction of the body sent, from 0 to 1.
    ///   - filenames: The names of the form's files, each a part of 1 MB. Defaults to one photo.
    ///   - bytesPerSecond: The speed. Defaults to 500 kB a second; `nil` if the speed is not known yet.
    ///   - attempt: The number of the attempt, from 1.
    public static func preview(
        _ fraction: Double = 0.4, filenames: [String] = ["photo.jpg"], bytesPerSecond: Double? = 500_000,
        attempt: Int = 1
    ) -> UploadProgress {
        let size: Int64 = 1_000_000
        let totalBytes = size * Int64(filenames.count)
        var meter = SpeedMeter()
        if let bytesPerSecond {
            let now = ContinuousClock.now
            meter.add(0, at: now)
            meter.add(Int64(bytesPerSecond), at: now + .seconds(1))
        }
        return UploadProgress(
            attempt: attempt, bytesSent: Int64(Double(totalBytes) * min(max(fraction, 0), 1)), totalBytes: totalBytes,
            parts: filenames.map {
                PartLayout(
                    name: "file", filename: $0, contentType: MediaType.forExtension(of: $0), contentLength: size)
            },
            contentRanges: filenames.indices.map { size * Int64($0)..<size * Int64($0 + 1) }, meter: meter)
    }
}
