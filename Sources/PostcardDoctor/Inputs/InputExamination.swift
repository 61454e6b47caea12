import PostcardForm

/// Reads a request in whatever it was recorded, chunk by chunk, and explains it.
///
/// ```swift
/// var examination = InputExamination()
/// while let chunk = try file.read(upToCount: 1 << 20) { try examination.read(chunk.bytes) }
/// let explanation = try examination.finish()
/// ```
///
/// It takes a raw HTTP/1.1 request, the output of `curl --trace` and `curl --trace-ascii`, and HAR 1.2 files; for
/// anything else the explanation says what it is.
public struct InputExamination: Sendable {
    private var input: RequestInput
    private var examination = RequestExamination()

    /// Begins with an input.
    ///
    /// - Parameters:
    ///   - entry: Which of the requests in a HAR file or a trace is meant, from 1; `nil` for the only upload of a HAR
    ///     file, and the first request with a body of a trace.
    ///   - format: What the input is; `nil` where its first bytes are to tell.
    public init(entry: Int? = nil, format: RequestInput.Format? = nil) {
        input = RequestInput(entry: entry, format: format)
    }

    /// What the input turned out to be; `nil` while it has too few bytes to tell.
    public var format: RequestInput.Format? { input.format }

    /// What the input cannot tell of the request, in sentences for whoever judges it.
    public var remarks: [String] { input.remarks }

    /// Reads the next bytes of the input.
    ///
    /// - Parameter chunk: Any number of bytes.
    /// - Throws: ``InputError`` where no request can be taken from the input.
    public mutating func read(_ chunk: RawSpan) throws(InputError) {
        try input.read(chunk) { examination.read($0) }
    }

    /// Ends the input and explains the request.
    ///
    /// - Throws: ``InputError`` where no request can be taken from the input.
    public mutating func finish() throws(InputError) -> Explanation {
        try input.finish { examination.read($0) }
        if let foreign = input.foreign { return Explanation(foreign, beginning: input.beginning) }
        if let missingBody = input.missingBody { return examination.finish(withoutBody: missingBody) }
        return examination.finish()
    }
}

extension Explanation {
    /// An input that is no request.
    fileprivate init(_ foreign: ForeignInput, beginning: [UInt8]) {
        var finding = Finding(.form(.malformedRequest), in: .head, at: 0, foreign.message, fix: foreign.fix)
        if !beginning.isEmpty { finding.excerpt = Excerpt(offset: 0, bytes: Array(beginning.prefix(Excerpt.reach))) }
        self.init(boundary: nil, parts: [], findings: [finding])
    }
}
