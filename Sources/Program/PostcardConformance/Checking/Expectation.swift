import HTTPTypes
import PostcardFoundation
import PostcardWire

struct Expectation: Sendable {
    enum Judgement: Sendable {
        case met
        /// The expectation was not met. The text describes the expectation.
        case failed(String)
        case notApplicable(String)
        case unchecked(String)
    }

    let judge: @Sendable (Exchange, Evidence) -> Judgement

    init(_ judge: @escaping @Sendable (Exchange, Evidence) -> Judgement) {
        self.judge = judge
    }

    private static func final(
        _ expected: String, _ isMet: @escaping @Sendable (RawResponse, Evidence) -> Bool
    ) -> Expectation {
        Expectation { exchange, evidence in
            guard let response = exchange.final else { return .failed(expected) }
            return isMet(response, evidence) ? .met : .failed(expected)
        }
    }

    // MARK: - The status

    static let success = final("a 2xx response") { response, _ in response.isSuccess }
    static let refusal = final("a 4xx response") { response, _ in (400..<500).contains(response.status) }
    static let failure = final("a 4xx or 5xx response") { response, _ in response.status >= 400 }

    static func status(_ status: Int) -> Expectation {
        final("the status \(status)") { response, _ in response.status == status }
    }

    static let noUnsafeRedirect = final("none of 301, 302 and 303") { response, _ in
        ![301, 302, 303].contains(response.status)
    }

    /// Makes the check inconclusive if the server refuses the request: the sentence is about processed requests.
    static let processed = Expectation { exchange, _ in
        exchange.final?.isSuccess == true ? .met : .unchecked(exchange.summary)
    }

    /// Makes the check apply only if the final response has the given status.
    static func when(_ status: Int) -> Expectation {
        when("the response is not \(status)") { $0.status == status }
    }

    static let whenSuccessful = when("the server refused it") { $0.isSuccess }
    static let whenRefused = when("the server did not refuse it") { $0.status >= 400 }

    static func when(_ otherwise: String, _ isSo: @escaping @Sendable (RawResponse) -> Bool) -> Expectation {
        Expectation { exchange, _ in
            guard let response = exchange.final, isSo(response) else { return .notApplicable(otherwise) }
            return .met
        }
    }

    /// Expects the same status as for an upload of the content in one ordinary request.
    static let conventionalStatus = Expectation { exchange, evidence in
        guard let conventional = evidence.conventional else {
            return .notApplicable("the server did not respond to the upload in one conventional request")
        }
        return exchange.final?.status == conventional.status
            ? .met : .failed("the status \(conventional.status), as of a conventional upload")
    }

    static let conventionalContentType = Expectation { exchange, evidence in
        guard let conventional = evidence.conventional, let type = conventional.contentType else {
            return .notApplicable("the response to a conventional upload has no content type")
        }
        return exchange.final?.fields[.contentType] == type
            ? .met : .failed("Content-Type: \(type), as of a conventional upload")
    }

    // MARK: - Header fields

    static func has(_ name: HTTPField.Name) -> Expectation {
        final("the field \(name)") { response, _ in response.fields.contains(name) }
    }

    static func offset(_ extent: Extent) -> Expectation {
        Expectation { exchange, evidence in
            guard let position = evidence.position(extent) else {
                return .notApplicable("the server has sent no Upload-Offset")
            }
            return exchange.final?.fields.uploadOffset == position ? .met : .failed("Upload-Offset: \(position)")
        }
    }

    static func offsetAtLeast(_ extent: Extent) -> Expectation {
        Expectation { exchange, evidence in
            guard let position = evidence.position(extent) else {
                return .notApplicable("the server has sent no Upload-Offset")
            }
            guard let offset = exchange.final?.fields.uploadOffset, offset >= position else {
                return .failed("an Upload-Offset of at least \(position)")
            }
            return .met
        }
    }

    /// Expects an offset that is not larger than the length, or that the resource no longer exists.
    static func offsetAtMost(_ extent: Extent) -> Expectation {
        Expectation { exchange, evidence in
            guard let response = exchange.final, let position = evidence.position(extent) else {
                return .failed("a response")
            }
            if response.status >= 400 { return .met }
            return response.fields.uploadOffset.map { $0 <= position } ?? false
                ? .met : .failed("an Upload-Offset of at most \(position)")
        }
    }

    static func completeness(_ isComplete: Bool) -> Expectation {
        stated(.uploadComplete, "Upload-Complete: \(isComplete ? "?1" : "?0")") { response, evidence in
            response.fields.uploadCompleteness(in: evidence.version) == isComplete
        }
    }

    static let notComplete = final("a response without Upload-Complete: ?1") { response, evidence in
        response.fields.uploadCompleteness(in: evidence.version) != true
    }

    static func length(_ extent: Extent) -> Expectation {
        stated(.uploadLength, "an Upload-Length of the content's \(extent.rawValue)") { response, evidence in
            response.fields.uploadLength == evidence.position(extent)
        }
    }

    /// Makes an expectation of a field that HEAD and GET may omit since revision 13. Only a wrong value is a violation.
    private static func stated(
        _ name: HTTPField.Name, _ expected: String, _ isMet: @escaping @Sendable (RawResponse, Evidence) -> Bool
    ) -> Expectation {
        Expectation { exchange, evidence in
            guard let response = exchange.final else { return .failed(expected) }
            let isOptional = evidence.version >= .interop9 && ["HEAD", "GET"].contains(exchange.method)
            if isOptional, response.isSuccess, !response.fields.contains(name) {
                return .notApplicable("the response has no \(name), which later revisions do not ask for")
            }
            return isMet(response, evidence) ? .met : .failed(expected)
        }
    }

    static let noStore = final("Cache-Control: no-store") { response, _ in
        let directives = response.fields[values: .cacheControl].joined(separator: ",").lowercased()
        return directives.split(separator: ",").contains { $0.split(separator: " ") == ["no-store"] }
    }

    // MARK: - Limits

    static let readableLimits = final("an Upload-Limit that is a dictionary of integers") { response, evidence in
        response.fields.uploadLimits(in: evidence.version) != nil
    }

    static let whenLimited = when("the response has no Upload-Limit") { $0.fields.contains(.uploadLimit) }

    /// Expects limits if other responses of the server have limits.
    static let knownLimits = Expectation { exchange, evidence in
        guard !evidence.limits.areEmpty else { return .notApplicable("the server announces no limits") }
        return exchange.final?.fields.uploadLimits(in: evidence.version) != nil ? .met : .failed("Upload-Limit")
    }

    /// Expects limits that are not narrower than those of the check's first response.
    static func keepsLimits(
        _ name: String, _ isKept: @escaping @Sendable (_ before: UploadLimits, _ now: UploadLimits) -> Bool?
    ) -> Expectation {
        Expectation { exchange, evidence in
            let first = evidence.earlier.lazy.compactMap {
                $0.final?.fields.uploadLimits(in: evidence.version)
            }.first
            guard let first, let now = exchange.final?.fields.uploadLimits(in: evidence.version),
                let isKept = isKept(first, now)
            else { return .notApplicable("the server does not announce \(name) twice") }
            return isKept ? .met : .failed("\(name) no narrower than in the first response")
        }
    }
}

/// The members of a problem (RFC 9457) that the resumable upload draft defines (§7).
private struct Problem {
    let type: String?
    let expectedOffset: Int64?
    let providedOffset: Int64?

    /// Parses the problem in a response. `nil` if there is none.
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

    /// Makes the check apply only if the final response is a problem of the given type.
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
