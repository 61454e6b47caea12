/// What one check found.
package struct ConformanceResult: Sendable {
    package let check: ConformanceCheck
    package let outcome: CheckOutcome
    /// What the server did, or why nothing could be checked. It contains text that the server sent.
    package let seen: String
}

extension ConformanceResult: Encodable {
    private enum CodingKeys: CodingKey {
        case id, section, sentence, level, outcome, seen
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(check.number, forKey: .id)
        try values.encode(check.section, forKey: .section)
        try values.encode(check.sentence, forKey: .sentence)
        try values.encode(check.level.rawValue, forKey: .level)
        try values.encode(outcome.rawValue, forKey: .outcome)
        try values.encode(seen, forKey: .seen)
    }
}

/// What all checks of a run found.
package struct ConformanceReport: Sendable {
    package let results: [ConformanceResult]

    package init(results: [ConformanceResult]) {
        self.results = results
    }

    /// The number of checks with an outcome.
    package func count(of outcome: CheckOutcome) -> Int {
        results.count { $0.outcome == outcome }
    }

    /// Whether no MUST and no MUST NOT is violated. A server of which nothing could be checked does not conform.
    package var conforms: Bool {
        guard results.contains(where: { $0.outcome != .unchecked }) || results.isEmpty else { return false }
        return violatedRequirements == 0
    }

    /// The number of checks that found a MUST or MUST NOT violated.
    package var violatedRequirements: Int {
        results.count { $0.outcome == .violated && $0.check.level.isAbsolute }
    }
}
