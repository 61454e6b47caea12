/// The header of a part while it is received: all lines up to the blank line.
///
/// Lines end only in CRLF. A CR or LF alone is refused, because only some parsers would end a line there, and the
/// header could then bypass a filter.
struct HeaderBlock: Sendable {
    /// The offset of the header's first byte, counted from the start of the body.
    let offset: Int64

    /// The lines of the header, each with its CRLF, and finally the blank line.
    ///
    /// The `span` of a `ContiguousArray` exists on all platforms. That of an `Array` needs iOS 26.
    private(set) var bytes: ContiguousArray<UInt8> = []

    /// Whether the blank line after the header has been read.
    private(set) var isComplete = false

    /// Whether a line of the header continues the field before it.
    private(set) var hasFoldedLines = false
    private var lineLength = 0
    private var fieldCount = 0
    private var sawCarriageReturn = false

    /// The number of blanks after the delimiter, which count toward the limit of the header.
    private let padding: Int

    init(offset: Int64, padding: Int) {
        self.offset = offset
        self.padding = padding
    }

    /// Appends bytes up to the blank line. Returns the number of bytes that belong to the header.
    mutating func append(
        _ new: Slice<UnsafeRawBufferPointer>, limits: FormLimits, partIndex: Int
    ) throws(FormProblem) -> Int {
        let allowed = limits.maximumHeaderBytes - padding - bytes.count
        let most = min(new.count, max(allowed, 0))
        let first = new.startIndex
        let all = new.base
        if bytes.isEmpty { bytes.reserveCapacity(256) }
        var count = 0
        while count < most {
            let byte = all[first + count]
            if sawCarriageReturn, byte != .lineFeed {
                throw .bareCarriageReturn(at: place(count) - 1, part: partIndex)
            }
            switch byte {
            case .carriageReturn:
                sawCarriageReturn = true
                count += 1
            case .lineFeed:
                guard sawCarriageReturn else { throw .bareLineFeed(at: place(count), part: partIndex) }
                count += 1
                if lineLength == 0 {
                    isComplete = true
                    bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: new.prefix(count)))
                    return count
                }
                sawCarriageReturn = false
                lineLength = 0
            case 0:
                throw .nulInHeader(at: place(count), part: partIndex)
            default:
                if lineLength == 0, byte.isBlank, fieldCount > 0 {
                    hasFoldedLines = true
                } else if lineLength == 0, !byte.isBlank {
                    fieldCount += 1
                    if fieldCount > limits.maximumHeaderFields {
                        throw limits.tooManyHeaderFields(at: place(count), part: partIndex)
                    }
                }
                let start = count
                count += 1
                while count < most, all[first + count] >= .space { count += 1 }
                lineLength += count - start
            }
        }
        if count < new.count {
            throw limits.headerTooLarge(at: place(count), part: partIndex)
        }
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: new))
        return count
    }

    private func place(_ count: Int) -> Int64 { offset + Int64(bytes.count + count) }
}

/// The position of a field in the header's bytes.
struct HeaderField: Sendable {
    let name: Range<Int>
    /// The range of the value without the blanks around it.
    let value: Range<Int>

    /// The index in the header of the first byte of the field.
    var start: Int { name.lowerBound }

    /// The field at an index of a complete header without folded lines; `nil` at the blank line. `start` becomes the
    /// index of the next field. Throws ``FormProblem`` if the line is not a field.
    static func next(
        in bytes: Span<UInt8>, at start: inout Int, offset: Int64, partIndex: Int
    ) throws(FormProblem) -> HeaderField? {
        if bytes[start] == .carriageReturn { return nil }
        var colon = start
        while bytes[colon].isTokenCharacter { colon += 1 }
        guard colon > start, bytes[colon] == .colon else {
            throw FormProblem(
                .malformedHeaderField, at: offset + Int64(start), part: partIndex,
                "A line of a part's header is not a header field.")
        }
        var first = colon + 1
        while bytes[first].isBlank { first += 1 }
        var next = first
        while bytes[next] != .carriageReturn { next += 1 }
        var end = next
        while end > first, bytes[end - 1].isBlank { end -= 1 }
        defer { start = next + 2 }
        return HeaderField(name: start..<colon, value: first..<end)
    }
}

extension HeaderBlock {
    /// The warning about folded lines, at the first such line.
    func foldedLineWarning(partIndex: Int) -> FormProblem {
        let lineBreak = bytes.indices.dropLast().first { bytes[$0] == .lineFeed && bytes[$0 + 1].isBlank } ?? 0
        return FormProblem(
            .foldedHeaderLine, at: offset + Int64(lineBreak + 1), part: partIndex,
            "A header field of a part continues on another line.")
    }

    /// The lines, with spaces instead of line breaks within fields (RFC 9112 §5.2), so that all bytes keep their
    /// indices. Leaves the header empty.
    mutating func takeUnfoldedBytes() -> ContiguousArray<UInt8> {
        var unfolded: ContiguousArray<UInt8> = []
        swap(&unfolded, &bytes)
        guard hasFoldedLines else { return unfolded }
        for index in unfolded.indices.dropLast() where unfolded[index] == .lineFeed && unfolded[index + 1].isBlank {
            unfolded[index - 1] = .space
            unfolded[index] = .space
        }
        return unfolded
    }
}
