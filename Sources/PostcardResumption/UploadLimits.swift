/// What a receiver takes, as `Upload-Limit` tells it. Nothing is limited unless set.
package struct UploadLimits: Sendable, Hashable {
    /// The most bytes that an upload may have.
    package var maximumBytes: Int64?
    /// The fewest bytes that an upload may have.
    package var minimumBytes: Int64?
    /// The most bytes that one request may bring.
    package var maximumAppendBytes: Int64?
    /// The fewest bytes that one request may bring, unless it is the last.
    package var minimumAppendBytes: Int64?
    /// For how many more seconds the upload is there.
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
            ("min-append-size", \.minimumAppendBytes), (version.lifetimeKey, \.lifetimeSeconds),
        ]
    }

    /// - Returns: `nil` where the value is no dictionary, or one of its limits is no integer from 0 on: the whole
    ///   field is then to be ignored. Limits that are not known are ignored alone.
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

    /// The field's value; `nil` where nothing is limited, which is said by leaving the field out.
    func fieldValue(in version: ResumptionVersion) -> String? {
        let members = Self.fields(in: version).compactMap { key, field in
            self[keyPath: field].map { "\(key)=\(StructuredField.text($0))" }
        }
        return members.isEmpty ? nil : members.joined(separator: ", ")
    }
}
