import HTTPTypes
import PostcardFoundation

/// The members of a problem (RFC 9457) that the draft defines (§7).
private struct Problem {
    let type: String?
    let expectedOffset: Int64?
    let providedOffset: Int64?

    /// - Returns: `nil` if the response is not a problem.
    init?(_ response: RawResponse?) {
        guard let response, let type = response.fields[.contentType]?.prefix(while: { $0 != ";" && $0 != " " }),
            type.lowercased() == "application/problem+json",
            let json = try? JSON(response.body), case .object = json
        else { return nil }
        self.type = json["type"]?.text
        expectedOffset = json["expected-offset"]?.integer
        providedOffset = json["provided-offset"]?.integer
    }
}

extension Expectation {
    private static func uri(_ name: String) -> String { "https://iana.org/assignments/http-problem-types#\(name)" }

    /// The check is not applicable unless the response is a problem of a type.
    static func whenProblem(_ name: String) -> Expectation {
        Expectation { exchange, _ in
            guard Problem(exchange.final)?.type == uri(name) else {
                return .notApplicable("the response is no problem of the type \(name)")
            }
            return .met
        }
    }

    static func problemMember(_ name: String, _ extent: Extent) -> Expectation {
        Expectation { exchange, evidence in
            let problem = Problem(exchange.final)
            let value = name == "expected-offset" ? problem?.expectedOffset : problem?.providedOffset
            let position = evidence.position(extent)
            let seen = value.map { "\($0)" } ?? "none"
            return value == position ? .met : .failed("\(name): \(position ?? 0), but \(seen)")
        }
    }
}
