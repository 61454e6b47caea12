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

extension HTTPField.Name {
    package static let uploadDraftInteropVersion = name("Upload-Draft-Interop-Version")
    package static let uploadComplete = name("Upload-Complete")
    package static let uploadIncomplete = name("Upload-Incomplete")
    package static let uploadOffset = name("Upload-Offset")
    package static let uploadLength = name("Upload-Length")
    package static let uploadLimit = name("Upload-Limit")
    package static let acceptPatch = name("Accept-Patch")
    /// Asks intermediaries to pass content on as it arrives (RFC 10036).
    package static let incremental = name("Incremental")

    /// All these names are tokens (RFC 9110 §5.1); the other name would show in a test.
    static func name(_ text: String) -> HTTPField.Name { HTTPField.Name(text) ?? .origin }
}

/// The draft's fields. An invalid value is ignored, as the draft requires.
extension HTTPFields {
    /// The number of bytes that the server has received.
    package var uploadOffset: Int64? {
        get { structuredInteger(.uploadOffset).flatMap { $0 >= 0 ? $0 : nil } }
        set { self[.uploadOffset] = newValue.map(StructuredField.text) }
    }

    /// How many bytes the upload is to have.
    package var uploadLength: Int64? { structuredInteger(.uploadLength).flatMap { $0 >= 0 ? $0 : nil } }

    /// Says how many bytes the upload is to have, if the version has a field for it.
    package mutating func setUploadLength(_ length: Int64?, in version: ResumptionVersion) {
        self[.uploadLength] = version.has(.length) ? length.map(StructuredField.text) : nil
    }

    /// Whether the message ends the upload, or, in a response, whether the upload has ended.
    package func uploadCompleteness(in version: ResumptionVersion) -> Bool? {
        version.has(.completeField)
            ? structuredBoolean(.uploadComplete) : structuredBoolean(.uploadIncomplete).map { !$0 }
    }

    /// Says whether the message ends the upload, or whether the upload has ended.
    package mutating func setUploadCompleteness(_ isComplete: Bool, in version: ResumptionVersion) {
        if version.has(.completeField) {
            self[.uploadComplete] = StructuredField.text(isComplete)
        } else {
            self[.uploadIncomplete] = StructuredField.text(!isComplete)
        }
    }

    /// The receiver's limits.
    package func uploadLimits(in version: ResumptionVersion) -> UploadLimits? {
        combined(.uploadLimit).flatMap { UploadLimits(fieldValue: $0, in: version) }
    }

    /// Adds the receiver's limits, if the version has a field for them.
    package mutating func setUploadLimits(_ limits: UploadLimits, in version: ResumptionVersion) {
        self[.uploadLimit] = version.has(.limits) ? limits.fieldValue(in: version) : nil
    }

    /// The number in `Upload-Draft-Interop-Version`; `nil` if there is none, or no integer.
    package var interopNumber: Int64? { structuredInteger(.uploadDraftInteropVersion) }

    /// Asks intermediaries to pass the content on as it arrives, if the version has a field for it.
    package mutating func askForIncrementalDelivery(in version: ResumptionVersion) {
        self[.incremental] = version.has(.incremental) ? StructuredField.text(true) : nil
    }

    /// Adds the version, if it has a number.
    package mutating func setResumptionVersion(_ version: ResumptionVersion) {
        self[.uploadDraftInteropVersion] = version.interopNumber.map(StructuredField.text)
    }

    /// Whether the response to OPTIONS offers resumable uploads: the media type of an append, or limits.
    package func offersResumableUploads(in version: ResumptionVersion) -> Bool {
        let types = combined(.acceptPatch)?.split(separator: ",") ?? []
        let offersAppending = types.contains { type in
            type.prefix { $0 != ";" }.lowercased().split(whereSeparator: { $0 == " " || $0 == "\t" })
                == [PartialUpload.mediaType[...]]
        }
        return offersAppending || uploadLimits(in: version) != nil
    }

    private func structuredInteger(_ name: HTTPField.Name) -> Int64? {
        guard let value = combined(name), case .integer(let number)? = StructuredField.item(value) else { return nil }
        return number
    }

    private func structuredBoolean(_ name: HTTPField.Name) -> Bool? {
        guard let value = combined(name), case .boolean(let truth)? = StructuredField.item(value) else { return nil }
        return truth
    }

    /// Several lines of a field are one value (RFC 9110 §5.3), and so no single item.
    func combined(_ name: HTTPField.Name) -> String? {
        let values = self[values: name]
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}

/// A receiver's limits, as sent in `Upload-Limit`. Defaults to no limits.
package struct UploadLimits: Sendable, Hashable {
    /// The maximum number of bytes that an upload may have.
    package var maximumBytes: Int64?
    /// The minimum number of bytes that an upload may have.
    package var minimumBytes: Int64?
    /// The maximum number of bytes in a request.
    package var maximumAppendBytes: Int64?
    /// The minimum number of bytes in a request other than the last.
    package var minimumAppendBytes: Int64?
    /// The number of seconds until the upload is removed.
    package var lifetimeSeconds: Int64?

    package init(
        maximumBytes: Int64? = nil, minimumBytes: Int64? = nil, maximumAppendBytes: Int64? = nil,
        minimumAppendBytes: Int64? = nil, lifetimeSeconds: Int64? = nil
    ) {
        self.maximumBytes = maximumBytes
        self.minimumBytes = minimumBytes
        self.maximumAppendBytes = maximumAppendBytes
        self.minimumAppendBytes = minimumAppendBytes
        self.lifetimeSeconds = lifetimeSeconds
    }

    private static func fields(
        in version: ResumptionVersion
    ) -> [(key: String, field: WritableKeyPath<UploadLimits, Int64?>)] {
        [
            ("max-size", \.maximumBytes), ("min-size", \.minimumBytes), ("max-append-size", \.maximumAppendBytes),
            ("min-append-size", \.minimumAppendBytes),
            (version.has(.maximumAge) ? "max-age" : "expires", \.lifetimeSeconds),
        ]
    }

    /// - Returns: `nil` if the value is not a dictionary, or a limit is not an integer of at least 0: the whole field
    ///   is then ignored. Unknown limits are ignored alone.
    init?(fieldValue: String, in version: ResumptionVersion) {
        guard let members = StructuredField.dictionary(fieldValue) else { return nil }
        for (key, field) in Self.fields(in: version) {
            switch members[key] {
            case nil: continue
            case .integer(let number) where number >= 0: self[keyPath: field] = number
            default: return nil
            }
        }
    }

    /// The field's value; `nil` if there are no limits, and so no field.
    ///
    /// A limit that no integer of a structured field can express is left out: it would make the whole field invalid.
    func fieldValue(in version: ResumptionVersion) -> String? {
        let members = Self.fields(in: version).compactMap { key, field -> String? in
            guard let limit = self[keyPath: field], limit <= StructuredField.maximumInteger else { return nil }
            return "\(key)=\(StructuredField.text(limit))"
        }
        return members.isEmpty ? nil : members.joined(separator: ", ")
    }

    /// Adopts later limits. Those that are not among them stay as they were.
    package mutating func adopt(_ others: UploadLimits) {
        maximumBytes = others.maximumBytes ?? maximumBytes
        minimumBytes = others.minimumBytes ?? minimumBytes
        maximumAppendBytes = others.maximumAppendBytes ?? maximumAppendBytes
        minimumAppendBytes = others.minimumAppendBytes ?? minimumAppendBytes
        lifetimeSeconds = others.lifetimeSeconds ?? lifetimeSeconds
    }
}
