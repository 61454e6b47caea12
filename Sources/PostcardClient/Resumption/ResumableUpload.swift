import HTTPTypes
import PostcardForm
import PostcardResumption

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One attempt of a resumable upload: finds out whether the server supports resumption, makes or finds the upload
/// resource, and sends what the server is missing.
///
/// Every step is a whole request with a final response, so that every transport can do it: the URL of the upload
/// resource is in the response to a creation without content, and not in a 104 (Upload Resumption Supported).
struct ResumableUpload {
    private let exchange: UploadExchange
    private let request: UploadRequest
    private let body: UploadBody
    private let length: Int64
    private let acceptedStatuses: Set<Int>

    /// How much of the form the server has.
    private struct Extent {
        var offset: Int64 = 0
        /// Whether the server knows that this is all.
        var isComplete = false
    }

    /// Every status that ends a request: all but those of redirects that are followed.
    private static let anyStatus = Set(100..<600).subtracting([307, 308])

    /// - Parameters:
    ///   - request: The request of an ordinary upload. The result is `nil` if it cannot be resumed.
    ///   - policy: The policy, with the minimum size.
    ///   - acceptedStatuses: The statuses of success.
    ///   - exchange: Sends the requests.
    init?(
        _ request: UploadRequest, _ policy: ResumptionPolicy, accepting acceptedStatuses: Set<Int>,
        by exchange: UploadExchange
    ) {
        guard let body = request.body, let length = body.contentLength, body.isReplayable,
            length >= policy.minimumBytes
        else { return nil }
        self.request = request
        self.body = body
        self.length = length
        self.acceptedStatuses = acceptedStatuses
        self.exchange = exchange
    }

    /// Sends what the server is missing.
    ///
    /// - Returns: The response to the whole form; `nil` if the server does not support resumption, and an ordinary
    ///   upload must be made.
    func response(_ resumption: inout Resumption) async throws -> UploadResponse? {
        guard let offer = try await offer(resumption), offer.accepts(length) else {
            try resumption.end()
            return nil
        }
        resumption.begin(request, offer)
        while true {
            guard let (resource, extent) = try await extent(&resumption, offer) else {
                try resumption.end()
                return nil
            }
            do {
                try await prepare(to: extent.offset, &resumption)
                return try await append(from: extent, to: resource, offer, &resumption)
            } catch let error as UploadError {
                try await settle(error, extent, &resumption)
            }
        }
    }

    /// Prepares to resume at an offset.
    ///
    /// - Throws: ``UploadError`` if a file has changed.
    private func prepare(to offset: Int64, _ resumption: inout Resumption) async throws {
        resumption.advance(to: offset, of: length)
        do {
            try body.layout.checkFiles()
            if resumption.takeIsInherited() { try await body.digest(first: offset) }
        } catch let error as FormError {
            throw UploadError.form(error)
        }
    }
}

// MARK: - What the server has

extension ResumableUpload {
    /// How the server supports resumption; `nil` if it does not.
    private func offer(_ resumption: Resumption) async throws -> ResumptionOffer? {
        let policy = resumption.policy
        if let offer = resumption.offer { return offer }
        if let known = policy.offers.known(for: request.url) { return known }
        var isCertain = true
        for version in policy.versions {
            let response: UploadResponse
            let url: URL
            do {
                (response, url) = try await ask(.options, at: request.url, version, accepting: Self.anyStatus)
            } catch let error as UploadError where error.code == .connectionLost && resumption.resource == nil {
                // Some servers close the connection at a method that they do not know.
                return nil
            }
            if response.status.kind == .successful, response.headerFields.offersResumableUploads(in: version) {
                let limits = response.headerFields.uploadLimits(in: version)
                let offer = ResumptionOffer(version: version, limits: limits ?? UploadLimits())
                policy.offers.note(offer, for: request.url)
                return offer
            }
            if policy.retry.statuses.union([401, 403]).contains(response.status.code) {
                // A busy proxy or an expired token is no reason to give up what is on the server already.
                guard resumption.resource == nil else { throw refusal(response, by: url) }
                isCertain = false
            }
        }
        if isCertain { policy.offers.note(nil, for: request.url) }
        return nil
    }

