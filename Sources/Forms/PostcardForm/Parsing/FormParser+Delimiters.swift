// MARK: - Delimiters

extension FormParser {
    /// Reads a byte or a line break after the boundary.
    mutating func readDelimiterEnd(
        _ seen: DelimiterEnd, imagined: Int, in bytes: UnsafeRawBufferPointer, at position: inout Int, end: Int
    ) throws(FormProblem) -> FormEvent? {
        let byte = bytes[position]
        switch (seen, byte) {
        case (.nothing, .dash):
            state = .delimiterEnd(.dash, imagined: imagined)
        case (.dash, .dash):
            advance(&position, by: 1)
            state = .closed(blanks: 0, sawCarriageReturn: false)
            return endPart()
        case (.nothing, .space), (.nothing, .tab):
            state = .delimiterEnd(.padding(length: 1), imagined: imagined)
        case (.padding(let length), .space), (.padding(let length), .tab):
            if length >= limits.maximumHeaderBytes { throw fail(limits.paddingTooLarge(at: offset, part: partCount)) }
            state = .delimiterEnd(.padding(length: length + 1), imagined: imagined)
        case (.nothing, .carriageReturn) where position + 1 < end && bytes[position + 1] == .lineFeed:
            // Most delimiters end in CRLF within one chunk. The other states are for blanks and for split chunks.
            advance(&position, by: 2)
            return try beginHeader(padding: 0)
        case (.nothing, .carriageReturn):
            state = .delimiterEnd(.carriageReturn(padding: 0), imagined: imagined)
        case (.padding(let length), .carriageReturn):
            state = .delimiterEnd(.carriageReturn(padding: length), imagined: imagined)
        case (.carriageReturn(let padding), .lineFeed):
            advance(&position, by: 1)
            return try beginHeader(padding: padding)
        case (.nothing, .lineFeed), (.padding, .lineFeed):
            throw fail(.bareLineFeed(at: offset, part: part?.index))
        case (.carriageReturn, _):
            throw fail(.bareCarriageReturn(at: offset - 1, part: part?.index))
        case (.padding, _):
            throw fail(
                FormProblem(
                    .malformedDelimiter, at: offset, part: part?.index,
                    "A delimiter is followed by more than spaces and tabs on its line."))
        case (.nothing, _), (.dash, _):
            // The bytes are not a delimiter, so this byte is read again as content.
            state = .content(matched: 0, imagined: 0)
            let dash = if case .dash = seen { 1 } else { 0 }
            return try content(.held(imagined..<(delimiter.count + dash)), end: offset).map(FormEvent.bytes)
        }
        advance(&position, by: 1)
        return nil
    }

    /// Begins the header of the next part.
    mutating func beginHeader(padding: Int) throws(FormProblem) -> FormEvent? {
        if partCount >= limits.maximumParts { throw fail(limits.tooManyParts(at: offset)) }
        block = HeaderBlock(offset: offset, padding: padding)
        state = .header
        return endPart()
    }

    /// The event for the end of the current part, if there is one.
    mutating func endPart() -> FormEvent? {
        defer { part = nil }
        return part == nil ? nil : .partEnded
    }

    /// Reads one byte after the close delimiter's dashes.
    mutating func readCloseLine(
        blanks: Int64, sawCarriageReturn: Bool, in bytes: UnsafeRawBufferPointer, at position: inout Int
    ) throws(FormProblem) {
        switch (sawCarriageReturn, bytes[position]) {
        case (false, .space), (false, .tab):
            if blanks >= limits.maximumEpilogueBytes { throw fail(limits.epilogueTooLarge(at: offset)) }
            state = .closed(blanks: blanks + 1, sawCarriageReturn: false)
        case (false, .carriageReturn): state = .closed(blanks: blanks, sawCarriageReturn: true)
        case (false, .lineFeed), (true, .lineFeed): state = .epilogue(length: blanks)
        default:
            throw fail(
                FormProblem(
                    .textAfterCloseDelimiter, at: offset, "The close delimiter is followed by text on its line."))
        }
        advance(&position, by: 1)
    }

    /// Skips bytes after the close delimiter (RFC 2046 §5.1.1).
    mutating func passEpilogue(length: Int64, at position: inout Int, end: Int) throws(FormProblem) {
        let count = Int64(end - position)
        let allowed = limits.maximumEpilogueBytes - length
        if count > allowed { throw fail(limits.epilogueTooLarge(at: offset + allowed)) }
        advance(&position, by: end - position)
        state = .epilogue(length: length + count)
    }
}
