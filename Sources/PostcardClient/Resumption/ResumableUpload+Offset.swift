import HTTPTypes
import PostcardForm
import PostcardResumption

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// MARK: - What the server has

extension ResumableUpload {
    /// Finds out how much the upload resource has; has one made if there is none.
    mutating func locate(_ offer: ResumptionOffer, _ resumption: Resumption) -> Action {
        if let resource = resumption.resource {
            step = .locating(offer, resource)
            return send(.head, at: resource.url, offer.version)
        }
        step = .creating(offer)
        var fields = request.resumptionFields(for: request.url, offer.version)
        fields.setUploadCompleteness(false, in: offer.version)
        fields.uploadLength = length
        return send(request.method, at: request.url, fields, body.slice(0..<0))
    }

    /// The upload resource was asked how much it has.
    mutating func handle(
        _ response: UploadResponse, from url: URL, _ offer: ResumptionOffer, _ resource: Resumption.Resource,
        _ resumption: inout Resumption
    ) -> Action {
        switch response.status.code {
        case 200..<300:
            guard let offset = response.headerFields.uploadOffset else { break }
            if case .here(let sent) = resource.origin, offset > sent {
                // It is not used again.
                resumption.forget()
                return .fail(error(.impossibleOffset(offset, response, by: resource.url, sent: sent), of: resource.url))
            }
            guard offset <= length else { break }
            let isComplete = response.headerFields.uploadCompleteness(in: offer.version) ?? false
            return check(offer, resource.url, Extent(offset: offset, isComplete: isComplete), &resumption)
        case 404, 410: break
        default: return .fail(refusal(response, by: url))
        }
        resumption.forget()
        return locate(offer, resumption)
    }

    mutating func check(
        _ offer: ResumptionOffer, _ resource: URL, _ extent: Extent, _ resumption: inout Resumption
    ) -> Action {
        resumption.advance(to: extent.offset, of: length)
        step = .checking(offer, resource, extent)
        let isInherited = resumption.resource?.origin == .earlierProcess(isChecked: false)
        return .check(readBytes: isInherited ? extent.offset : nil)
    }

    /// The files are those of the earlier attempts: the server gets what it is missing.
    mutating func handleChecked(_ resumption: inout Resumption) -> Action? {
        guard case .checking(let offer, let resource, let extent) = step else { return nil }
        resumption.noteChecked()
        return append(from: extent.offset, to: resource, offer, extent)
    }
}
