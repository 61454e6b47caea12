package import HTTPTypes

/// A version of "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload).
///
/// All versions but the last have a number in `Upload-Draft-Interop-Version`. ``ResumptionRule`` lists the differences.
package enum ResumptionVersion: Int, Sendable, Hashable, CaseIterable {
    /// Revision 01 of the draft, which iOS 17 sends.
    case interop3
    /// Revision 02 of the draft.
    case interop4
    /// Revision 03 of the draft, which iOS 18.0 sends.
    case interop5
    /// Revisions 04 and 05 of the draft, which iOS 18.1 sends.
    case interop6
    /// Revisions 06 to 08 of the draft.
    case interop7
    /// Revisions 09 to 11 of the draft, which iOS 26.2 sends.
    case interop8
    /// Revision 12 of the draft and later ones.
    case interop9
    /// The newest version. It has no interop number, as the final standard will have none.
    case newest

    package static let latestNumbered = ResumptionVersion.interop9

    /// The number in `Upload-Draft-Interop-Version`; `nil` if the version has none.
    package var interopNumber: Int64? { self == .newest ? nil : Int64(rawValue) + 3 }

    /// Finds the version with a number. `nil` for an unknown number.
    package init?(interopNumber number: Int64) {
        guard let version = Self.allCases.first(where: { $0.interopNumber == number }) else { return nil }
        self = version
    }

    /// The version of a request; `nil` for a number below the first, and for a value that is not a number. A request
    /// without a number, or with an unknown higher number, follows ``newest``. The server sends no 104 then, because a
    /// 104 must contain the client's own number (appendix "Draft Version Identification").
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

    package func has(_ rule: ResumptionRule) -> Bool { self >= rule.first }
}

extension ResumptionVersion: Comparable {
    package static func < (one: ResumptionVersion, other: ResumptionVersion) -> Bool {
        one.rawValue < other.rawValue
    }
}

