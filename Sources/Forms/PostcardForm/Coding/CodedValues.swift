// The values of forms and problems that are written as JSON. They are apart from their types, which a web page compiles
// without Codable.

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