    /// The upload resource and how much of the form it has; made if there is none.
    ///
    /// - Returns: `nil` if the server does not make one after all.
    private func extent(
        _ resumption: inout Resumption, _ offer: ResumptionOffer
    ) async throws -> (resource: URL, Extent)? {
        if let resource = resumption.resource {
            if let extent = try await extent(of: resource, offer, &resumption) {
                // One that has all of it may be about to store the form.
                if !extent.isComplete, extent.offset < length { resumption.noteIncomplete() }
                return (resource, extent)
            }
            try resumption.forget()
        }
        guard let resource = try await create(offer, noting: resumption.policy.offers) else { return nil }
        try resumption.create(resource)
        return (resource, Extent())
    }

    /// Asks an upload resource how much it has.
    ///
    /// - Returns: `nil` if it is gone.
    /// - Throws: ``UploadError`` if it claims to have bytes that were never sent: it is not used again.
    private func extent(
        of resource: URL, _ offer: ResumptionOffer, _ resumption: inout Resumption
    ) async throws -> Extent? {
        let (response, url) = try await ask(.head, at: resource, offer.version, accepting: Self.anyStatus)
        switch response.status.code {
        case 404, 410:
            return nil
        case 200..<300:
            guard let offset = response.headerFields.uploadOffset else { return nil }
            if let sent = resumption.maximumOffset, offset > sent {
                try resumption.forget()
                throw UploadError.impossibleOffset(offset, response, by: resource, sent: sent)
            }
            guard offset <= length else { return nil }
            let isComplete = response.headerFields.uploadCompleteness(in: offer.version) ?? false
            return Extent(offset: offset, isComplete: isComplete)
        default:
            throw refusal(response, by: url)
        }
    }

    /// The problems of `postcard serve` when it cannot keep an incomplete form; in one request it may accept it.
    private static let noRoomCodes: Set = ["store-full", "too-many-unfinished-uploads"]

    /// Has the server make an upload resource, without any of the form yet.
    ///
    /// - Parameters:
    ///   - offer: How the server supports resumption.
    ///   - offers: Where a response is noted that means that the address does not support it after all.
    /// - Returns: The URL of the resource; `nil` if the server does not make one.
    private func create(_ offer: ResumptionOffer, noting offers: ResumptionOffers) async throws -> URL? {
        var fields = fields(for: request.url, offer.version)
        fields.setUploadCompleteness(false, in: offer.version)
        fields.uploadLength = length
        let creation = try UploadRequest(
            url: request.url, method: request.method, headerFields: fields, body: body.slice(0..<0),
            maximumResponseBytes: request.maximumResponseBytes)
        let (response, url) = try await send(creation, accepting: Self.anyStatus)
        switch response.status.code {
        case 200..<300:
            guard let location = response.headerFields[.location],
                let resource = URL(string: location, relativeTo: url)?.absoluteURL, resource.host() != nil,
                // Behind a proxy that encrypts, a server may not know its own scheme.
                resource.scheme?.lowercased() == "https" || request.url.scheme?.lowercased() == "http"
            else {
                offers.note(nil, for: request.url)
                return nil
            }
            return resource
        case 404, 405, 501:
            offers.note(nil, for: request.url)
            return nil
        case 503 where Self.noRoomCodes.contains(response.problem?["code"]?.text ?? ""):
            // Room comes back: the next form asks for a resource again.
            return nil
        default:
            throw refusal(response, by: url)
        }
    }
}

// MARK: - What the server is missing

extension ResumableUpload {
    /// Sends the rest of the form, in as many requests as the server's limits need.
    ///
    /// - Returns: The response to the last of them, which is that to the form.
    private func append(
        from extent: Extent, to resource: URL, _ offer: ResumptionOffer, _ resumption: inout Resumption
    ) async throws -> UploadResponse {
        var offset = extent.offset
        while true {
            let count = min(length - offset, max(offer.limits.maximumAppendBytes ?? .max, 1))
            let isLast = offset + count == length
            var fields = fields(for: resource, offer.version)
            fields.uploadOffset = offset
            fields.setUploadCompleteness(isLast, in: offer.version)
            let append = try UploadRequest(
                url: resource, method: .patch, headerFields: fields,
                body: body.slice(offset..<offset + count, contentType: PartialUpload.mediaType),
                maximumResponseBytes: request.maximumResponseBytes)
            if isLast {
                var response = try await send(
                    append, noting: &resumption, upTo: offset + count, accepting: acceptedStatuses)
                response.bytesSent += offset
                return response
            }
            let response = try await send(
                append, noting: &resumption, upTo: offset + count, accepting: Set(200..<300), isLast: false)
            // Bytes that were not sent are missing, even if the client accepts early responses to the whole form.
            if response.isEarly { throw UploadError.earlyResponse(response, by: resource, of: count) }
            offset += count
            resumption.advance(to: offset, of: length)
        }
    }

