import PostcardForm

/// Reads a raw HTTP/1.1 request, head and body as they were sent, chunk by chunk, and explains its form.
///
/// ```swift
/// var examination = RequestExamination()
/// while let chunk = try file.read(upToCount: 1 << 20) { examination.read(chunk.bytes) }
/// let explanation = examination.finish()
/// ```
///
/// The bytes behind the head are the body as its Content-Length or its chunks (RFC 9112 §6) say, and offsets are
/// counted from its start, with the chunks' own lines left out.
public struct RequestExamination: Sendable {
    private var state = State.head([])

    private enum State {
        case head([UInt8])
        case body(FormExamination, Framing)
        case refused(FormProblem)
    }

    /// How the body's end is told.
    fileprivate enum Framing {
        case end(received: Int64, contentLength: Int64?)
        case chunks(ChunkedBody)
    }

    /// As much as common servers take.
    private static let maximumHeadBytes = 64 << 10

    /// Begins an examination.
    public init() {}

    /// Reads the next bytes of the request.
    ///
    /// - Parameter chunk: Any number of bytes.
    public mutating func read(_ chunk: RawSpan) {
        switch state {
        case .refused:
            break
        case .body(let form, let framing):
            readBody(chunk, form, framing)
        case .head(var head):
            let known = head.count
            // The state must not hold the bytes too, or they would be copied with every read.
            state = .head([])
            chunk.withUnsafeBytes { head.append(contentsOf: $0.prefix(Self.maximumHeadBytes - known)) }
            guard let end = RequestHead.end(in: head, from: known) else {
                state = head.count < Self.maximumHeadBytes ? .head(head) : .refused(.headTooLarge)
                return
            }
            begin(Array(head[..<end]))
            if case .body(let form, let framing) = state {
                readBody(chunk.extracting((end - known)...), form, framing)
            }
        }
    }

    /// Ends the request and explains it.
    public mutating func finish() -> Explanation {
        switch state {
        case .head:
            return Explanation(boundary: nil, parts: [], findings: [Finding(.headWithoutEnd, in: .head)])
        case .refused(let problem):
            return Explanation(boundary: nil, parts: [], findings: [Finding(problem, in: .head)])
        case .body(var form, let framing):
            let explanation = form.finish()
            guard let cause = framing.problem else { return explanation }
            let errors = explanation.findings.prefix { $0.severity == .error }
            let found = [Finding(cause)]
            let findings =
                cause.severity == .error
                ? found + explanation.findings : errors + found + explanation.findings.dropFirst(errors.count)
            return Explanation(boundary: explanation.boundary, parts: explanation.parts, findings: findings)
        }
    }

    /// Reads the head, and says with it what the body is.
    private mutating func begin(_ bytes: [UInt8]) {
        do {
            let head = try RequestHead(bytes)
            let framing: Framing =
                head.isChunked
                ? .chunks(ChunkedBody()) : .end(received: 0, contentLength: head.contentLength)
            state = .body(FormExamination(contentType: head.contentType), framing)
        } catch {
            state = .refused(error)
        }
    }

    private mutating func readBody(_ chunk: RawSpan, _ form: FormExamination, _ framing: Framing) {
        var form = form
        switch framing {
        case .end(let received, let contentLength):
            let rest = (contentLength ?? .max) - min(received, contentLength ?? .max)
            form.read(chunk.extracting(first: Int(min(Int64(chunk.byteCount), rest))))
            let total = received + Int64(chunk.byteCount)
            state = .body(form, .end(received: total, contentLength: contentLength))
        case .chunks(var body):
            body.read(chunk) { form.read($0) }
            state = .body(form, .chunks(body))
        }
    }
}

extension RequestExamination.Framing {
    /// What is wrong with the framing, now that the request has ended.
    fileprivate var problem: FormProblem? {
        switch self {
        case .chunks(let body):
            return body.problem
        case .end(let received, let contentLength):
            guard let contentLength else { return received > 0 ? .missingLength : nil }
            guard received != contentLength else { return nil }
            let difference =
                received > contentLength
                ? "\(received - contentLength) more" : "\(contentLength - received) fewer"
            return FormProblem(
                .contentLengthMismatch, at: min(received, contentLength),
                "The Content-Length is \(contentLength) and \(received) bytes follow the head: \(difference).",
                fix: "Let the library that sends the body count it, or count its bytes, not its characters.")
        }
    }
}

extension FormProblem {
    fileprivate static var missingLength: FormProblem {
        FormProblem(
            .missingLength, at: 0,
            "The head has neither a Content-Length nor a Transfer-Encoding: servers read no body.",
            fix: "Let the library that sends the body say how long it is.")
    }

    fileprivate static var headTooLarge: FormProblem {
        FormProblem(
            .malformedRequest, at: 0, "The input has no blank line in its first 64 KiB, where a request's head ends.",
            fix: "Give the request as it was sent, or the body alone and its Content-Type with --content-type.")
    }

    fileprivate static var headWithoutEnd: FormProblem {
        FormProblem(
            .malformedRequest, at: 0, "The input is no HTTP request: no blank line ends its head.",
            fix: "Give the request as it was sent, or the body alone and its Content-Type with --content-type.")
    }
}
