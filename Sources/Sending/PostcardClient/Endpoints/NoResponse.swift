/// A response whose body is ignored, or empty as in a 204.
public struct NoResponse: Decodable, Sendable, Hashable {
    /// Makes the only value.
    public init() {}

    public init(from decoder: any Decoder) {}
}
