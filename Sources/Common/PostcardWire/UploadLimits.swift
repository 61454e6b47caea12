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
