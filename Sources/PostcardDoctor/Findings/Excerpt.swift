/// The bytes around the place of a finding, as they are: they may be binary.
public struct Excerpt: Sendable, Hashable {
    /// Where the first of the bytes stands, counted as the finding's offset is.
    public let offset: Int64

    /// At most ``maximumBytes``, from the same head or body.
    public let bytes: [UInt8]

    /// The most bytes that are kept before the place, and behind it.
    public static let reach = 96

    /// The most bytes of an excerpt.
    public static let maximumBytes = 2 * reach

    init(offset: Int64, bytes: [UInt8]) {
        self.offset = offset
        self.bytes = bytes
    }
}

extension Excerpt {
    func appending(_ new: UnsafeRawBufferPointer) -> Excerpt { Excerpt(offset: offset, bytes: bytes + new) }

    /// As much of it as is shown of a place; `nil` where the place lies outside.
    func around(_ place: Int64) -> Excerpt? {
        guard place >= offset, place <= offset + Int64(bytes.count) else { return nil }
        let index = Int(clamping: place - offset)
        let range = max(index - Self.reach, 0)..<min(index + Self.reach, bytes.count)
        return Excerpt(offset: offset + Int64(range.lowerBound), bytes: Array(bytes[range]))
    }
}
