package import HTTPTypes

/// A text of "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload) that both sides of an upload follow.
///
/// The texts before the last name themselves by a number in `Upload-Draft-Interop-Version`; systems that were built
/// while they were current go on sending it.
package enum ResumptionVersion: Int, Sendable, Hashable, CaseIterable {
    /// Revision 01, which iOS 17 sends: `Upload-Incomplete`, and no media type for what is appended.
    case interop3
    /// Revision 02: `Upload-Complete` instead.
    case interop4
    /// Revision 03: the receiver may tell of progress.
    case interop5
    /// Revisions 04 and 05, which iOS 18 sends: `application/partial-upload` and `Upload-Limit`.
    case interop6
    /// Revisions 06 to 08: the limit `expires` is named `max-age`.
    case interop7
    /// Revisions 09 to 12.
    case interop8
    /// The same without the number, as it is to be once the draft is a standard.
    case newest

    /// The number in `Upload-Draft-Interop-Version`; none where it is not sent.
    package var interopNumber: Int64? { self == .newest ? nil : Int64(rawValue) + 3 }

    /// The version that a message names, and ``newest`` where it names none.
    ///
    /// - Returns: `nil` for a number that is not known, and for what is no number.
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

    /// Whether limits are told in `Upload-Limit`.
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

/// What is sent to an upload that has begun.
package enum PartialUpload {
    /// The media type of what is appended.
    package static let mediaType = "application/partial-upload"
}

extension HTTPResponse.Status {
    /// The interim answer 104, which says where an upload can be resumed, or how far it has come.
    package static var uploadResumptionSupported: HTTPResponse.Status {
        HTTPResponse.Status(code: 104, reasonPhrase: "Upload Resumption Supported")
    }
}
