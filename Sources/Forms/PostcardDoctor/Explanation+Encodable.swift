import PostcardForm

extension Explanation: Encodable {
    private enum CodingKeys: String, CodingKey {
        case valid, boundary, parts, partCount, problems
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(isValid, forKey: .valid)
        try container.encode(boundary, forKey: .boundary)
        try container.encode(parts, forKey: .parts)
        try container.encode(partCount, forKey: .partCount)
        try container.encode(encodableProblems, forKey: .problems)
    }
}

extension Explanation.Part: Encodable {
    private enum CodingKeys: String, CodingKey {
        case name, filename, contentType, offset, size, sha256, headers
    }

    // Written by hand because missing values must be written as null, and the synthesized method would leave them out.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(filename, forKey: .filename)
        try container.encode(contentType, forKey: .contentType)
        try container.encode(offset, forKey: .offset)
        try container.encode(size, forKey: .size)
        try container.encode(sha256, forKey: .sha256)
        try container.encode(headerFields.map { [$0.name, $0.value] }, forKey: .headers)
    }
}

private struct EncodableFinding: Encodable {
    let finding: Finding
    /// The index of the finding's root cause in the list.
    let cause: Int?

    private enum CodingKeys: String, CodingKey {
        case code, severity, place, offset, length, part, message, advice = "fix", reason, swift, cause, consequences
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(finding.code.rawValue, forKey: .code)
        try container.encode(finding.severity, forKey: .severity)
        try container.encode(finding.place, forKey: .place)
        try container.encode(finding.offset, forKey: .offset)
        try container.encode(finding.length, forKey: .length)
        try container.encode(finding.partIndex, forKey: .part)
        try container.encode(finding.message, forKey: .message)
        try container.encode(finding.advice, forKey: .advice)
        try container.encode(finding.reason, forKey: .reason)
        try container.encode(finding.swift, forKey: .swift)
        try container.encode(cause, forKey: .cause)
        try container.encode(finding.consequenceCount, forKey: .consequences)
    }
}

extension Explanation {
    /// The problems as they are written in JSON. A consequence has the index of its cause.
    private var encodableProblems: [EncodableFinding] {
        var all: [EncodableFinding] = []
        for finding in findings {
            let cause = all.count
            all.append(EncodableFinding(finding: finding, cause: nil))
            all += finding.consequences.map { EncodableFinding(finding: $0, cause: cause) }
        }
        return all
    }
}

extension Finding.Place: Codable {}
