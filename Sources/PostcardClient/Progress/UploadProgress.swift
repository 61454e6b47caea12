import PostcardForm

/// How far an upload is: as a whole, and part by part.
///
/// Within an attempt the numbers never fall. The bytes are those of the body, and "sent" means handed to the
/// connection: what the system still holds in its buffers counts as sent.
public struct UploadProgress: Sendable {
    /// Which attempt it is, from 1. A retry begins at 0 bytes again.
    public let attempt: Int

    /// The number of the body's bytes sent, the form's own framing included.
    public var bytesSent: Int64 { body.bytesSent }

    /// The number of bytes of the whole body; `nil` where a stream's length is not known.
    public let totalBytes: Int64?

    private let body: BodyProgress
    private let layouts: [PartLayout]

    /// How far one part is.
    public struct Part: Sendable, Hashable {
        /// The name of the form's field.
        public let name: String
        /// The name of the file, where it is one.
        public let filename: String?
        /// The number of bytes of its content that were sent.
        public let bytesSent: Int64
        /// The number of bytes of its content; `nil` for a stream of unknown length.
        public let totalBytes: Int64?
        /// Whether its first byte has had its turn.
        public let hasBegun: Bool

        /// The share that was sent, from 0 to 1; `nil` for a stream of unknown length.
        public var fraction: Double? {
            guard let totalBytes else { return nil }
            guard totalBytes > 0 else { return hasBegun ? 1 : 0 }
            return Double(bytesSent) / Double(totalBytes)
        }
    }

    init(attempt: Int, body: BodyProgress, of layout: FormLayout) {
        self.attempt = attempt
        self.body = body
        totalBytes = layout.contentLength
        layouts = layout.parts
    }

    /// The share of the body that was sent, from 0 to 1; `nil` where its length is not known.
    public var fraction: Double? {
        guard let totalBytes, totalBytes > 0 else { return nil }
        return Double(bytesSent) / Double(totalBytes)
    }

    /// Every part of the form, in order. It is worked out when asked for.
    public var parts: [Part] {
        layouts.enumerated().map { index, layout in
            let range = index < body.contentRanges.count ? body.contentRanges[index] : nil
            let hasBegun = range.map { $0.lowerBound <= bytesSent } ?? false
            return Part(
                name: layout.name, filename: layout.filename,
                bytesSent: range.map { min(max(bytesSent - $0.lowerBound, 0), $0.upperBound - $0.lowerBound) } ?? 0,
                totalBytes: layout.contentLength, hasBegun: hasBegun)
        }
    }
}
