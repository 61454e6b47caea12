/// The types of problem (RFC 9457) that the draft registers; their URIs are never fetched.
package enum ResumptionProblemType: String, Sendable, CaseIterable {
    /// What is appended does not begin where the upload ends: 409, with the members ``expectedOffset`` and
    /// ``providedOffset``.
    case mismatchingOffset = "mismatching-upload-offset"
    /// The upload has all its bytes: 400.
    case completed = "completed-upload"
    /// Lengths that were told of one upload differ, or are exceeded: 400.
    case inconsistentLength = "inconsistent-upload-length"

    /// The problem's `type`.
    package var uri: String { "https://iana.org/assignments/http-problem-types#\(rawValue)" }

    /// The member that has the offset at which the upload goes on.
    package static let expectedOffset = "expected-offset"
    /// The member that has the offset that the request named.
    package static let providedOffset = "provided-offset"
}
