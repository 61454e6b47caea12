package import HTTPTypes

/// A text of "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload) that both sides of an upload follow.
///
/// All but the newest have a number in `Upload-Draft-Interop-Version`, which systems of their time still send.
package enum ResumptionVersion: Int, Sendable, Hashable, CaseIterable {
    /// Revision 01, which iOS 17 sends: `Upload-Incomplete`, and no media type for what is appended.
    case interop3
    /// Revision 02: `Upload-Complete` instead.
    case interop4
    /// Revision 03: the receiver may report progress.
    case interop5
    /// Revisions 04 and 05, which iOS 18 sends: `application/partial-upload` and `Upload-Limit`.
    case interop6
    /// Revisions 06 to 08: the limit `expires` is named `max-age`.
    case interop7
    /// Revisions 09 to 12.
    case interop8
    /// The newest revision, without a number, as in the future standard.
    case newest

    /// The number in `Upload-Draft-Interop-Version`; `nil` if it is not sent.
    package var interopNumber: Int64? { self == .newest ? nil : Int64(rawValue) + 3 }

    /// The version in a message, or ``newest`` if there is none.
    ///
    /// - Returns: `nil` for an unknown number or anything else.
    package init?(of fields: HTTPFields) {
        guard fields.contains(.uploadDraftInteropVersion) else {
            self = .newest
            return
        }
        guard let number = fields.structuredInteger(.uploadDraftInteropVersion),
            let version = Self.allCases.first(where: { $0.interopNumber == number })
        else { return nil }
        self = version
    }

    /// Whether what is appended is of the media type ``PartialUpload/mediaType``.
    package var hasPartialUploadType: Bool { self >= .interop6 }

    /// Whether limits are sent in `Upload-Limit`.
    package var hasLimits: Bool { self >= .interop6 }

    /// Whether every append says whether it is the last; before, one that said nothing was.
    package var requiresCompleteness: Bool { self >= .interop7 }

    /// The name of the limit on an upload's remaining lifetime.
    var lifetimeKey: String { self >= .interop7 ? "max-age" : "expires" }
}

extension ResumptionVersion: Comparable {
    package static func < (one: ResumptionVersion, other: ResumptionVersion) -> Bool {
        one.rawValue < other.rawValue
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
    /// The upload has all its bytes: 400.
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
