import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardWire

// MARK: - What the server has

extension ResumableUpload {
    /// Asks the upload resource how many bytes the server has. Makes an upload resource if there is none.
    mutating func locate(_ offer: ResumptionOffer, _ resumption: inout Resumption) -> Action {
        if resumption.isExpired, !resumption.isUnclear { resumption.forget() }
        if let resource = resumption.resource {
            if resource.refusesHead { return probe(offer, resource) }
            step = .locating(offer, resource)
            return send(.head, at: resource.url, offer.version)
        }
        return offer.isListed ? create(offer) : invite(in: offer.version, &resumption)
    }

    /// Handles the response to the request for the upload resource's offset.
    mutating func proceed(
        afterLocating resource: Resumption.Resource, _ offer: ResumptionOffer, with response: UploadResponse,
        from url: URL, _ resumption: inout Resumption
    ) -> Action {
        switch response.status.code {
        case 200..<300:
            guard let offset = response.headerFields.uploadOffset else { break }
            let isComplete = offer.isFinal(response)
            return check(offer, resource, Extent(offset: offset, isComplete: isComplete), response, &resumption)
        // An empty append must not be sent to a server with a minimum append size.
        case 405 where offer.limits.minimumAppendBytes ?? 0 == 0, 501 where offer.limits.minimumAppendBytes ?? 0 == 0:
            resumption.noteRefusalOfHead()
            return locate(offer, &resumption)
        case _ where offer.isFinal(response):
            return settle(finalRefusal: refusal(response, by: url), response, offer, resource.url, &resumption)
        case 404, 410: break
        // The server has not noticed yet that an earlier request was interrupted.
        case 409, 423: return .fail(error(.locked(response, by: url), of: url))
        default: return .fail(refusal(response, by: url))
        }
        return forget(after: refusal(response, by: url), &resumption) ?? locate(offer, &resumption)
    }

    /// Forgets a deleted upload resource.
    ///
    /// - Returns: The end of the attempt, if the form may be stored and must not be sent again; `nil` if another
    ///   resource is made.
    mutating func forget(after error: UploadError, _ resumption: inout Resumption) -> Action? {
        resumption.forget()
        guard resumption.isUnclear else { return nil }
        resumption.end()
        return .fail(self.error(.goneUnclear(error), of: request.url, 0..<length))
    }

    /// Sends an empty append to learn the server's offset. A server at another offset responds with 409
    /// (draft-ietf-httpbis-resumable-upload, "Upload Append").
    private mutating func probe(_ offer: ResumptionOffer, _ resource: Resumption.Resource) -> Action {
        let offset = resource.acknowledged
        step = .probing(offer, resource, at: offset)
        return patch(resource.url, with: offset..<offset, isLast: false, offer)
    }

    /// Handles the response to an append without content.
    mutating func proceed(
        afterProbing resource: Resumption.Resource, at offset: Int64, _ offer: ResumptionOffer,
        with response: UploadResponse, from url: URL, _ resumption: inout Resumption
    ) -> Action {
        switch response.status.code {
        case 200..<300 where !offer.isFinal(response):
            return check(offer, resource, Extent(offset: offset), response, &resumption)
        case 409:
            guard let offset = response.currentOffset else { return .fail(refusal(response, by: url)) }
            // A server that has all bytes may have completed the upload.
            let extent = Extent(offset: offset, isComplete: offset == length)
            return check(offer, resource, extent, response, &resumption)
        case _ where offer.isFinal(response):
            return check(offer, resource, Extent(offset: length, isComplete: true), response, &resumption)
        case 404, 410:
            return forget(after: refusal(response, by: url), &resumption) ?? locate(offer, &resumption)
        default: return .fail(refusal(response, by: url))
        }
    }

    /// Decides how to continue after the server has reported its offset.
    private mutating func check(
        _ offer: ResumptionOffer, _ resource: Resumption.Resource, _ extent: Extent, _ response: UploadResponse,
        _ resumption: inout Resumption
    ) -> Action {
        let possible = resource.possibleOffsets(of: length)
        guard possible.contains(extent.offset), !extent.isComplete || extent.offset == length else {
            return cancel(resource.url, offer, because: extent, isNotIn: possible, response, &resumption)
        }
        let offer = resumption.adopt(response, offer)
        guard extent.isComplete || offer.accepts(length) else {
            // The server does not have the whole form, so it is safe to send the form again.
            let canSendWhole = resumption.isUnclear && !offer.isExceeded(by: length)
            return cancel(
                resource.url, offer,
                then: canSendWhole ? .sendWhole : .fail(unacceptable(response, by: resource.url)), &resumption)
        }
        resumption.appendSize.noteOffset(extent.offset, minimum: offer.limits.minimumAppendBytes ?? 0)
        return check(offer, resource.url, extent, &resumption)
    }

