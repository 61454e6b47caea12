// The Codable conformances are in a file of their own, because a web page compiles the types without Codable.

extension MediaType: Codable {
    public init(from decoder: any Decoder) throws {
        try self.init(decoder.singleValueContainer().decode(String.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}

extension FormProblem.Severity: Codable {}