/// A rule that a version of the resumable upload draft introduced. Earlier versions do not have the rule.
package enum ResumptionRule: Sendable, Hashable, CaseIterable {
    /// Messages have `Upload-Complete`. Earlier versions have its opposite, `Upload-Incomplete`.
    case completeField
    /// A 104 may report `Upload-Offset`.
    case progressReports
    /// Appended content has the media type ``PartialUpload/mediaType``.
    case partialUploadType
    /// Messages may have `Upload-Limit`.
    case limits
    /// Messages may have `Upload-Length`.
    case length
    /// `max-age` in `Upload-Limit` is the upload's remaining lifetime. Earlier versions use `expires`.
    case maximumAge
    /// Every append has `Upload-Complete`, which says whether the append is the last. In earlier versions, an append
    /// without the field is the last, and all other appends get a 201, like a creation.
    case appendCompleteness
    /// Bytes after the end of a complete upload get the problem `inconsistent-upload-length`.
    case lengthAfterCompletion
    /// A creation may have no content, regardless of `min-append-size`.
    case emptyCreation
    /// An empty append to a complete upload gets the final response again.
    case replay
    /// Requests with content have `Incremental` (RFC 10036), so that intermediaries pass the content on as it arrives.
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

package enum PartialUpload {
    /// The media type of appended content.
    package static let mediaType = "application/partial-upload"
}

extension HTTPResponse.Status {
    /// Makes a status from any number. A number outside of 0 to 999 becomes the nearest one inside.
    package init(clamping code: some BinaryInteger) { self.init(code: min(max(Int(clamping: code), 0), 999)) }

    /// The interim response 104, which has the URL for resuming an upload, or its progress.
    package static var uploadResumptionSupported: HTTPResponse.Status {
        HTTPResponse.Status(code: 104, reasonPhrase: "Upload Resumption Supported")
    }
}

/// The problem types of the resumable upload draft (RFC 9457). Their URIs are never fetched.
package enum ResumptionProblemType: String, Sendable, CaseIterable {
    /// Status 409: the appended bytes do not begin where the upload ends. The members are ``expectedOffset`` and
    /// ``providedOffset``.
    case mismatchingOffset = "mismatching-upload-offset"
    /// Status 400: the upload already has all its bytes. Version 9 and later have no such type.
    case completed = "completed-upload"
    /// Status 400: the announced lengths of an upload differ, or are exceeded.
    case inconsistentLength = "inconsistent-upload-length"

    /// The problem's `type`.
    package var uri: String { "https://iana.org/assignments/http-problem-types#\(rawValue)" }

    /// The name of the member with the offset at which the upload continues.
    package static let expectedOffset = "expected-offset"
}

extension HTTPField.Name {
    package static let uploadDraftInteropVersion = name("Upload-Draft-Interop-Version")
    package static let uploadComplete = name("Upload-Complete")
    package static let uploadIncomplete = name("Upload-Incomplete")
    package static let uploadOffset = name("Upload-Offset")
    package static let uploadLength = name("Upload-Length")
    package static let uploadLimit = name("Upload-Limit")
    package static let acceptPatch = name("Accept-Patch")
    /// The field that asks intermediaries to pass content on as it arrives (RFC 10036).
    package static let incremental = name("Incremental")
    /// The field with the key of an upload, by which a server recognizes it. PostcardClient makes this name public.
    package static let uploadKey = name("Idempotency-Key")

    /// Makes the name of a header field. The fallback is never used, because all texts passed here are tokens (RFC 9110
    /// §5.1).
    static func name(_ text: String) -> HTTPField.Name { HTTPField.Name(text) ?? .origin }
}

/// The header fields of the resumable upload draft. As the draft requires, invalid values are ignored.
extension HTTPFields {
    /// The number of bytes that the server has received.
    package var uploadOffset: Int64? {
        get { structuredInteger(.uploadOffset).flatMap { $0 >= 0 ? $0 : nil } }
        set { self[.uploadOffset] = newValue.map(StructuredField.text) }
    }

    /// The number of bytes in the whole upload.
    package var uploadLength: Int64? { structuredInteger(.uploadLength).flatMap { $0 >= 0 ? $0 : nil } }

    /// Sets the number of bytes in the whole upload, if the version has a field for it.
    package mutating func setUploadLength(_ length: Int64?, in version: ResumptionVersion) {
        self[.uploadLength] = version.has(.length) ? length.map(StructuredField.text) : nil
    }

    /// Whether a request ends the upload, or, in a response, whether the upload has ended; `nil` if unknown.
    package func uploadCompleteness(in version: ResumptionVersion) -> Bool? {
        version.has(.completeField)
            ? structuredBoolean(.uploadComplete) : structuredBoolean(.uploadIncomplete).map { !$0 }
    }

    /// Sets whether a request ends the upload, or, in a response, whether the upload has ended.
    package mutating func setUploadCompleteness(_ isComplete: Bool, in version: ResumptionVersion) {
        if version.has(.completeField) {
            self[.uploadComplete] = StructuredField.text(isComplete)
        } else {
            self[.uploadIncomplete] = StructuredField.text(!isComplete)
        }
    }

    /// The receiver's limits, as sent in `Upload-Limit`.
    package func uploadLimits(in version: ResumptionVersion) -> UploadLimits? {
        combined(.uploadLimit).flatMap { UploadLimits(fieldValue: $0, in: version) }
    }

    /// Adds the receiver's limits, if the version has a field for them.
    package mutating func setUploadLimits(_ limits: UploadLimits, in version: ResumptionVersion) {
        self[.uploadLimit] = version.has(.limits) ? limits.fieldValue(in: version) : nil
    }

    /// The number in `Upload-Draft-Interop-Version`; `nil` if the field is missing or not an integer.
    package var interopNumber: Int64? { structuredInteger(.uploadDraftInteropVersion) }

    /// Asks intermediaries to pass the content on as it arrives, if the version has a field for it.
    package mutating func askForIncrementalDelivery(in version: ResumptionVersion) {
        self[.incremental] = version.has(.incremental) ? StructuredField.text(true) : nil
    }

    package mutating func setResumptionVersion(_ version: ResumptionVersion) {
        self[.uploadDraftInteropVersion] = version.interopNumber.map(StructuredField.text)
    }

    /// Whether the response to OPTIONS offers resumable uploads, because it has the media type of an append or limits.
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

    /// The value of a field. Several lines are joined to one value (RFC 9110 §5.3).
    func combined(_ name: HTTPField.Name) -> String? {
        let values = self[values: name]
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}

/// A receiver's limits, as sent in `Upload-Limit`. Defaults to no limits.
package struct UploadLimits: Sendable, Hashable {
    /// The maximum size of an upload, in bytes.
    package var maximumBytes: Int64?
    /// The minimum size of an upload, in bytes.
    package var minimumBytes: Int64?
    /// The maximum content of a request, in bytes.
    package var maximumAppendBytes: Int64?
    /// The minimum content of a request other than the last, in bytes.
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

    /// Parses the field. `nil` if the value is not a dictionary, or a limit is not an integer of at least 0: the whole
    /// field is then ignored. A limit with an unknown name is skipped, and the others count.
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

    /// The field's value; `nil` if there are no limits.
    ///
    /// A limit above the maximum of structured fields is left out, because it would invalidate the whole field.
    func fieldValue(in version: ResumptionVersion) -> String? {
        let members = Self.fields(in: version).compactMap { key, field -> String? in
            guard let limit = self[keyPath: field], limit <= StructuredField.maximumInteger else { return nil }
            return "\(key)=\(StructuredField.text(limit))"
        }
        return members.isEmpty ? nil : members.joined(separator: ", ")
    }

    /// Adopts newer limits. Limits that are missing in the newer ones stay.
    package mutating func adopt(_ others: UploadLimits) {
        maximumBytes = others.maximumBytes ?? maximumBytes
        minimumBytes = others.minimumBytes ?? minimumBytes
        maximumAppendBytes = others.maximumAppendBytes ?? maximumAppendBytes
        minimumAppendBytes = others.minimumAppendBytes ?? minimumAppendBytes
        lifetimeSeconds = others.lifetimeSeconds ?? lifetimeSeconds
    }
}
