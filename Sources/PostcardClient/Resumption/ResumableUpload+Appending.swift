import HTTPTypes
import PostcardForm
import PostcardResumption

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// MARK: - What the server is missing

extension ResumableUpload {
    /// Sends the rest of the form, or as much of it as the server takes in one request.
    mutating func append(
        from offset: Int64, to resource: URL, _ offer: ResumptionOffer, _ extent: Extent
    ) -> Action {
        let count = min(length - offset, max(offer.limits.maximumAppendBytes ?? .max, 1))
        let range = offset..<offset + count
        let isLast = range.upperBound == length
        step = .appending(offer, resource, extent, range)
        return patch(
            resource, with: range, isLast: isLast, offer, accepting: isLast ? acceptedStatuses : Set(200..<300))
    }

    /// Sends some bytes of the form, or none.
    func patch(
        _ resource: URL, with range: Range<Int64>, isLast: Bool, _ offer: ResumptionOffer,
        accepting statuses: Set<Int> = Self.anyStatus
    ) -> Action {
        var fields = request.resumptionFields(for: resource, offer.version)
        fields.uploadOffset = range.lowerBound
        fields.setUploadCompleteness(isLast, in: offer.version)
        return send(
            .patch, at: resource, fields, body.slice(range, contentType: PartialUpload.mediaType), accepting: statuses)
    }

    /// The server has accepted an append.
    mutating func handle(
        _ response: UploadResponse, to range: Range<Int64>, _ offer: ResumptionOffer, _ resource: URL,
        _ extent: Extent, _ resumption: inout Resumption
    ) -> Action {
        resumption.noteSent(upTo: range.upperBound)
        guard range.upperBound < length else {
            var response = response
            response.bytesSent += range.lowerBound
            return .finish(response)
        }
        if response.isEarly {
            // Bytes that were not sent are missing, even if the client accepts early responses to the whole form.
            return .fail(
                error(.earlyResponse(response, by: resource, of: range.upperBound - range.lowerBound), of: resource))
        }
        resumption.advance(to: range.upperBound, of: length)
        return append(from: range.upperBound, to: resource, offer, extent)
    }

    /// Decides what the failure of an append means for the upload resource.
    mutating func settle(
        _ error: UploadError, _ offer: ResumptionOffer, _ extent: Extent, _ resumption: inout Resumption
    ) -> Action {
        guard let response = error.response, error.code == .refused else { return .fail(error) }
        let status = response.status.code
        let offset = response.currentOffset
        if extent.isComplete {
            // The server was asked for its response again: it has sent it, or no longer has it.
            resumption.forget()
            let isCompleted = response.problem?.type == ResumptionProblemType.completed.uri
            guard isCompleted || [404, 405, 409, 410].contains(status) else { return .fail(error) }
            var lost = error.adding("The server has the whole form, but its response was lost.")
            lost.delivery = .responseLost
            return .fail(lost)
        }
        switch status {
        case 404 where offset == nil, 410 where offset == nil: resumption.forget()
        case 409 where offset != nil && offset != length: break
        default: return .fail(error)
        }
        resumption.noteRejection()
        if resumption.rejections >= resumption.policy.maximumRejections {
            return .fail(
                error.adding("It has rejected the bytes that it asked for \(resumption.rejections) times in a row."))
        }
        if resumption.failures >= resumption.policy.retry.maximumAttempts { return .fail(error) }
        return locate(offer, resumption)
    }
}
