/// Bytes that are to stand in the place of others, so that a request comes right.
public struct Edit: Sendable, Hashable {
    /// Whether ``offset`` counts in the head or in the body.
    public let place: Finding.Place

    /// The first byte that is replaced, counted from the start of ``place``.
    public let offset: Int64

    /// How many bytes are replaced; 0 where something is only put in.
    public let length: Int64

    /// What stands there afterwards.
    public let replacement: [UInt8]

    init(in place: Finding.Place = .body, at offset: Int64, length: Int64 = 0, _ replacement: some Sequence<UInt8>) {
        self.place = place
        self.offset = offset
        self.length = length
        self.replacement = Array(replacement)
    }
}
