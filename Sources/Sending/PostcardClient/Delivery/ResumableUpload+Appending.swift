import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardWire

// MARK: - What the server is missing

extension ResumableUpload {
    /// Sends the rest of the form, or as much of the rest as the server accepts in one request.
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

    /// Appends a range of the form's bytes to the upload resource. The range may be empty.
    func patch(
        _ resource: URL, with range: Range<Int64>, isLast: Bool, _ offer: ResumptionOffer,
        accepting statuses: Set<Int> = Self.anyStatus
    ) -> Action {
        var fields = request.resumptionFields(for: resource, offer.version)
        fields.uploadOffset = range.lowerBound
        fields.setUploadCompleteness(isLast, in: offer.version)
        if !range.isEmpty { fields.askForIncrementalDelivery(in: offer.version) }
        return send(
            .patch, at: resource, fields, body.slice(range, contentType: PartialUpload.mediaType), accepting: statuses)
    }

    /// Handles a successful response to an append.
    mutating func proceed(
        afterAppending range: Range<Int64>, to resource: URL, _ offer: ResumptionOffer, _ extent: Extent,
        with response: UploadResponse, _ resumption: inout Resumption
    ) -> Action {
        var response = response
        let isEarly = response.isEarly
        response.bytesSent += range.lowerBound
        guard range.upperBound < length else {
            return finish(response, to: range, offer, resource, &resumption)
        }
        if offer.isFinal(response) {
            // The server needs no more of the form.
            resumption.end()
            return finish(response, from: resource)
        }
        if isEarly {
            // Bytes that were not sent are missing on the server, even if the client accepts early responses.
            return .fail(error(.earlyResponse(response, by: resource, of: length), of: resource))
        }
        let possible = range.lowerBound...length
        let offset = response.headerFields.uploadOffset ?? range.upperBound
        guard possible.contains(offset) else {
            return cancel(resource, offer, because: Extent(offset: offset), isNotIn: possible, response, &resumption)
        }
        let offer = resumption.adopt(response, offer)
        guard offer.accepts(length) else {
            return cancel(resource, offer, then: .fail(unacceptable(response, by: resource)), &resumption)
        }
        let count = offset - range.lowerBound
        guard count >= min(ResumptionOffer.worthwhileBytes(of: length), range.upperBound - range.lowerBound) else {
            return reject(refusal(response, by: resource), &resumption) ?? locate(offer, &resumption)
        }
        resumption.forgiveRejections()
        resumption.appendSize.noteSuccess(of: count)
        resumption.advance(to: offset, of: length)
        return append(from: offset, to: resource, offer, extent, resumption)
    }

    /// Handles a successful response to the last append.
    private mutating func finish(
        _ response: UploadResponse, to range: Range<Int64>, _ offer: ResumptionOffer, _ resource: URL,
        _ resumption: inout Resumption
    ) -> Action {
        guard response.headerFields.uploadCompleteness(in: offer.version) == false else {
            resumption.appendSize.noteSuccess(of: range.upperBound - range.lowerBound)
            return .finish(response)
        }
        // The server does not know that these were the form's last bytes.
        var error = refusal(response, by: resource)
        error.delivery = .responseLost
        if let end = reject(error, &resumption) { return end }
        guard response.headerFields.uploadOffset ?? length >= length else { return locate(offer, &resumption) }
        return append(from: length, to: resource, offer, Extent(offset: length, isComplete: true), resumption)
    }

    /// Decides what to do after an append has failed.
    mutating func proceed(
        afterAppending range: Range<Int64>, to resource: URL, _ offer: ResumptionOffer, _ extent: Extent,
        with error: UploadError, _ resumption: inout Resumption
    ) -> Action {
        let status = error.response?.status.code
        if status.map({ ![404, 409, 410, 413].contains($0) }) ?? true { resumption.forgiveRejections() }
        return settle(self.error(error, of: resource, range), range, offer, resource, extent, &resumption)
    }

