import PostcardForm
import PostcardFoundation

/// Reads a recorded request in any known format, chunk by chunk, and explains it.
///
/// ```swift
/// var examination = InputExamination()
/// while let chunk = try file.read(upToCount: 1 << 20) { try examination.read(chunk.bytes) }
/// let explanation = try examination.finish()
/// ```
///
/// The formats are raw HTTP/1.1 requests, the output of `curl --trace` and `curl --trace-ascii`, HAR 1.2 files,
/// requests that a browser copied as a curl command or a call of `fetch`, and events of AWS Lambda. Raw requests may
/// follow each other, as on a connection. For any other input, the explanation names the kind of input.
public struct InputExamination: Sendable {
    /// The formats of a recorded request.
    public enum Format: String, Sendable, Hashable {
        /// The raw bytes of the request.
        case request
        /// The output of `curl --trace`.
        case curlTrace = "curl-trace"
        /// The output of `curl --trace-ascii`, which keeps only printable ASCII.
        case curlTraceASCII = "curl-trace-ascii"
        /// A HAR 1.2 file.
        case httpArchive = "har"
        /// A curl command line, as browsers copy it.
        case curlCommand = "curl-command"
        /// A call of `fetch`, as browsers copy it.
        case fetchCall = "fetch"
        /// The event that AWS Lambda passes to a function for a request.
        case lambdaEvent = "lambda-event"
    }

    private var input: RequestInput
    private var examination = RequestExamination()

    /// Starts reading an input.
    ///
    /// - Parameters:
    ///   - entry: The number of the request, from 1. Defaults to the only upload of a HAR file, and otherwise to the
    ///     first request with a body.
    ///   - format: The format of the input. Defaults to the format that its first bytes suggest.
    public init(entry: Int? = nil, format: Format? = nil) {
        input = RequestInput(entry: entry, format: format)
    }

    /// The format of the input; `nil` until enough bytes were read to recognize it.
    public var format: Format? { input.format }

    /// Remarks on the parts of the request that the input lacks, in sentences.
    public var remarks: [String] { input.remarks }

    /// Reads the next bytes of the input.
    ///
    /// - Parameter chunk: Any number of bytes.
    /// - Throws: ``InputError`` if no request can be read from the input.
    public mutating func read(_ chunk: RawSpan) throws(InputError) {
        try input.read(chunk) { examination.read($0) }
    }

    /// Ends the input and explains the request.
    ///
    /// - Throws: ``InputError`` if no request can be read from the input.
    public mutating func finish() throws(InputError) -> Explanation {
        try input.finish { examination.read($0) }
        if let foreign = input.foreign { return Explanation(foreign, beginning: input.beginning) }
        if let missingBody = input.missingBody { return examination.finish(withoutBody: missingBody) }
        var explanation = examination.finish().leavingOut(input.uncertainCodes)
        explanation.scheme = input.scheme
        explanation.authority = input.authority
        return explanation
    }
}

extension Explanation {
    /// Removes the findings that a lossy recording may have caused: those with the given codes and without edits. A
    /// finding with edits is about bytes that were recorded.
    fileprivate func leavingOut(_ codes: Set<FormProblem.Code>) -> Explanation {
        guard !codes.isEmpty else { return self }
        func isCertain(_ finding: Finding) -> Bool {
            !codes.contains(finding.code) || finding.edits?.isEmpty == false
        }
        var explanation = self
        explanation.findings = findings.flatMap { finding in
            guard isCertain(finding) else { return finding.consequences.filter(isCertain) }
            var finding = finding
            finding.removeConsequences { !isCertain($0) }
            return [finding]
        }
        return explanation
    }

    /// The explanation of an input that is not a request.
    fileprivate init(_ foreign: ForeignInput, beginning: [UInt8]) {
        var finding = Finding(.malformedRequest, in: .head, at: 0, foreign.message, advice: foreign.advice)
        if !beginning.isEmpty { finding.excerpt = Excerpt(offset: 0, bytes: Array(beginning.prefix(Excerpt.reach))) }
        self.init(boundary: nil, parts: [], findings: [finding])
    }
}

