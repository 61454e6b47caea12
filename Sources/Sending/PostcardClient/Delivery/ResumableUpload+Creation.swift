import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardWire

// MARK: - The creation of the upload resource

extension ResumableUpload {
    /// The problem codes with which `postcard serve` refuses to keep an incomplete form. The server may still accept
    /// the whole form in one request.
    private static let noRoomCodes: Set = ["store-full", "too-many-unfinished-uploads"]

    /// Asks the server to make an upload resource, and sends the minimum number of bytes.
    mutating func create(_ offer: ResumptionOffer) -> Action {
        let minimum = offer.version.has(.emptyCreation) ? 0 : offer.limits.minimumAppendBytes ?? 0
        let content = 0..<minimum
        step = .creating(offer, content)
        var fields = request.resumptionFields(for: request.url, offer.version)
        fields.setUploadCompleteness(false, in: offer.version)
        fields.setUploadLength(length, in: offer.version)
        if !content.isEmpty { fields.askForIncrementalDelivery(in: offer.version) }
        return send(request.method, at: request.url, fields, body.slice(content))
    }

    /// Handles the response to the creation of an upload resource.
    mutating func proceed(
        afterCreatingWith content: Range<Int64>, _ offer: ResumptionOffer, with response: UploadResponse, from url: URL,
        _ resumption: inout Resumption
    ) -> Action {
        switch response.status.code {
        case 503 where Self.noRoomCodes.contains(response.problem?["code"]?.text ?? ""):
            // The lack of space is temporary, so the next form asks for an upload resource again.
            return sendWhole(&resumption)
        case _ where offer.isFinal(response):
            // The server refused the form because of its first bytes or header, or does not need the rest of the form.
            resumption.end()
            return finish(response, from: url)
        case 200..<300:
            if let resource = resource(in: response.headerFields[.location], from: url) {
                return begin(with: resource, response, from: url, content, offer, &resumption)
            }
        case 404, 405, 501: break
        case 400 where !response.headerFields.contains(.location) && !response.headerFields.contains(.uploadLimit):
            if let next = resumption.noteRefusal(of: offer.version) { return create(offer, in: next, &resumption) }
            let versions = resumption.policy.versions.compactMap(\.interopNumber)
            return .fail(error(.refusedVersions(response, by: url, versions), of: url))
        default:
            return settle(refusal(response, by: url), content, offer, &resumption)
        }
        support = .unlisted(inviting: nil)
        return sendWhole(&resumption)
    }

    private mutating func create(
        _ offer: ResumptionOffer, in version: ResumptionVersion, _ resumption: inout Resumption
    ) -> Action {
        let offer = offer.inVersion(version)
        resumption.begin(offer)
        return create(offer)
    }

    /// Starts to use the upload resource that the server has made.
    private mutating func begin(
        with resource: URL, _ response: UploadResponse, from url: URL, _ content: Range<Int64>,
        _ offer: ResumptionOffer, _ resumption: inout Resumption
    ) -> Action {
        var offer = offer
        if !offer.hasVersion(of: response) {
            // If the response names another version than the request, the client continues in the response's version.
            let number = response.headerFields.interopNumber
            guard let version = resumption.policy.versions.first(where: { $0.interopNumber == number }) else {
                let error = error(.changedVersion(response, by: url), of: url)
                return cancel(resource, offer, then: .fail(error), &resumption)
            }
            _ = resumption.noteRefusal(of: offer.version)
            offer = offer.inVersion(version)
        }
        // The limits in the response to OPTIONS hold for every version. So the next upload can begin with this version.
        if !resumption.refusedVersions.isEmpty { support = .offered(offer) }
        resumption.create(resource, offer)
        offer = resumption.adopt(response, offer)
        if let announced = announcedResource(in: response.announcement), announced != resource {
            let error = error(.changedLocation(response, by: url), of: url)
            return cancel(resource, offer, then: .fail(error), &resumption)
        }
        guard offer.accepts(length) else {
            let isTooLarge = offer.isExceeded(by: length)
            return cancel(
                resource, offer, then: isTooLarge ? .fail(unacceptable(response, by: resource)) : .sendWhole,
                &resumption)
        }
        return check(offer, resource, Extent(offset: content.upperBound), &resumption)
    }

    /// Decides what to do after the creation of an upload resource was interrupted.
    mutating func proceed(
        afterCreatingWith content: Range<Int64>, _ offer: ResumptionOffer, with error: UploadError,
        _ resumption: inout Resumption
    ) -> Action {
        if [.connectionLost, .timedOut].contains(error.code), announcedResource(in: error.announcement) == nil {
            resumption.noteLostCreation()
        }
        return settle(self.error(error, of: request.url), content, offer, &resumption)
    }

    /// Ends the upload with the server's response to the form.
    func finish(_ response: UploadResponse, from url: URL) -> Action {
        acceptedStatuses.contains(response.status.code) ? .finish(response) : .fail(refusal(response, by: url))
    }

