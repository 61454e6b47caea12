/// A response whose body is ignored, or empty as in a 204.
public struct NoResponse: Decodable, Sendable, Hashable {
    public init() {}

    public init(from decoder: any Decoder) {}
}
