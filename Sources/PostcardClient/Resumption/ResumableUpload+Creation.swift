import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardResumption

// MARK: - The creation of the upload resource

extension ResumableUpload {
    /// The problems of `postcard serve` when it cannot keep an incomplete form; in one request it may accept it.
    private static let noRoomCodes: Set = ["store-full", "too-many-unfinished-uploads"]

    /// Has the server make an upload resource, with no more of the form than it wants at least.
    mutating func create(_ offer: ResumptionOffer) -> Action {
        let content = 0..<(offer.limits.minimumAppendBytes ?? 0)
        step = .creating(offer, content)
        var fields = request.resumptionFields(for: request.url, offer.version)
        fields.setUploadCompleteness(false, in: offer.version)
        fields.uploadLength = length
        return send(request.method, at: request.url, fields, body.slice(content))
    }

    /// The server was asked to make an upload resource.
    mutating func create(
        _ response: UploadResponse, from url: URL, with content: Range<Int64>, _ offer: ResumptionOffer,
        _ resumption: inout Resumption
    ) -> Action {
        switch response.status.code {
        case 503 where Self.noRoomCodes.contains(response.problem?["code"]?.text ?? ""):
            // Room comes back: the next form asks for a resource again.
            return sendWhole(&resumption)
        case 300... where offer.isFinal(response):
            // The form was refused by its first bytes or by its header.
            resumption.end()
            return .fail(refusal(response, by: url))
        case 200..<300:
            guard !offer.isFinal(response), let resource = resource(in: response.headerFields, from: url) else { break }
            resumption.create(resource, offer, sent: content.upperBound)
            let offer = resumption.adopt(response.headerFields, offer)
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
        case 404, 405, 501: break
        default:
            if response.status.kind == .serverError { note(response.announcement, content, offer, &resumption) }
            return .fail(refusal(response, by: url))
        }
        support = .unsupported
        return sendWhole(&resumption)
    }

    /// The creation was interrupted: the next attempt asks the upload resource if a 104 has named it.
    mutating func handle(
        _ error: UploadError, whileCreating offer: ResumptionOffer, with content: Range<Int64>,
        _ resumption: inout Resumption
    ) -> Action {
        if !note(error.announcement, content, offer, &resumption), [.connectionLost, .timedOut].contains(error.code) {
            resumption.noteLostCreation()
        }
        return .fail(self.error(error, of: request.url))
    }

    /// Records the upload resource that a 104 has named.
    ///
    /// - Returns: Whether there is one.
    @discardableResult
    private func note(
        _ announcement: ResumptionAnnouncement?, _ content: Range<Int64>, _ offer: ResumptionOffer,
        _ resumption: inout Resumption
    ) -> Bool {
        guard let announcement, let resource = announcedResource(in: announcement) else { return false }
        resumption.create(resource, offer, sent: content.upperBound)
        _ = resumption.adopt(announcement.headerFields, offer)
        return true
    }

    private func announcedResource(in announcement: ResumptionAnnouncement?) -> URL? {
        announcement.flatMap { resource(in: $0.headerFields, from: $0.url) }
    }

    /// The upload resource in a response to the creation.
    private func resource(in fields: HTTPFields, from url: URL) -> URL? {
        guard let location = fields[.location],
            let resource = URL(string: location, relativeTo: url)?.absoluteURL, resource.host() != nil,
            // Behind a proxy that encrypts, a server may not know its own scheme.
            resource.scheme?.lowercased() == "https" || request.url.scheme?.lowercased() == "http"
        else { return nil }
        return resource
    }
}
