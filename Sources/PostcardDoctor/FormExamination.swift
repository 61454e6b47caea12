import Crypto
import PostcardForm

/// Reads the body of a form, chunk by chunk, and explains it.
///
/// ```swift
/// var examination = FormExamination(contentType: "multipart/form-data; boundary=XX")
/// examination.read(body.bytes)
/// for problem in examination.finish().problems { print(problem) }
/// ```
///
/// Of the content nothing is kept, so that a body may have any size; of its parts, 100,000 are described.
public struct FormExamination: Sendable {
    private var state: State
    private var boundary: String?
    private var parts: [Explanation.Part] = []
    private var warnings: [FormProblem] = []
    private var openPart: OpenPart?

    private enum State {
        case reading(FormParser)
        case refused(FormProblem)
    }

    fileprivate struct OpenPart {
        let header: PartHeader
        let offset: Int64
        var size: Int64 = 0
        var hash = SHA256()
    }

    /// Begins with a request's `Content-Type`.
    ///
    /// - Parameter contentType: The value of the header field.
    public init(contentType: String) {
        do {
            let parser = try FormParser(contentType: contentType, limits: Self.limits)
            boundary = parser.boundary
            state = .reading(parser)
        } catch {
            state = .refused(error)
        }
    }

    /// A form made of oddities must not fill the memory with what is said about them.
    private static let maximumWarnings = 1000

    /// Content of any size; all that is held keeps its limit.
    private static let limits: FormLimits = {
        var limits = FormLimits()
        limits.maximumBodyBytes = .max
        limits.maximumFileBytes = .max
        limits.maximumFieldBytes = .max
        limits.maximumPreambleBytes = .max
        limits.maximumEpilogueBytes = .max
        limits.maximumParts = 100_000
        return limits
    }()

    /// Reads the next chunk of the body.
    ///
    /// - Parameter chunk: Any number of bytes.
    public mutating func read(_ chunk: RawSpan) {
        guard case .reading(var parser) = state else { return }
        do {
            var position = 0
            while let event = try parser.nextEvent(in: chunk, at: &position) {
                take(event, of: chunk, parser: parser)
            }
            state = .reading(parser)
        } catch {
            state = .refused(error)
        }
    }

    /// Ends the body and explains it.
    public mutating func finish() -> Explanation {
        if case .reading(var parser) = state {
            do {
                try parser.finish()
            } catch {
                state = .refused(error)
            }
        }
        closePart()
        var problems = warnings
        if case .refused(let problem) = state { problems.insert(problem, at: 0) }
        return Explanation(boundary: boundary, parts: parts, findings: problems.map { Finding($0) })
    }

    private mutating func take(_ event: FormEvent, of chunk: RawSpan, parser: FormParser) {
        switch event {
        case .partBegan(let header):
            warnings += header.warnings.prefix(max(Self.maximumWarnings - warnings.count, 0))
            openPart = OpenPart(header: header, offset: parser.offset)
        case .bytes(.chunk(let range)):
            chunk.extracting(range).withUnsafeBytes { openPart?.take($0) }
        case .bytes(.held(let range)):
            parser.heldBytes[range].withUnsafeBytes { openPart?.take($0) }
        case .partEnded:
            closePart()
        }
    }

    private mutating func closePart() {
        guard let part = openPart else { return }
        openPart = nil
        parts.append(part.explained())
    }
}

extension FormExamination.OpenPart {
    fileprivate mutating func take(_ bytes: UnsafeRawBufferPointer) {
        size += Int64(bytes.count)
        hash.update(bufferPointer: bytes)
    }

    fileprivate func explained() -> Explanation.Part {
        Explanation.Part(
            name: header.name, filename: header.filename, contentType: header.contentType, offset: offset,
            size: size, sha256: hash.finalize().hexadecimal, headers: header.fields)
    }
}