    /// Decides what to do after the request that began the upload has failed. If a 104 has named an upload resource,
    /// the request counts as an append to that resource, unless the response ends the upload ("Retry").
    private mutating func settle(
        _ error: UploadError, _ range: Range<Int64>, _ offer: ResumptionOffer, _ resumption: inout Resumption
    ) -> Action {
        guard let resource = announcedResource(in: error.announcement) else { return .fail(error) }
        let isEnd = error.response.map { response in
            let completeness = response.headerFields.uploadCompleteness(in: offer.version)
            return completeness
                ?? (response.status.kind == .clientError && !resumption.policy.retryPolicy.mayPass(error))
        }
        if isEnd ?? false { return .fail(error) }
        resumption.create(resource, offer)
        return settle(error, range, offer, resource, Extent(), &resumption)
    }

    private func announcedResource(in announcement: ResumptionAnnouncement?) -> URL? {
        announcement.flatMap { resource(in: $0.location, from: $0.url) }
    }

    /// The URL of the upload resource in a response to the creation.
    func resource(in location: String?, from url: URL) -> URL? {
        guard let location, let resource = URL(string: location, relativeTo: url)?.absoluteURL, resource.host() != nil,
            // Behind a proxy that uses TLS, the server may not know that its scheme is https.
            resource.scheme?.lowercased() == "https" || request.url.scheme?.lowercased() == "http"
        else { return nil }
        return resource
    }
}

// MARK: - Servers without OPTIONS

extension ResumableUpload {
    /// Sends the whole form, so that a server without OPTIONS can name an upload resource in a 104. Other servers
    /// ignore the header fields ("Upgrading To Resumable Uploads").
    ///
    /// - Parameter version: The version of the draft; `nil` for an ordinary upload.
    mutating func invite(in version: ResumptionVersion?, _ resumption: inout Resumption) -> Action {
        support = .unlisted(inviting: version)
        let versions = resumption.policy.invitations
        // An earlier process may have got the URL of the upload resource from a 104.
        if resumption.resource != nil { return begin(.unlisted(version ?? versions[0]), &resumption) }
        guard let first = version else { return sendWhole(&resumption) }
        let version = versions.drop { $0 != first }.first { !resumption.refusedVersions.contains($0) } ?? first
        resumption.end()
        step = .inviting(version)
        var fields = request.headerFields
        fields.setResumptionVersion(version)
        fields.setUploadCompleteness(true, in: version)
        fields.setUploadLength(length, in: version)
        fields.askForIncrementalDelivery(in: version)
        return send(request.method, at: request.url, fields, body, accepting: acceptedStatuses)
    }

    /// Handles a successful response to the whole form.
    mutating func proceed(
        afterInvitingIn version: ResumptionVersion, with response: UploadResponse, from url: URL,
        _ resumption: inout Resumption
    ) -> Action {
        let offer = ResumptionOffer.unlisted(version)
        let completeness = response.headerFields.uploadCompleteness(in: version)
        let isAnswered = response.announcement?.location != nil || completeness != nil
        support = .unlisted(inviting: isAnswered ? version : resumption.policy.invitation(after: version))
        guard completeness == false else { return .finish(response) }
        // The server does not know that these were the form's last bytes.
        var error = refusal(response, by: url)
        error.delivery = .responseLost
        guard
            let resource = announcedResource(in: response.announcement)
                ?? resource(in: response.headerFields[.location], from: url)
        else { return .fail(error.adding("The form is not complete, and the server names no address for the rest.")) }
        resumption.create(resource, offer)
        return reject(error, &resumption) ?? locate(resumption.adopt(response, offer), &resumption)
    }

    /// Decides what to do after the whole form was refused, or its request was interrupted.
    mutating func proceed(
        afterInvitingIn version: ResumptionVersion, with error: UploadError, _ resumption: inout Resumption
    ) -> Action {
        let error = self.error(error, of: request.url, 0..<length)
        let completeness = error.response?.headerFields.uploadCompleteness(in: version)
        let next = resumption.policy.invitation(after: version)
        if error.announcement?.location != nil || completeness != nil {
            support = .unlisted(inviting: version)
        } else if let response = error.response, !resumption.policy.saysNothing(response) {
            support = .unlisted(inviting: next)
        } else if error.response != nil || [.connectionLost, .timedOut].contains(error.code) {
            // This failure says nothing about the server. The next attempt tries another version.
            _ = resumption.noteRefusal(of: version)
        }
        if error.response?.status == .badRequest, error.announcement?.location == nil, completeness != true,
            !resumption.policy.retryPolicy.mayPass(error)
        {
            // The server may have refused the version or the draft's header fields, and not the form.
            return completeness == nil ? sendWhole(&resumption) : invite(in: next, &resumption)
        }
        return settle(error, 0..<length, ResumptionOffer.unlisted(version), &resumption)
    }
}
