public import PostcardFoundation

/// The parts of a form, one by one, while its body is received.
///
/// ```swift
/// for try await part in try FormParts(of: body, contentType: contentType) {
///     guard part.header.isFile else { continue }
///     for try await piece in part { try file.write(piece) }
/// }
/// ```
///
/// Each part is itself a sequence of the pieces of its content. Nothing is read ahead: each piece requests the next
/// chunk of the body, so a slow reader slows the sender down. Moving to the next part skips the rest of the current
/// part. The loop ends when the form is complete, and throws if the form is broken. Until the loop ends, a part may
/// belong to a broken form.
public struct FormParts<Body: AsyncSequence>: AsyncSequence where Body.Element: FormChunk {
    private let body: Body
    private let parser: CheckedFormParser

    /// Makes the sequence. Nothing is read before the loop begins.
    ///
    /// - Parameters:
    ///   - body: The body of a request, in chunks of any size. It is read once.
    ///   - contentType: The value of the request's `Content-Type` header field.
    ///   - limits: The limits to enforce.
    ///   - rules: The allowed fields and files. Defaults to any. Each broken rule is thrown as early as possible.
    /// - Throws: ``FormProblem`` if the Content-Type is not that of a form.
    public init(
        of body: Body, contentType: String, limits: FormLimits = FormLimits(), rules: FormRules? = nil
    ) throws(FormProblem) {
        self.body = body
        parser = try CheckedFormParser(contentType: contentType, limits: limits, rules: rules)
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(reader: FormPartReader(body.makeAsyncIterator(), parser))
    }

    /// An iterator over the parts. It belongs to one task.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: FormPartReader<Body>

        /// The next part; `nil` after the last part of a complete form.
        ///
        /// - Throws: ``FormProblem`` if the form is broken or exceeds a limit; errors of the body, unchanged.
        public mutating func next() async throws -> FormPartContent<Body>? {
            guard let header = try await reader.nextHeader() else { return nil }
            return FormPartContent(header: header, offset: reader.offset, reader: reader)
        }
    }
}

/// A part of a form that is being received: its header, and a sequence of the pieces of its content.
///
/// The content can be read by the task that runs the loop over ``FormParts``, until the loop moves on.
public struct FormPartContent<Body: AsyncSequence>: AsyncSequence where Body.Element: FormChunk {
    /// The part's header.
    public let header: PartHeader

    /// The offset of the content's first byte, counted from the start of the body.
    public let offset: Int64

    fileprivate let reader: FormPartReader<Body>

    public func makeAsyncIterator() -> Iterator {
        Iterator(index: header.index, reader: reader)
    }

    /// An iterator over the pieces of the content. No piece is empty.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let index: Int
        fileprivate let reader: FormPartReader<Body>

        /// The next piece of the content; `nil` at its end.
        ///
        /// - Throws: ``FormProblem`` if the form is broken or exceeds a limit; ``FormError`` with the code
        ///   ``FormError/Code/partPassed`` if the loop over the parts has moved on; errors of the body, unchanged.
        public mutating func next() async throws -> Body.Element? {
            try await reader.nextPiece(of: index)
        }
    }

    /// Reads the rest of the content and joins it.
    ///
    /// - Parameter maximumBytes: The maximum number of bytes to hold.
    /// - Throws: ``FormProblem`` with the code ``FormProblem/Code/fieldTooLarge`` or ``FormProblem/Code/fileTooLarge``
    ///   if the content is larger; otherwise the same errors as the sequence.
    public func collect(upTo maximumBytes: Int) async throws -> [UInt8] {
        var content: [UInt8] = []
        for try await piece in self {
            let fits = piece.withFormChunkBytes { bytes in
                guard bytes.byteCount <= maximumBytes - content.count else { return false }
                bytes.withUnsafeBytes { content.append(contentsOf: $0) }
                return true
            }
            guard fits else { throw reader.contentTooLarge(header, maximumBytes: maximumBytes) }
        }
        return content
    }
}

/// The state that a sequence of parts and its parts have in common: the position in the body.
final class FormPartReader<Body: AsyncSequence> where Body.Element: FormChunk {
    private var body: Body.AsyncIterator
    private var parser: CheckedFormParser
    private var chunk: Body.Element?
    private var position = 0
    private var place = Place.betweenParts

    private enum Place {
        case betweenParts
        case inPart(Int)
        case behindPart(Int)
    }

    init(_ body: Body.AsyncIterator, _ parser: CheckedFormParser) {
        self.body = body
        self.parser = parser
    }

    /// The header of the next part; `nil` if the form is complete. Skips the rest of the current part.
    func nextHeader() async throws -> PartHeader? {
        while let event = try await nextEvent() {
            if case .partBegan(let header) = event {
                place = .inPart(header.index)
                return header
            }
        }
        place = .betweenParts
        return nil
    }

