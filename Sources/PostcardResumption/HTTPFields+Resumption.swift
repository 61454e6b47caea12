package import HTTPTypes

extension HTTPField.Name {
    package static let uploadDraftInteropVersion = name("Upload-Draft-Interop-Version")
    package static let uploadComplete = name("Upload-Complete")
    package static let uploadIncomplete = name("Upload-Incomplete")
    package static let uploadOffset = name("Upload-Offset")
    package static let uploadLength = name("Upload-Length")
    package static let uploadLimit = name("Upload-Limit")
    package static let acceptPatch = name("Accept-Patch")

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
    package var uploadLength: Int64? {
        get { structuredInteger(.uploadLength).flatMap { $0 >= 0 ? $0 : nil } }
        set { self[.uploadLength] = newValue.map(StructuredField.text) }
    }

    /// Whether the message ends the upload, or, in a response, whether the upload has ended.
    package func uploadCompleteness(in version: ResumptionVersion) -> Bool? {
        if version == .interop3 { return structuredBoolean(.uploadIncomplete).map { !$0 } }
        return structuredBoolean(.uploadComplete)
    }

    /// Says whether the message ends the upload, or whether the upload has ended.
    package mutating func setUploadCompleteness(_ isComplete: Bool, in version: ResumptionVersion) {
        if version == .interop3 {
            self[.uploadIncomplete] = StructuredField.text(!isComplete)
        } else {
            self[.uploadComplete] = StructuredField.text(isComplete)
        }
    }

    /// The receiver's limits.
    package func uploadLimits(in version: ResumptionVersion) -> UploadLimits? {
        combined(.uploadLimit).flatMap { UploadLimits(fieldValue: $0, in: version) }
    }

    /// Adds the receiver's limits, if the version has a field for them.
    package mutating func setUploadLimits(_ limits: UploadLimits, in version: ResumptionVersion) {
        self[.uploadLimit] = version.hasLimits ? limits.fieldValue(in: version) : nil
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

    func structuredInteger(_ name: HTTPField.Name) -> Int64? {
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