/// Extracts a request from its recording, chunk by chunk, and returns the bytes that were sent.
///
/// Raw requests and curl traces may have any size. All other inputs are read whole, up to ``maximumArchiveBytes``.
package struct RequestInput: Sendable {
    private let entry: Int?
    private let knownFormat: InputExamination.Format?
    private let maximumArchiveBytes: Int
    private var state = State.start([])
    /// The first bytes of a raw input.
    private(set) var beginning: [UInt8] = []
    private var archiveRemarks: [String] = []
    /// The format of an input that is read whole.
    private var archiveFormat = InputExamination.Format.httpArchive
    /// The scheme of the request's URL; `nil` before the end of the input, or if the recording lacks it.
    private(set) var scheme: String?
    /// The host of the request's URL; `nil` before the end of the input, or if the recording has no URL.
    private(set) var authority: String?
    /// The message about the missing body; `nil` before the end of the input, or if the input has bytes of the body.
    private(set) var missingBody: String?

    private enum State {
        case start([UInt8])
        case request(RequestSequence)
        case trace(CurlTrace)
        case archive([UInt8])
        case failed(InputError)
    }

    /// The maximum size of an input that is read whole, in bytes: enough for the HAR file of a long browser session.
    package static let maximumArchiveBytes = 256 << 20

    /// The number of first bytes that distinguish the formats.
    private static let startLength = 128

    /// Starts reading an input. `entry` is the number of the request, from 1. It defaults to the only upload of a
    /// HAR file, and otherwise to the first request with a body. The format defaults to the format that the first
    /// bytes suggest.
    package init(entry: Int? = nil, format: InputExamination.Format? = nil) {
        self.init(entry: entry, format: format, maximumArchiveBytes: Self.maximumArchiveBytes)
    }

    init(entry: Int? = nil, format: InputExamination.Format? = nil, maximumArchiveBytes: Int) {
        self.entry = entry
        knownFormat = format
        self.maximumArchiveBytes = maximumArchiveBytes
    }

    /// The format of the input; `nil` until enough bytes were read to recognize it.
    package var format: InputExamination.Format? {
        switch state {
        case .start, .failed: nil
        case .request: .request
        case .trace(let trace): trace.isLossy ? .curlTraceASCII : .curlTrace
        case .archive: archiveFormat
        }
    }

    /// The kind of an input that is not a recorded request; `nil` for a recorded request.
    var foreign: ForeignInput? {
        guard case .request = state else { return nil }
        return ForeignInput(beginning)
    }

    /// Remarks on the parts of the request that the input lacks, in sentences.
    package var remarks: [String] {
        switch state {
        case .start, .failed: []
        case .request(let requests):
            Self.remarks(onChoiceFrom: "The input", requests.requestCount, requests.takenEntry)
        case .archive: archiveRemarks
        case .trace(let trace): Self.remarks(on: trace)
        }
    }

    /// The codes of findings that the recording may have caused by replacing or losing bytes.
    var uncertainCodes: Set<FormProblem.Code> {
        switch state {
        case .trace(let trace) where trace.isLossy: Self.codesOfReplacedBytes.union([.policyMismatch])
        // Browsers leave out the contents of files.
        case .archive where !archiveRemarks.isEmpty:
            Self.codesOfReplacedBytes.union([.emptyFile, .sizeOutsidePolicy])
        case .start, .request, .trace, .archive, .failed: []
        }
    }

    /// The codes of findings that replaced bytes cause: pictures are not recognized, and different names or contents
    /// become equal.
    private static let codesOfReplacedBytes: Set<FormProblem.Code> = [
        .contentContradictsType, .truncatedPicture, .textWithFilename, .contradictingFilenames, .repeatedFilename,
        .repeatedContent, .textNotUTF8, .fileDecodedAsText, .convertedLineBreaks,
    ]

    /// Reads the next bytes of the input, and passes the bytes of the request to `handOn`. Throws ``InputError`` if a
    /// HAR file is too large.
    package mutating func read(_ chunk: RawSpan, handOn: (RawSpan) -> Void) throws(InputError) {
        switch state {
        case .start(var start):
            chunk.withUnsafeBytes { start.append(contentsOf: $0) }
            state = .start(start)
            if start.count >= Self.startLength { try begin(handOn: handOn) }
        case .request(var requests):
            state = .start([])
            keepBeginning(chunk)
            requests.read(chunk, handOn: handOn)
            state = .request(requests)
        case .trace(var trace):
            state = .start([])
            var output: [UInt8] = []
            trace.read(chunk, into: &output)
            state = .trace(trace)
            let bytes = output[...]
            if !bytes.isEmpty { handOn(bytes.span.bytes) }
        case .archive(var bytes):
            state = .archive([])
            chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            guard bytes.count <= maximumArchiveBytes else {
                throw fail(.archiveTooLarge(maximumArchiveBytes))
            }
            state = .archive(bytes)
        case .failed(let error):
            throw error
        }
    }

    /// Ends the input, and passes the remaining bytes of the request to `handOn`. Throws ``InputError`` if no request
    /// can be read from the input.
    package mutating func finish(handOn: (RawSpan) -> Void) throws(InputError) {
        if case .start = state { try begin(handOn: handOn) }
        switch state {
        case .start:
            break
        case .request(var requests):
            requests.finish(handOn: handOn)
            state = .request(requests)
            if let entry, requests.takenEntry == nil, foreign == nil {
                throw fail(.noEntry(entry, of: requests.requestCount))
            }
        case .trace(var trace):
            var output: [UInt8] = []
            trace.finish(into: &output)
            state = .trace(trace)
            scheme = trace.isSecure ? "https" : nil
            if let entry, trace.takenEntry == nil { throw fail(.noEntry(entry, of: trace.requestCount)) }
            guard trace.takenEntry != nil else { throw fail(.noUpload(entries: 0)) }
            let bytes = output[...]
            handOn(bytes.span.bytes)
        case .archive(let bytes):
            let request = try chosenRequest(bytes)[...]
            handOn(request.span.bytes)
        case .failed(let error):
            throw error
        }
    }

    private mutating func chosenRequest(_ archive: [UInt8]) throws(InputError) -> [UInt8] {
        state = .archive([])
        do {
            var recording = try entry(of: archive).recording()
            if archiveFormat == .curlCommand || archiveFormat == .fetchCall {
                let hasFiles = recording.bytes.firstRange(of: "filename=".utf8) != nil
                if hasFiles { archiveRemarks.append(Self.leftOut) }
                if recording.missingBody != nil { recording.missingBody = Self.madeLater }
            }
            archiveRemarks += [recording.remark].compactMap { $0 }
            missingBody = recording.missingBody
            scheme = recording.origin.scheme
            authority = recording.origin.authority
            return recording.bytes
        } catch {
            throw fail(error)
        }
    }

    /// The request in an input that was read whole.
    private mutating func entry(of archive: [UInt8]) throws(InputError) -> HTTPArchive.Entry {
        switch archiveFormat {
        case .curlCommand: return try HTTPArchive.Entry(curlCommand: archive)
        case .fetchCall: return try HTTPArchive.Entry(fetchCall: archive)
        default:
            let file: HTTPArchive
            do {
                file = try HTTPArchive(archive)
            } catch {
                guard let event = LambdaEvent(archive) else { throw error }
                archiveFormat = .lambdaEvent
                archiveRemarks = [event.remark].compactMap { $0 }
                return event.entry
            }
            return try file.choose(entry).entry
        }
    }

    private static let leftOut =
        "Browsers leave out what files contain when they copy a request, so that is not checked. Offsets and sizes are "
        + "those of the copy."
    private static let madeLater =
        "The command has none of the body's bytes, which curl makes when it runs: run it with --trace request.txt, and "
        + "explain that file."

    private mutating func begin(handOn: (RawSpan) -> Void) throws(InputError) {
        guard case .start(let start) = state else { return }
        switch knownFormat ?? Self.format(of: start) {
        case .request: state = .request(RequestSequence(entry: entry))
        case .curlTrace, .curlTraceASCII: state = .trace(CurlTrace(entry: entry))
        case .httpArchive, .curlCommand, .fetchCall, .lambdaEvent:
            archiveFormat = knownFormat ?? Self.format(of: start)
            state = .archive([])
        }
        let bytes = start[...]
        try read(bytes.span.bytes, handOn: handOn)
    }

    private static func format(of start: [UInt8]) -> InputExamination.Format {
        let text = start.starts(with: [0xEF, 0xBB, 0xBF]) ? start[3...] : start[...]
        if CurlTrace.isTrace(text) { return .curlTrace }
        let first = text.first { !$0.isBlank && $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        if first == UInt8(ascii: "{") { return .httpArchive }
        let word = text.drop { $0 <= 0x20 || $0 == UInt8(ascii: "$") }
        if ["curl ", "curl.exe "].contains(where: { word.starts(with: $0.utf8) }) { return .curlCommand }
        return ["fetch(", "await fetch("].contains { word.starts(with: $0.utf8) } ? .fetchCall : .request
    }

    private mutating func keepBeginning(_ chunk: RawSpan) {
        let missing = ForeignInput.startLength - beginning.count
        guard missing > 0 else { return }
        chunk.extracting(first: missing).withUnsafeBytes { beginning.append(contentsOf: $0) }
    }

    private mutating func fail(_ error: InputError) -> InputError {
        state = .failed(error)
        return error
    }

    private static func remarks(on trace: CurlTrace) -> [String] {
        var remarks: [String] = []
        if trace.isLossy {
            remarks.append(
                "The trace was written by --trace-ascii, which replaces every byte that is not printable ASCII with "
                    + "a dot. Offsets and sizes are right, but those bytes are lost, and what depends on them, "
                    + "such as the types of pictures, is not checked. Record it with --trace to be certain.")
        }
        if trace.isDamaged {
            remarks.append(
                "Lines of the trace are missing or were changed, so bytes of the request are not certain.")
        }
        return remarks + Self.remarks(onChoiceFrom: "The trace", trace.requestCount, trace.takenEntry)
    }

    private static func remarks(onChoiceFrom input: String, _ count: Int, _ taken: Int?) -> [String] {
        guard count > 1, let taken else { return [] }
        return ["\(input) has \(count) requests; this is number \(taken). Choose another with --entry N."]
    }
}
