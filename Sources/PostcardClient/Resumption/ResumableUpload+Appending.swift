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
        from offset: Int64, to resource: URL, _ offer: ResumptionOffer, _ extent: Extent, _ resumption: Resumption
    ) -> Action {
        let largest = min(offer.limits.maximumAppendBytes ?? .max, resumption.appendSize.maximum ?? .max)
        let count = min(length - offset, max(largest, offer.limits.minimumAppendBytes ?? 0, 1))
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
        resumption.forgiveRejections()
        resumption.appendSize.noteSuccess(of: range.upperBound - range.lowerBound)
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
        let offer = resumption.adopt(response.headerFields, offer)
        guard offer.accepts(length) else { return .fail(unacceptable(response, by: resource)) }
        return append(from: range.upperBound, to: resource, offer, extent, resumption)
    }

    /// Decides what the failure of an append means for the upload resource.
    mutating func settle(
        _ error: UploadError, _ range: Range<Int64>, _ offer: ResumptionOffer, _ extent: Extent,
        _ resumption: inout Resumption
    ) -> Action {
        guard let response = error.response, error.code == .refused else {
            if [.connectionLost, .timedOut].contains(error.code) {
                resumption.appendSize.noteInterruption(of: range)
            }
            return .fail(error)
        }
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
        let announced = resumption.adopt(response.headerFields, offer)
        switch status {
        case 413: return settle(error, of: range, offer, announced, &resumption)
        case 502, 504:
            resumption.appendSize.noteInterruption(of: range)
            return .fail(error)
        case 404 where offset == nil, 410 where offset == nil: resumption.forget()
        case 409 where offset != nil && offset != length: break
        default: return .fail(error)
        }
        return reject(error, &resumption) ?? locate(announced, &resumption)
    }

    /// An append was refused as too large. The next one is as small as the server says, or smaller than this one if
    /// nothing says how large it may be, such as the response of a proxy.
    ///
    /// - Parameters:
    ///   - offer: How the server resumed uploads when the append was sent.
    ///   - announced: The same after the refusal.
    private mutating func settle(
        _ error: UploadError, of range: Range<Int64>, _ offer: ResumptionOffer, _ announced: ResumptionOffer,
        _ resumption: inout Resumption
    ) -> Action {
        let count = range.upperBound - range.lowerBound
        guard announced.accepts(length) else { return .fail(error) }
        if announced.limits.maximumAppendBytes ?? .max < count {
            // A server could take one byte off its limit each time.
            return reject(error, &resumption) ?? locate(announced, &resumption)
        }
        let smallest = announced.limits.minimumAppendBytes ?? 0
        guard error.problem?["limit"] == nil, resumption.appendSize.noteRefusal(of: count, minimum: smallest) else {
            return .fail(error)
        }
        return locate(announced, &resumption)
    }

    /// Counts a rejection.
    ///
    /// - Returns: The end of the upload after too many; `nil` if the upload continues.
    private mutating func reject(_ error: UploadError, _ resumption: inout Resumption) -> Action? {
        resumption.noteRejection()
        if resumption.rejections >= resumption.policy.maximumRejections {
            return .fail(
                error.adding("It has rejected the bytes that it asked for \(resumption.rejections) times in a row."))
        }
        return resumption.failures >= resumption.policy.retry.maximumAttempts ? .fail(error) : nil
    }

    /// The error for limits in a response within which the rest of the form cannot be sent.
    func unacceptable(_ response: UploadResponse, by url: URL) -> UploadError {
        error(.unacceptableLimits(response, by: url, of: length), of: url)
    }
}
