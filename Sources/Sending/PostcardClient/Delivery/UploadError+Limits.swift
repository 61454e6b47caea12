import HTTPTypes
import PostcardForm
import PostcardWire

extension UploadError {
    /// The limits that a refusal reports and that the form exceeds. A limit that the form keeps is not the reason.
    ///
    /// The limits are the `limit` and the `limits` of a problem with status 413, as Postcard's server writes them, and the
    /// `max-size` of `Upload-Limit` (draft-ietf-httpbis-resumable-upload) with any status.
    func limits(exceededBy layout: FormLayout) -> FormSizeLimits? {
        guard let response else { return nil }
        var reported = FormSizeLimits(
            maximumBodyBytes: response.headerFields.uploadLimits(in: .newest)?.maximumBytes)
        if response.status == .contentTooLarge, let problem {
            var listed: [JSONValue] = []
            if case .array(let limits) = problem["limits"] { listed = limits }
            for limit in [problem["limit"]].compactMap(\.self) + listed {
                if let limit = FormSizeLimits(limit) { reported = reported.lowered(by: limit) }
            }
        }
        return reported.exceeded(by: layout)
    }

    /// Whether this is a refusal of a form as too large that reports no limit, as proxies send it.
    package var namesNoLimit: Bool {
        guard let response, response.status == .contentTooLarge else { return false }
        return problem?["limit"] == nil && problem?["limits"] == nil
            && response.headerFields.uploadLimits(in: .newest) == nil
    }
}

extension FormSizeLimits {
    /// One limit as Postcard's server writes it; `nil` if it is not about sizes that a client can change.
    fileprivate init?(_ limit: JSONValue) {
        guard let name = limit["name"]?.text,
            let value = limit["value"]?.number.flatMap({ Int64(exactly: $0.rounded(.down)) })
        else { return nil }
        switch name {
        case "maximumBodyBytes": self.init(maximumBodyBytes: value)
        case "maximumFileBytes": self.init(maximumFileBytes: value)
        case "maximumBytesOfAllFiles": self.init(maximumBytesOfAllFiles: value)
        // A rule on the files of one field.
        case let name where name.hasPrefix("files.") && name.dropFirst(6).hasSuffix(".maximumBytes"):
            self.init(maximumBytesByName: [String(name.dropFirst(6).dropLast(13)): value])
        default: return nil
        }
    }
}
