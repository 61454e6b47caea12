import PostcardForm

/// How far an upload is: as a whole, and part by part.
///
/// Within an attempt the numbers never fall. The bytes are those of the body, and "sent" means handed to the
/// connection: what the system still holds in its buffers counts as sent.
public struct UploadProgress: Sendable {
    /// Which attempt it is, from 1. A retry begins at 0 bytes again, unless it goes on where the one before was cut.
    public let attempt: Int

    /// The number of the body's bytes sent, the form's own framing included.
    public var bytesSent: Int64 { body.bytesSent }

    /// The number of bytes of the whole body; `nil` where it holds a stream whose length is not known beforehand
    /// and has not come to its end.
    public let totalBytes: Int64?

    /// How fast it went during the last three seconds; `nil` at the beginning, when that cannot be told.
    public let bytesPerSecond: Double?

    /// How long the rest takes at that speed; `nil` where the speed or the length of the body is not known, and where it
    /// would be more than a year. The time that the server takes to answer comes on top.
    public let timeRemaining: Duration?

    private let body: BodyProgress
    private let layout: FormLayout

    /// How far one part is.
    public struct Part: Sendable, Hashable {
        /// The name of the form's field.
        public let name: String
        /// The name of the file, where it is one.
        public let filename: String?
        /// The number of bytes of its content that were sent.
        public let bytesSent: Int64
        /// The number of bytes of its content; `nil` for a stream of unknown length that has not come to its end.
        public let totalBytes: Int64?
        /// Whether its first byte has had its turn.
        public let hasBegun: Bool

        /// The share that was sent, from 0 to 1; `nil` where ``totalBytes`` is.
        public var fraction: Double? {
            guard let totalBytes else { return nil }
            guard totalBytes > 0 else { return hasBegun ? 1 : 0 }
            return Double(bytesSent) / Double(totalBytes)
        }
    }

    init(attempt: Int, body: BodyProgress, of layout: FormLayout, meter: SpeedMeter = SpeedMeter()) {
        self.attempt = attempt
        self.body = body
        self.layout = layout
        totalBytes = layout.contentLength ?? (body.isWhole ? body.bytesSent : nil)
        bytesPerSecond = meter.bytesPerSecond
        timeRemaining = totalBytes.flatMap { meter.timeRemaining(for: max($0 - body.bytesSent, 0)) }
    }

    /// The share of the body that was sent, from 0 to 1; `nil` where its length is not known.
    public var fraction: Double? {
        guard let totalBytes, totalBytes > 0 else { return nil }
        return Double(bytesSent) / Double(totalBytes)
    }

    /// Every part of the form, in order. It is worked out when asked for.
    public var parts: [Part] {
        layout.parts.enumerated().map { index, part in
            let range = index < body.contentRanges.count ? body.contentRanges[index] : nil
            let hasBegun = range.map { $0.lowerBound <= bytesSent } ?? false
            let hasEnded = body.hasEnded(index, in: layout)
            return Part(
                name: part.name, filename: part.filename,
                bytesSent: range.map { min(max(bytesSent - $0.lowerBound, 0), $0.upperBound - $0.lowerBound) } ?? 0,
                totalBytes: part.contentLength ?? (hasEnded ? range.map { $0.upperBound - $0.lowerBound } : nil),
                hasBegun: hasBegun)
        }
    }
}
