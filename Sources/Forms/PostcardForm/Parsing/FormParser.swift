/// Reads the body of a form of type `multipart/form-data` (RFC 7578, RFC 2046 §5.1), chunk by chunk.
///
/// The parser does no I/O. It accepts chunks of any size and returns events, which do not depend on the chunks. The
/// bytes of a part's content are borrowed from the chunk, so nothing is copied.
///
/// ```swift
/// var parser = try FormParser(contentType: request.headers[.contentType] ?? "")
/// for try await chunk in body {
///     var position = 0
///     while let event = try parser.nextEvent(in: chunk.bytes, at: &position) {
///         switch event {
///         case .partBegan(let header): print(header.name)
///         case .bytes(.chunk(let range)): write(chunk[range])
///         case .bytes(.held(let range)): write(parser.heldBytes[range])
///         case .partEnded: close()
///         }
///     }
/// }
/// try parser.finish()
/// ```
///
/// A form is complete once ``finish()`` returns without an error. Until then, a part may belong to a broken form. After
/// an error, every further call throws the same error.
///
/// **Delimiters.** CRLF, two dashes and the boundary are a delimiter if two dashes, a space, a tab, CR or LF follow.
/// Only spaces and tabs may then come before the next CRLF. If any other byte follows, the bytes are content.
public struct FormParser: Sendable {
    /// The number of bytes of the body read so far, which is the offset of the next byte.
    public private(set) var offset: Int64

    /// The offset at which the body begins: 0, except for a body inside a part.
    let start: Int64
    /// The name of all parts if they are the files of one field; otherwise `nil`.
    let fieldName: String?
    let limits: FormLimits
    let delimiter: Delimiter
    var state: State

    /// The problem that has ended the parsing. Every call throws it again.
    private var problem: FormProblem?

    // The data of the state `header`. It is kept outside of the state, because retaining and releasing memory at every
    // step makes forms of tiny parts a third slower.
    var block = HeaderBlock(offset: 0, padding: 0)

    var partCount = 0

    /// The part whose content is being read.
    var part: OpenPart?

    struct OpenPart {
        let index: Int
        let isFile: Bool
        var length: Int64 = 0
    }

    /// The section of the body that is read next.
    enum State {
        /// The bytes before the first delimiter, or a part's content. `matched` is the number of bytes that may begin a
        /// delimiter. The first `imagined` of these bytes are a line break that is not content: that of the header
        /// before the content, or one that the parser imagines at the body's start.
        case content(matched: Int, imagined: Int)
        /// The bytes after a boundary, which show whether it is a delimiter. `imagined` is as in `content`.
        case delimiterEnd(DelimiterEnd, imagined: Int)
        case header
        /// The line of the close delimiter, after its dashes and `blanks` blanks.
        case closed(blanks: Int64, sawCarriageReturn: Bool)
        /// The bytes after the close delimiter's line.
        case epilogue(length: Int64)
        case failed
    }

    /// The bytes that were read after the boundary.
    enum DelimiterEnd {
        case nothing
        case dash
        case padding(length: Int)
        case carriageReturn(padding: Int)
    }

    /// Makes a parser for the body of a request.
    ///
    /// - Parameters:
    ///   - contentType: The value of the request's `Content-Type` header field.
    ///   - limits: The limits to enforce.
    /// - Throws: ``FormProblem`` if the value is not `multipart/form-data` with one boundary of 1 to 70 characters
    ///   (RFC 2046 §5.1.1).
    public init(contentType: String, limits: FormLimits = FormLimits()) throws(FormProblem) {
        self.init(boundary: try FormContentType(contentType).boundary, checkedLimits: limits)
    }

    /// Makes a parser for a body whose boundary is known.
    ///
    /// - Parameters:
    ///   - boundary: The boundary, without the dashes before it in the body.
    ///   - limits: The limits to enforce.
    /// - Throws: ``FormProblem`` with the code ``FormProblem/Code/invalidBoundary``.
    public init(boundary: String, limits: FormLimits = FormLimits()) throws(FormProblem) {
        if let reason = Boundary.reasonToRejectReceived(boundary.utf8) { throw .invalidBoundary(reason) }
        self.init(boundary: boundary, checkedLimits: limits)
    }

