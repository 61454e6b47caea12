// The JSON of types in forms and problems. It is separate from the types, because a web page compiles them without
// Codable.

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
