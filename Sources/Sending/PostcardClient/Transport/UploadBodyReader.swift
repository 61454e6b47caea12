public import PostcardForm

/// Reads the bytes of a request's body in order.
///
/// ```swift
/// while try await reader.prepare() {
///     let count = try reader.read(into: buffer)
///     // send the first `count` bytes of `buffer`
/// }
/// ```
///
/// It belongs to one task at a time, and holds at most one open file and one chunk of a stream.
public final class UploadBodyReader {
    private let body: UploadBody
    private let reader: FormReader
    private let findings: BodyFindings?

    /// How many bytes the rate limit allows to be read.
    private var allowance = 0

    /// Why the rate limit gave no allowance; every later read fails.
    private var failure: (any Error)?

    /// The number by which the digests know this reader.
    private let number: Int

    /// The part whose content is digested next.
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

    /// The offset of the next byte.
    public var position: Int64 { reader.position }

    /// Whether the last byte has been read, as far as that is known: the end of a stream is known only after waiting
    /// for it.
    public var isAtEnd: Bool { reader.isAtEnd }

    /// Whether the next bytes must be waited for: a stream has none ready, or the rate limit allows none yet.
    /// ``read(into:)`` would give 0.
    public var needsPreparation: Bool {
        reader.needsPreparation || (body.rateLimit != nil && allowance == 0 && !reader.isAtEnd)
    }

    /// Waits until there are bytes to read.
    ///
    /// - Returns: `false` at the end of the body.
    /// - Throws: `FormError`; a stream's own error unchanged; `CancellationError`. From then on the same at every call.
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
    /// - Throws: `FormError` if a file is gone, cannot be read, or has changed; every later call throws the same error.
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
            // The next bytes may continue the content: that of a stream ends where the next part begins.
            guard range.upperBound < position else { break }
            partIndex += 1
        }
        if reader.isAtEnd, body.layout.reachesEnd { digests.endReader(number) }
    }
}