    /// Decides what to do with the upload resource after an append has failed. The request that began the upload counts
    /// as an append if a 104 has named the resource (draft-ietf-httpbis-resumable-upload, "Retry").
    mutating func settle(
        _ error: UploadError, _ range: Range<Int64>, _ offer: ResumptionOffer, _ resource: URL, _ extent: Extent,
        _ resumption: inout Resumption
    ) -> Action {
        let offer = resumption.adopt(error.announcement?.limits, offer)
        guard !offer.isExceeded(by: length) else { return cancel(resource, offer, then: .fail(error), &resumption) }
        guard let response = error.response, error.code == .refused else {
            if [.connectionLost, .timedOut].contains(error.code) {
                resumption.appendSize.noteInterruption(of: range)
            }
            return .fail(error)
        }
        let status = response.status.code
        let offset = response.currentOffset
        if extent.isComplete {
            // The failed request was an empty append to complete the upload. The response means that the upload is
            // complete, or that the server is busy.
            let mayPass = resumption.policy.retryPolicy.statuses.contains(status) && !offer.isFinal(response)
            if mayPass { return .fail(error) }
            return settle(finalRefusal: error, response, offer, resource, &resumption)
        }
        if offer.isFinal(response) {
            // This is the response to the form. The ordinary policy decides whether the form is sent again.
            resumption.end()
            return .fail(error)
        }
        let announced = resumption.adopt(response.headerFields.uploadLimits(in: offer.version), offer)
        switch status {
        case 413: return settle(error, of: range, announced, resource, &resumption)
        case 502, 504:
            resumption.appendSize.noteInterruption(of: range)
            return .fail(error)
        case 404 where offset == nil, 410 where offset == nil:
            if let end = forget(after: error, &resumption) { return end }
        case 409 where isConflict(response, offer): break
        // The bytes changed in transit, and the server has dropped them.
        case 400 where response.isDigestMismatch && offset != nil: break
        default: return .fail(error)
        }
        guard announced.accepts(length) || resumption.mustResume else { return sendWhole(&resumption) }
        return reject(error, &resumption) ?? locate(announced, &resumption)
    }

    /// Decides what to do after an append was refused as too large. The next append is within the limit that the
    /// response names. If the response names none, as from a proxy, the next append is smaller than the refused one.
    ///
    /// - Parameter offer: The server's offer to resume uploads, with the limits in the refusal.
    private mutating func settle(
        _ error: UploadError, of range: Range<Int64>, _ offer: ResumptionOffer, _ resource: URL,
        _ resumption: inout Resumption
    ) -> Action {
        let count = range.upperBound - range.lowerBound
        guard offer.accepts(length) else { return cancel(resource, offer, then: .fail(error), &resumption) }
        if offer.limits.maximumAppendBytes ?? .max < count {
            // The number of rejections is limited, because a server could lower its limit by one byte each time.
            return reject(error, &resumption) ?? locate(offer, &resumption)
        }
        let smallest = offer.limits.minimumAppendBytes ?? 0
        guard error.problem?["limit"] == nil else { return cancel(resource, offer, then: .fail(error), &resumption) }
        if resumption.appendSize.noteRefusal(of: count, minimum: smallest) { return locate(offer, &resumption) }
        guard !resumption.hasAskedForLimits else { return cancel(resource, offer, then: .fail(error), &resumption) }
        step = .askingForLimits(offer, resource, range, error)
        return send(.options, at: request.url, offer.version)
    }

    /// Handles the response to the second request for the server's limits ("Limits").
    mutating func proceed(
        afterAskingForLimitsOf resource: URL, _ range: Range<Int64>, _ offer: ResumptionOffer,
        with response: UploadResponse, otherwise error: UploadError, _ resumption: inout Resumption
    ) -> Action {
        if resumption.policy.saysNothing(response) { return .fail(refusal(response, by: request.url)) }
        resumption.hasAskedForLimits = true
        var limits = response.status.kind == .successful ? response.headerFields.uploadLimits(in: offer.version) : nil
        // A response to OPTIONS names the lifetime of new upload resources, not of this one.
        limits?.lifetimeSeconds = nil
        let offer = resumption.adopt(limits, offer)
        guard offer.accepts(length), offer.limits.maximumAppendBytes ?? .max < range.upperBound - range.lowerBound
        else { return cancel(resource, offer, then: .fail(error), &resumption) }
        return locate(offer, &resumption)
    }

    /// Whether a 409 means that the append began at another offset than the server's. A 409 without an offset, or with
    /// the offset of the append's end, may be the response to the form instead ("Retry").
    private func isConflict(_ response: UploadResponse, _ offer: ResumptionOffer) -> Bool {
        let isOfProtocol = response.headerFields.uploadCompleteness(in: offer.version) == false
        return isOfProtocol || response.currentOffset.map { $0 != length } ?? false
    }

    /// Counts a rejection: a response that shows that the server did not accept the bytes sent.
    ///
    /// - Returns: The end of the upload if there were too many rejections in a row; `nil` if the upload continues.
    mutating func reject(_ error: UploadError, _ resumption: inout Resumption) -> Action? {
        resumption.noteRejection()
        if resumption.rejections >= resumption.policy.maximumRejections {
            return .fail(
                error.adding("It has rejected the bytes that it asked for \(resumption.rejections) times in a row."))
        }
        return resumption.failures >= resumption.policy.retryPolicy.maximumAttempts ? .fail(error) : nil
    }

    /// The error for a response whose limits are too small for the rest of the form.
    func unacceptable(_ response: UploadResponse, by url: URL) -> UploadError {
        error(.unacceptableLimits(response, by: url, of: length), of: url)
    }
}
