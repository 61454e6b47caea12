import Crypto
public import PostcardForm
import PostcardWire
import Synchronization

/// The body of a request: the bytes of a form, read no faster than the client's rate limit allows.
///
/// A transport makes a reader of the body, sends the bytes, and reports how many it has sent. Progress for each part
/// and digests are computed outside the transport. Copies of a request share the body, because the body never changes.
public final class UploadBody: Sendable {
    /// The layout of the form, or of the slice of the form that is sent.
    let layout: FormLayout
    let rateLimit: RateLimit?
    let digests: ContentDigests?

    /// The length and the ranges of the parts, as far as a reader has found them; `nil` if the length is known.
    private let findings: BodyFindings?

    /// Makes a body.
    ///
    /// - Parameters:
    ///   - layout: The layout of the form.
    ///   - rateLimit: The maximum speed of reading the body. Defaults to `nil`, no limit.
    public convenience init(_ layout: FormLayout, rateLimit: RateLimit? = nil) {
        self.init(layout, rateLimit: rateLimit, digests: nil)
    }

    init(_ layout: FormLayout, rateLimit: RateLimit?, digests: ContentDigests?) {
        self.layout = layout
        self.rateLimit = rateLimit
        self.digests = digests
        findings = layout.contentLength == nil ? BodyFindings() : nil
    }

    /// The value of the request's `Content-Type` header field.
    public var contentType: String { layout.contentType }

    /// The number of bytes of the body; `nil` if the form has a stream of unknown length.
    public var contentLength: Int64? { layout.contentLength }

    /// The parts of the form, in order.
    public var parts: [PartLayout] { layout.parts }

    /// Whether the body can be read more than once. It is `false` if the form has a stream that can be read only once.
    public var isReplayable: Bool { layout.isReplayable }

    /// Whether the next bytes are only copied from files or memory, without waiting and without computing digests.
    package var isOnlyCopied: Bool { rateLimit == nil && digests == nil && !layout.hasStreams }

    /// Makes a reader that begins at the first byte.
    ///
    /// - Throws: `FormError` if a file cannot be read or has changed, or if a stream cannot be read again.
    public func reader() throws(FormError) -> UploadBodyReader {
        try UploadBodyReader(self, findings)
    }

    /// A range of the body's bytes as a separate body.
    ///
    /// - Parameters:
    ///   - range: The range of the bytes in the form, whose length must be known.
    ///   - contentType: The value of `Content-Type`. Defaults to that of the form.
    func slice(_ range: Range<Int64>, contentType: String? = nil) -> UploadBody {
        // A slice without bytes does not wait for the rate limit, and does not restart the digests.
        UploadBody(
            layout.slice(range, contentType: contentType), rateLimit: range.isEmpty ? nil : rateLimit,
            digests: range.isEmpty ? nil : digests)
    }

    /// Reads bytes without sending them and without a rate limit, to digest bytes that an earlier process has sent.
    ///
    /// - Parameter count: The number of bytes to read from the start. Defaults to `nil`, all bytes.
    @concurrent func digest(first count: Int64? = nil) async throws {
        guard digests != nil else { return }
        let body = count.map { slice(0..<$0) } ?? self
        try await UploadBody(body.layout, rateLimit: nil, digests: body.digests).readAll { _ in }
    }

    /// The SHA-256 digest of the whole body. The bytes are read without a rate limit.
    ///
    /// - Throws: `FormError` if a file cannot be read or has changed; `CancellationError`.
    @concurrent func digestOfAll() async throws -> BodyDigest? {
        var hash = SHA256()
        try await UploadBody(layout).readAll { hash.update(bufferPointer: $0) }
        return BodyDigest(hash.finalize())
    }

    /// Reads all bytes, and passes each chunk to a closure.
    package func readAll(_ use: (UnsafeRawBufferPointer) -> Void) async throws {
        let reader = try reader()
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        while try await reader.prepare() {
            try Task.checkCancellation()
            try buffer.withUnsafeMutableBytes { bytes in
                let count = try reader.read(into: bytes)
                use(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            }
        }
    }

    /// The number of bytes of the body, if it is known so far: the length of a stream is known once it was read.
    var knownLength: Int64? { contentLength ?? findings?.length }

    /// The ranges of the parts' contents in the whole form, for the parts whose ranges are known so far.
    var contentRanges: [Range<Int64>] { layout.contentRanges ?? findings?.contentRanges ?? [] }
}

/// The length and the ranges of the parts that the latest reader has found in a body of unknown length.
final class BodyFindings: Sendable {
    private let state = Mutex((contentRanges: [Range<Int64>](), length: Int64?.none))

