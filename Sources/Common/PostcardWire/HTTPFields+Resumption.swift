package import HTTPTypes

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
