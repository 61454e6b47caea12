import HTTPTypes
import PostcardForm
import PostcardResumption

extension UploadError {
    /// The limits that a refusal reports and that the form exceeds. A limit that the form keeps is not the reason.
    ///
    /// The limits are the `limit` of a problem with status 413, as Postcard's server writes it, and the `max-size` of
    /// `Upload-Limit` (draft-ietf-httpbis-resumable-upload) with any status.
    func limits(exceededBy layout: FormLayout) -> FormSizeLimits? {
        guard let response else { return nil }
        var reported = FormSizeLimits(
            maximumBodyBytes: response.headerFields.uploadLimits(in: .newest)?.maximumBytes)
        if response.status == .contentTooLarge, let limit = problem?["limit"],
            let value = limit["value"]?.number.flatMap({ Int64(exactly: $0.rounded(.down)) })
        {
            switch limit["name"]?.text {
            case "maximumBodyBytes":
                reported = reported.lowered(by: FormSizeLimits(maximumBodyBytes: value))
            case "maximumFileBytes": reported.maximumFileBytes = value
            case "maximumBytesOfAllFiles": reported.maximumBytesOfAllFiles = value
            // A rule on the files of one field.
            case let name? where name.hasPrefix("files.") && name.hasSuffix(".maximumBytes"):
                reported.maximumBytesByName = [String(name.dropFirst(6).dropLast(13)): value]
            default: break
            }
        }
        return reported.exceeded(by: layout)
    }
}
