/// What the parser found next.
public enum FormEvent: Sendable {
    /// A part begins; its header is complete.
    case partBegan(PartHeader)
    /// Bytes of the part's content, never none.
    case bytes(FormBytes)
    /// The part's content is complete: its delimiter has been seen.
    case partEnded
}

/// Borrowed bytes of a part's content: the value is only their range.
public enum FormBytes: Sendable, Hashable {
    /// A range of the current chunk.
    case chunk(Range<Int>)
    /// A range of ``FormParser/heldBytes``: bytes of earlier chunks that might have begun a delimiter, but did not.
    case held(Range<Int>)

    /// How many bytes there are.
    public var count: Int {
        switch self {
        case .chunk(let range), .held(let range): range.count
        }
    }

    /// The first bytes.
    func prefix(_ length: Int) -> FormBytes {
        switch self {
        case .chunk(let range): .chunk(range.prefix(length))
        case .held(let range): .held(range.prefix(length))
        }
    }
}
