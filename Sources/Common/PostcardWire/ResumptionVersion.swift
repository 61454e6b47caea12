package import HTTPTypes

/// A text of "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload) that both sides of an upload follow.
///
/// All but the last have a number in `Upload-Draft-Interop-Version`. What each asks for is in ``ResumptionRule``.
package enum ResumptionVersion: Int, Sendable, Hashable, CaseIterable {
    /// Revision 01, which iOS 17 sends.
    case interop3
    /// Revision 02.
    case interop4
    /// Revision 03, which iOS 18.0 sends.
    case interop5
    /// Revisions 04 and 05, which iOS 18.1 sends.
    case interop6
    /// Revisions 06 to 08.
    case interop7
    /// Revisions 09 to 11, which iOS 26.2 sends.
    case interop8
    /// Revisions from 12 on.
    case interop9
    /// The newest text without a number, as in the future standard, in which no version is compared.
    case newest

    /// The newest version that has a number.
    package static let latestNumbered = ResumptionVersion.interop9

    /// The number in `Upload-Draft-Interop-Version`; `nil` if it is not sent.
    package var interopNumber: Int64? { self == .newest ? nil : Int64(rawValue) + 3 }

    /// The version with a number.
    ///
    /// - Returns: `nil` for an unknown number.
    package init?(interopNumber number: Int64) {
        guard let version = Self.allCases.first(where: { $0.interopNumber == number }) else { return nil }
        self = version
    }

    /// The version of a request. A request without one, or with one that is still to come, follows ``newest``: its
    /// client gets no 104, which must name its own version (appendix "Draft Version Identification").
    ///
    /// - Returns: `nil` for a number before the first, and for anything else.
    package init?(of fields: HTTPFields) {
        guard fields.contains(.uploadDraftInteropVersion) else {
            self = .newest
            return
        }
        guard let number = fields.interopNumber else { return nil }
        let isFuture = number > Self.latestNumbered.interopNumber ?? .max
        guard let version = isFuture ? .newest : Self(interopNumber: number) else { return nil }
        self = version
    }

    /// Whether messages of this version follow a rule.
    package func has(_ rule: ResumptionRule) -> Bool { self >= rule.first }
}

extension ResumptionVersion: Comparable {
    package static func < (one: ResumptionVersion, other: ResumptionVersion) -> Bool {
        one.rawValue < other.rawValue
    }
}

/// What a version of the draft asks for that the versions before it do not know. Messages of those have none of it.
package enum ResumptionRule: Sendable, Hashable, CaseIterable {
    /// `Upload-Complete`, in place of its opposite `Upload-Incomplete`.
    case completeField
    /// A 104 may report `Upload-Offset`.
    case progressReports
    /// What is appended is of the media type ``PartialUpload/mediaType``.
    case partialUploadType
    /// `Upload-Limit`.
    case limits
    /// `Upload-Length`.
    case length
    /// The limit on an upload's remaining lifetime is `max-age`, in place of `expires`.
    case maximumAge
    /// Every append says whether it is the last; before, one that said nothing was. Its response is any 2xx; before, it
    /// was 201, as that of the creation.
    case appendCompleteness
    /// Bytes after the end of a complete upload are a wrong length.
    case lengthAfterCompletion
    /// A creation without content is allowed whatever `min-append-size` says.
    case emptyCreation
    /// An append without content to a complete upload gets the final response again.
    case replay
    /// Requests with content ask intermediaries to pass it on as it arrives: `Incremental` (RFC 10036).
    case incremental

    /// The version that introduced the rule.
    var first: ResumptionVersion {
        switch self {
        case .completeField: .interop4
        case .progressReports: .interop5
        case .partialUploadType, .limits, .length: .interop6
        case .maximumAge, .appendCompleteness: .interop7
        case .lengthAfterCompletion: .interop8
        case .emptyCreation, .replay, .incremental: .interop9
        }
    }
}

/// The media type of bytes that are appended to an upload.
package enum PartialUpload {
    /// The media type of what is appended.
    package static let mediaType = "application/partial-upload"
}

extension HTTPResponse.Status {
    /// The interim response 104, with the URL for resuming an upload, or its progress.
    package static var uploadResumptionSupported: HTTPResponse.Status {
        HTTPResponse.Status(code: 104, reasonPhrase: "Upload Resumption Supported")
    }
}

/// The types of problem (RFC 9457) that the draft registers; their URIs are never fetched.
package enum ResumptionProblemType: String, Sendable, CaseIterable {
    /// The appended bytes do not begin where the upload ends: 409, with the members ``expectedOffset`` and
    /// ``providedOffset``.
    case mismatchingOffset = "mismatching-upload-offset"
    /// The upload has all its bytes: 400. Since version 9 the draft has no such type.
    case completed = "completed-upload"
    /// The announced lengths of an upload differ, or are exceeded: 400.
    case inconsistentLength = "inconsistent-upload-length"

    /// The problem's `type`.
    package var uri: String { "https://iana.org/assignments/http-problem-types#\(rawValue)" }

    /// The member with the offset at which the upload continues.
    package static let expectedOffset = "expected-offset"
    /// The member that has the offset that the request named.
    package static let providedOffset = "provided-offset"
}