    /// Sends an append, and records what the server may have afterwards: nothing more if it has rejected the append.
    private func send(
        _ append: UploadRequest, noting resumption: inout Resumption, upTo end: Int64, accepting statuses: Set<Int>,
        isLast: Bool = true
    ) async throws -> UploadResponse {
        do {
            let response = try await send(append, accepting: statuses, isLast: isLast).response
            resumption.noteSent(upTo: end)
            return response
        } catch {
            let status = (error as? UploadError)?.response?.status.code
            if status.map({ ![404, 409, 410].contains($0) }) ?? true { resumption.noteSent(upTo: end) }
            throw error
        }
    }

    /// Decides what the failure of an append means for the upload resource.
    ///
    /// - Throws: The error, unless the upload can continue at once: from the server's offset, or from the start.
    private func settle(
        _ error: UploadError, _ extent: Extent, _ resumption: inout Resumption
    ) async throws {
        guard let response = error.response, error.code == .refused else { throw error }
        let status = response.status.code
        let offset = response.headerFields.uploadOffset
        if extent.isComplete {
            // The server was asked for its response again: it has sent it, or no longer has it.
            try resumption.forget()
            let isCompleted = response.problem?.type == ResumptionProblemType.completed.uri
            guard isCompleted || [404, 405, 409, 410].contains(status) else { throw error }
            var lost = error.adding("The server has the whole form, but its response was lost.")
            lost.delivery = .responseLost
            throw lost
        }
        switch status {
        case 404 where offset == nil, 410 where offset == nil:
            try resumption.forget()
        case 409 where offset != nil && offset != length:
            break
        default:
            throw error
        }
        resumption.noteRejection()
        if resumption.rejections >= resumption.policy.maximumRejections {
            throw error.adding("It has rejected the bytes that it asked for \(resumption.rejections) times in a row.")
        }
        if resumption.failures >= resumption.policy.retry.maximumAttempts { throw error }
    }
}

// MARK: - Requests

extension ResumableUpload {
    /// Sends a request without a body.
    private func ask(
        _ method: HTTPRequest.Method, at url: URL, _ version: ResumptionVersion, accepting statuses: Set<Int>
    ) async throws -> (response: UploadResponse, url: URL) {
        let request = try UploadRequest(
            url: url, method: method, headerFields: fields(for: url, version), body: nil,
            maximumResponseBytes: request.maximumResponseBytes)
        return try await send(request, accepting: statuses)
    }

    /// The error for a response that is neither a success nor a reason for an ordinary upload.
    private func refusal(_ response: UploadResponse, by url: URL) -> UploadError {
        var error = UploadError.refused(response, by: url)
        error.hasLeftOrigin = !url.hasOrigin(of: request.url)
        return error
    }

    private func send(
        _ request: UploadRequest, accepting statuses: Set<Int>, isLast: Bool = false
    ) async throws -> (response: UploadResponse, url: URL) {
        do {
            return try await exchange.response(
                to: request, accepting: statuses, isSecret: request.url != self.request.url)
        } catch var error as UploadError {
            // A form is not a form to any server until its last byte was sent.
            if !isLast, error.delivery == .responseLost { error.delivery = .neverArrived }
            if !request.url.hasOrigin(of: self.request.url) { error.hasLeftOrigin = true }
            throw error
        }
    }

    private func fields(for url: URL, _ version: ResumptionVersion) -> HTTPFields {
        request.resumptionFields(for: url, version)
    }
}

extension UploadRequest {
    /// The header fields of every request about this upload. Another origin gets only the harmless ones.
    func resumptionFields(for url: URL, _ version: ResumptionVersion) -> HTTPFields {
        var fields = url.hasOrigin(of: self.url) ? headerFields : headerFields.harmless
        fields[.expect] = nil
        fields.setResumptionVersion(version)
        return fields
    }
}