    var contentRanges: [Range<Int64>] { state.withLock { $0.contentRanges } }
    var length: Int64? { state.withLock { $0.length } }

    func note(_ contentRanges: [Range<Int64>], length: Int64?) {
        state.withLock { $0 = (contentRanges, length) }
    }
}

/// Reads the bytes of a request's body in order.
///
/// ```swift
/// while try await reader.prepare() {
///     let count = try reader.read(into: buffer)
///     // send the first `count` bytes of `buffer`
/// }
/// ```
///
/// Only one task at a time may use a reader. A reader holds at most one open file and one chunk of a stream.
public final class UploadBodyReader {
    private let body: UploadBody
    private let reader: FormReader
    private let findings: BodyFindings?

    /// The number of bytes that the rate limit allows to be read now.
    private var allowance = 0

    /// The error thrown by the wait for the rate limit. Every later read throws the same error.
    private var failure: (any Error)?

    /// The reader's number in ``ContentDigests``.
    private let number: Int

    /// The index of the part that is hashed next.
    private var partIndex = 0

    init(_ body: UploadBody, _ findings: BodyFindings?) throws(FormError) {
        reader = try body.layout.reader()
        self.body = body
        self.findings = findings
        number = body.digests?.beginReader(at: body.layout.start) ?? 0
        findings?.note([], length: nil)
    }

    deinit {
        if allowance > 0 { body.rateLimit?.giveBack(allowance) }
    }

    /// The offset in the body of the next byte to read.
    public var position: Int64 { reader.position }

    /// Whether the last byte has been read. For a stream, the value is `false` until waiting for more bytes has found
    /// the end.
    public var isAtEnd: Bool { reader.isAtEnd }

    /// Whether the reader must wait for the next bytes, because a stream has none ready or the rate limit allows none.
    /// ``read(into:)`` then returns 0.
    public var needsPreparation: Bool {
        reader.needsPreparation || (body.rateLimit != nil && allowance == 0 && !reader.isAtEnd)
    }

    /// Waits until there are bytes to read.
    ///
    /// - Returns: `false` at the end of the body.
    /// - Throws: `FormError`; a stream's own error unchanged; `CancellationError`. Later calls throw the same error.
    public func prepare() async throws -> Bool {
        if let failure { throw failure }
        guard try await reader.prepare() else { return false }
        guard let rateLimit = body.rateLimit, allowance == 0 else { return true }
        do {
            allowance = try await rateLimit.allowance()
            return true
        } catch {
            failure = error
            throw error
        }
    }

    /// Fills a buffer with the bytes that are ready.
    ///
    /// - Parameter buffer: The buffer that receives the bytes.
    /// - Returns: The number of bytes; 0 at the end of the body, and while ``needsPreparation`` is `true`.
    /// - Throws: `FormError` if a file is gone, cannot be read, or has changed. Later calls throw the same error.
    public func read(into buffer: UnsafeMutableRawBufferPointer) throws(FormError) -> Int {
        let count: Int
        if body.rateLimit == nil {
            count = try reader.read(into: buffer)
        } else {
            count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(allowance)))
            allowance -= count
        }
        if count > 0, body.digests != nil || findings != nil {
            note(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        return count
    }

    private func note(_ bytes: UnsafeRawBufferPointer) {
        let ranges = reader.contentRanges
        findings?.note(ranges, length: reader.isAtEnd ? position : nil)
        guard let digests = body.digests else { return }
        let start = position - Int64(bytes.count)
        while partIndex < ranges.count {
            let range = ranges[partIndex]
            let content = max(range.lowerBound, start)..<max(min(range.upperBound, position), range.lowerBound, start)
            if !content.isEmpty {
                let begin = Int(clamping: content.lowerBound - start)
                let end = Int(clamping: content.upperBound - start)
                digests.digest(
                    UnsafeRawBufferPointer(rebasing: bytes[begin..<end]), ofPart: partIndex,
                    at: content.lowerBound - range.lowerBound, from: number)
            }
            // The next bytes may still belong to this part: a stream's content ends only where the next part begins.
            guard range.upperBound < position else { break }
            partIndex += 1
        }
        if reader.isAtEnd, body.layout.reachesEnd { digests.endReader(number) }
    }
}