    mutating func check(
        _ offer: ResumptionOffer, _ resource: URL, _ extent: Extent, _ resumption: inout Resumption
    ) -> Action {
        resumption.advance(to: extent.offset, of: length)
        step = .checking(offer, resource, extent)
        let isInherited = resumption.resource?.origin == .earlierProcess(isChecked: false)
        return .check(readBytes: isInherited ? extent.offset : nil)
    }

    /// Deletes an upload resource that reports an impossible offset.
    mutating func cancel(
        _ resource: URL, _ offer: ResumptionOffer, because extent: Extent, isNotIn possible: ClosedRange<Int64>,
        _ response: UploadResponse, _ resumption: inout Resumption
    ) -> Action {
        let contradiction =
            if extent.offset > possible.upperBound {
                "which has only \(length)"
            } else if extent.offset < possible.lowerBound {
                "after it had acknowledged \(possible.lowerBound)"
            } else {
                "which has \(length), and that it is complete"
            }
        let error = error(
            .impossibleOffset(extent.offset, response, by: resource, contradiction), of: resource)
        return cancel(resource, offer, then: .fail(error), &resumption)
    }

    /// Decides what to do after a final refusal. The refusal is either the response to the form, or says that the form
    /// was sent before and its response was lost. In the second case the resource may still have that response.
    mutating func settle(
        finalRefusal error: UploadError, _ response: UploadResponse, _ offer: ResumptionOffer, _ resource: URL,
        _ resumption: inout Resumption
    ) -> Action {
        let isLost =
            response.problem?.type == ResumptionProblemType.completed.uri
            || [404, 405, 409, 410].contains(response.status.code)
        guard isLost, ![404, 410].contains(response.status.code) else {
            resumption.end()
            return .fail(isLost ? error.afterLostResponse : error)
        }
        step = .fetching(offer, resource, error.afterLostResponse)
        return send(.get, at: resource, offer.version)
    }

    /// Handles the response to the request that asks the upload resource for the form's lost response. A server that no
    /// longer has the lost response refuses, or reports its offset as in a response to HEAD.
    func proceed(
        afterFetchingFrom url: URL, _ offer: ResumptionOffer, with response: UploadResponse,
        otherwise lost: UploadError, _ resumption: inout Resumption
    ) -> Action {
        guard offer.isFinal(response), response.status != .noContent else {
            return proceed(afterFetchingWith: refusal(response, by: url), otherwise: lost, &resumption)
        }
        resumption.end()
        guard acceptedStatuses.contains(response.status.code) else { return .fail(refusal(response, by: url)) }
        var response = response
        response.bytesSent = length
        return .finish(response)
    }

    /// Decides what to do after the request for the lost response has failed. If the failure may pass, the upload
    /// resource is kept, and the next attempt asks again.
    func proceed(
        afterFetchingWith error: UploadError, otherwise lost: UploadError, _ resumption: inout Resumption
    ) -> Action {
        guard !resumption.policy.retryPolicy.mayPass(error) else { return .fail(error.afterLostResponse) }
        resumption.end()
        return .fail(lost)
    }
}

extension UploadError {
    /// This error, changed to say that the server has the form and that its response was lost.
    fileprivate var afterLostResponse: UploadError {
        var error = adding("The server has the whole form, but its response was lost.")
        error.delivery = .responseLost
        return error
    }
}

extension ResumptionOffer {
    /// Whether a successful response names no draft version, or the version of this offer.
    func hasVersion(of response: UploadResponse) -> Bool {
        guard response.status.kind == .successful, let number = version.interopNumber,
            response.headerFields.contains(.uploadDraftInteropVersion)
        else { return true }
        return response.headerFields.interopNumber == number
    }

    /// Whether a response says that the upload is complete, so that nothing can be appended. Such a response to an
    /// append is the response to the whole form (draft-ietf-httpbis-resumable-upload, "Upload Append").
    func isFinal(_ response: UploadResponse) -> Bool {
        response.headerFields.uploadCompleteness(in: version) == true
    }
}

extension UploadResponse {
    /// The offset at which the server continues, from the `Upload-Offset` field or from the problem details.
    var currentOffset: Int64? {
        if let offset = headerFields.uploadOffset { return offset }
        let member = problem?[ResumptionProblemType.expectedOffset]?.number
        return member.flatMap { Int64(exactly: $0) }.flatMap { $0 >= 0 ? $0 : nil }
    }
}