    /// Makes a parser for a part of type `multipart/mixed`. Old clients send several files of one field in such a part
    /// (RFC 7578 §4.3). The files get the field's name.
    ///
    /// - Parameters:
    ///   - part: The header of the part whose content the new parser reads.
    ///   - start: The offset of the part's content, counted from the start of the body like all offsets.
    ///   - limits: The limits to enforce.
    /// - Returns: `nil` if the part has no such files.
    /// - Throws: ``FormProblem`` if the part's Content-Type has no valid boundary.
    public init?(filesIn part: PartHeader, at start: Int64, limits: FormLimits = FormLimits()) throws(FormProblem) {
        guard part.holdsFiles, let contentType = part.contentType else { return nil }
        let content: FormContentType
        do {
            content = try FormContentType(contentType, mediaType: "multipart/mixed")
        } catch {
            throw FormProblem(error.code, at: part.offset, part: part.index, error.message, advice: error.advice)
        }
        self.init(boundary: content.boundary, checkedLimits: limits, start: start, fieldName: part.name)
    }

    private init(
        boundary: String, checkedLimits limits: FormLimits, start: Int64 = 0, fieldName: String? = nil
    ) {
        self.limits = limits
        self.start = start
        self.fieldName = fieldName
        offset = start
        delimiter = Delimiter(boundary: boundary)
        state = .content(matched: 2, imagined: 2)
    }

    /// The boundary that separates the parts.
    public var boundary: String { delimiter.boundary }

    /// The bytes that the ranges of ``FormBytes/held(_:)`` refer to.
    public var heldBytes: [UInt8] { delimiter.heldBytes }

    /// The next event in a chunk of the body.
    ///
    /// - Parameters:
    ///   - chunk: The next bytes of the body, any number of them.
    ///   - position: The number of bytes read from the chunk: 0 for a new chunk; the parser advances it.
    /// - Returns: `nil` if the whole chunk has been read. Pass the next chunk with position 0.
    /// - Throws: ``FormProblem`` if the body is malformed or exceeds a limit.
    public mutating func nextEvent(in chunk: RawSpan, at position: inout Int) throws(FormProblem) -> FormEvent? {
        precondition(position >= 0 && position <= chunk.byteCount, "The position is outside the chunk")
        return try chunk.withUnsafeBytes { bytes throws(FormProblem) in
            // Exceeding the limit is an error only after all allowed bytes were read.
            let allowed = limits.maximumBodyBytes - (offset - start)
            let isWhole = Int64(bytes.count - position) <= allowed
            let end = isWhole ? bytes.count : position + Int(clamping: max(allowed, 0))
            if let event = try nextEvent(in: bytes, at: &position, end: end) { return event }
            guard isWhole else { throw failTooLarge() }
            return nil
        }
    }

    /// Fails because the body is too large. Not inlined, so that the closure above is inlined, which is a tenth faster.
    @inline(never)
    mutating func failTooLarge() -> FormProblem {
        let index = if case .header = state { Int?(partCount) } else { part?.index }
        return fail(limits.bodyTooLarge(from: start, part: index))
    }

    /// Ends the body.
    ///
    /// - Throws: ``FormProblem`` if the body is incomplete.
    public mutating func finish() throws(FormProblem) {
        switch state {
        case .closed, .epilogue: return
        case .failed: if let problem { throw problem }
        case .content where partCount == 0:
            throw fail(
                FormProblem(
                    .delimiterNotFound, at: start,
                    offset == start
                        ? "The body is empty."
                        : "The Content-Type's boundary begins no line of the body's \(offset - start) bytes."))
        case .content(matched: 2, imagined: 0):
            // The content ends with a line break, as before a delimiter.
            throw fail(
                FormProblem(
                    .missingCloseDelimiter, at: offset, part: partCount - 1,
                    "The body ends after the content of part \(partCount - 1), without a close delimiter."))
        case .content: throw fail(truncated(in: "the content of part \(partCount - 1)", part: partCount - 1))
        case .delimiterEnd: throw fail(truncated(in: "a delimiter", part: part?.index))
        case .header: throw fail(truncated(in: "the header of part \(partCount)", part: partCount))
        }
    }

    func truncated(in place: String, part partIndex: Int?) -> FormProblem {
        FormProblem(.truncated, at: offset, part: partIndex, "The body ends after \(offset) bytes, inside \(place).")
    }