    /// The next piece of a part's content; `nil` at its end.
    func nextPiece(of index: Int) async throws -> Body.Element? {
        switch place {
        case .behindPart(index): return nil
        case .inPart(index): break
        default: throw FormError.partPassed(partIndex: index)
        }
        switch try await nextEvent() {
        case .bytes(let bytes): return chunk.map { parser.piece(bytes, of: $0) }
        case .partEnded, .partBegan, nil:
            place = .behindPart(index)
            return nil
        }
    }

    /// The number of bytes of the body that were read.
    var offset: Int64 { parser.offset }

    func contentTooLarge(_ header: PartHeader, maximumBytes: Int) -> FormProblem {
        var limits = FormLimits()
        limits.maximumFileBytes = Int64(maximumBytes)
        limits.maximumFieldBytes = Int64(maximumBytes)
        return limits.contentTooLarge(isFile: header.isFile, at: parser.offset, part: header.index)
    }

    private func nextEvent() async throws -> FormEvent? {
        while true {
            if let chunk {
                let event = try chunk.withFormChunkBytes { bytes throws(FormProblem) in
                    try parser.nextEvent(in: bytes, at: &position)
                }
                if let event { return event }
            }
            chunk = try await body.next(isolation: #isolation)
            position = 0
            guard chunk != nil else {
                try parser.finish()
                return nil
            }
        }
    }
}

/// A chunk of a body, as a connection or a file delivers it.
///
/// Slices of `Data` and `ArraySlice<UInt8>` use the storage of the chunk, so a part's content is not copied. An `Array`
/// would be copied: wrap it as `array[...]`.
///
/// The requirements have `FormChunk` in their names, because they become members of every `Data` in an app.
public protocol FormChunk: Sendable {
    /// Makes a chunk of bytes that were kept from an earlier chunk.
    init(formChunk keptBytes: ArraySlice<UInt8>)

    /// Calls a closure with the bytes of the chunk.
    func withFormChunkBytes<Result, Failure: Error>(_ body: (RawSpan) throws(Failure) -> Result) throws(Failure)
        -> Result

    /// The bytes in a range of indices, counted from 0.
    func formChunkPiece(_ range: Range<Int>) -> Self
}

extension ArraySlice<UInt8>: FormChunk {
    public init(formChunk keptBytes: ArraySlice<UInt8>) {
        self = keptBytes
    }

    public func withFormChunkBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(span.bytes)
    }

    public func formChunkPiece(_ range: Range<Int>) -> ArraySlice<UInt8> {
        dropFirst(range.lowerBound).prefix(range.count)
    }
}

extension Array: FormChunk where Element == UInt8 {
    public init(formChunk keptBytes: ArraySlice<UInt8>) {
        self.init(keptBytes)
    }

    public func withFormChunkBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try self[...].withFormChunkBytes(body)
    }

    public func formChunkPiece(_ range: Range<Int>) -> [UInt8] { Array(self[range]) }
}

extension Data: FormChunk {
    public init(formChunk keptBytes: ArraySlice<UInt8>) {
        self.init(keptBytes)
    }

    public func withFormChunkBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(bytes)
    }

    public func formChunkPiece(_ range: Range<Int>) -> Data {
        dropFirst(range.lowerBound).prefix(range.count)
    }
}

/// Reads the body of a form, chunk by chunk, and checks it against the form's rules.
///
/// All received forms use this parser: parts one by one, forms in memory, and the forms of upload routes.
package struct CheckedFormParser: Sendable {
    private var parser: FormParser
    private var rules: FormRuleChecker?

    /// Makes a parser for the body of a request. Throws ``FormProblem`` if the Content-Type is not that of a form.
    package init(contentType: String, limits: FormLimits, rules: FormRules? = nil) throws(FormProblem) {
        self.init(try FormParser(contentType: contentType, limits: limits), rules: rules)
    }

    init(_ parser: FormParser, rules: FormRules? = nil) {
        self.parser = parser
        self.rules = rules.map(FormRuleChecker.init)
    }

    /// The number of bytes of the body that have been read.
    package var offset: Int64 { parser.offset }

    /// The next event in a chunk of the body, as ``FormParser/nextEvent(in:at:)`` returns it. Throws ``FormProblem`` if
    /// the body is malformed, exceeds a limit or breaks a rule.
    package mutating func nextEvent(in chunk: RawSpan, at position: inout Int) throws(FormProblem) -> FormEvent? {
        let event = try parser.nextEvent(in: chunk, at: &position)
        if let event { try rules?.check(event, in: chunk, readBy: parser) }
        return event
    }

    /// Ends the body. Throws ``FormProblem`` if the body is incomplete, or a part is missing.
    package mutating func finish() throws(FormProblem) {
        try parser.finish()
        try rules?.formEnded(at: parser.offset)
    }

    /// The bytes of an event, as a piece of the current chunk.
    package func piece<Chunk: FormChunk>(_ bytes: FormBytes, of chunk: Chunk) -> Chunk {
        switch bytes {
        case .chunk(let range): chunk.formChunkPiece(range)
        case .held(let range): Chunk(formChunk: parser.heldBytes[range])
        }
    }
}