    mutating func nextEvent(
        in bytes: UnsafeRawBufferPointer, at position: inout Int, end: Int
    ) throws(FormProblem) -> FormEvent? {
        while position < end {
            switch state {
            case .content(let matched, let imagined):
                let found =
                    matched > 0
                    ? try resume(matched, imagined: imagined, in: bytes, at: &position, end: end)
                    : try search(in: bytes, at: &position, end: end)
                if let found { return .bytes(found) }
            case .delimiterEnd(let seen, let imagined):
                let event = try readDelimiterEnd(seen, imagined: imagined, in: bytes, at: &position, end: end)
                if let event { return event }
            case .header:
                if let header = try read(in: bytes, at: &position, end: end) { return .partBegan(header) }
            case .closed(let blanks, let sawCarriageReturn):
                try readCloseLine(blanks: blanks, sawCarriageReturn: sawCarriageReturn, in: bytes, at: &position)
            case .epilogue(let length):
                try passEpilogue(length: length, at: &position, end: end)
            case .failed:
                if let problem { throw problem }
                return nil
            }
        }
        if let problem { throw problem }
        return nil
    }

    mutating func advance(_ position: inout Int, by count: Int) {
        position += count
        offset += Int64(count)
    }

    mutating func fail(_ problem: FormProblem) -> FormProblem {
        state = .failed
        self.problem = problem
        return problem
    }
}

// MARK: - Content

extension FormParser {
    /// Continues a match that began in an earlier chunk. Returns bytes that turn out to be content.
    mutating func resume(
        _ matched: Int, imagined: Int, in bytes: UnsafeRawBufferPointer, at position: inout Int, end: Int
    ) throws(FormProblem) -> FormBytes? {
        let length = delimiter.matchLength(from: matched, in: bytes, at: position, end: end)
        advance(&position, by: length)
        let total = matched + length
        if total == delimiter.count {
            state = .delimiterEnd(.nothing, imagined: imagined)
        } else if position == end {
            state = .content(matched: total, imagined: imagined)
        } else {
            state = .content(matched: 0, imagined: 0)
            return try content(.held(imagined..<total), end: offset)
        }
        return nil
    }

    /// Searches the next delimiter. Returns the content before the delimiter.
    mutating func search(
        in bytes: UnsafeRawBufferPointer, at position: inout Int, end: Int
    ) throws(FormProblem) -> FormBytes? {
        let start = position
        let contentEnd: Int
        if let found = delimiter.firstIndex(in: bytes, from: start, end: end) {
            contentEnd = found
            state = .delimiterEnd(.nothing, imagined: 0)
            advance(&position, by: found + delimiter.count - start)
        } else {
            let matched = delimiter.prefixLength(atEndOf: bytes, from: start, end: end)
            contentEnd = end - matched
            state = .content(matched: matched, imagined: 0)
            advance(&position, by: end - start)
        }
        return try content(.chunk(start..<contentEnd), end: offset - Int64(position - contentEnd))
    }

    /// Counts bytes of the content or the preamble, and checks the limits. Returns the bytes of the content.
    mutating func content(_ found: FormBytes, end: Int64) throws(FormProblem) -> FormBytes? {
        guard found.count > 0 else { return nil }
        guard var part else {
            if end - start > limits.maximumPreambleBytes { throw fail(limits.preambleTooLarge(from: start)) }
            return nil
        }
        let maximum = part.isFile ? limits.maximumFileBytes : limits.maximumFieldBytes
        let allowed = maximum - part.length
        let excess = Int64(found.count) - max(allowed, 0)
        if excess > 0 {
            let problem = fail(
                limits.contentTooLarge(isFile: part.isFile, at: end - excess, part: part.index))
            let rest = found.prefix(found.count - Int(clamping: excess))
            if rest.count == 0 { throw problem }
            return rest
        }
        part.length += Int64(found.count)
        self.part = part
        return found
    }
}

// MARK: - Headers

extension FormParser {
    /// Reads more of a part's header. Returns the header once it is complete.
    mutating func read(
        in bytes: UnsafeRawBufferPointer, at position: inout Int, end: Int
    ) throws(FormProblem) -> PartHeader? {
        do {
            let count = try block.append(bytes[position..<end], limits: limits, partIndex: partCount)
            advance(&position, by: count)
            guard block.isComplete else { return nil }
            let header = try PartHeader(&block, index: partCount, fieldName: fieldName)
            part = OpenPart(index: partCount, isFile: header.isFile || header.holdsFiles)
            partCount += 1
            state = .content(matched: 2, imagined: 2)
            return header
        } catch {
            throw fail(error)
        }
    }
}
