import HTTPTypes
import PostcardForm
import PostcardResumption

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One attempt of an upload that can be resumed: asks whether the server resumes it, makes or finds the upload resource,
/// and sends what it has not got.
///
/// Nothing of this needs to be seen before a request has ended, so that every transport can do it: the upload resource
/// comes with the answer to a creation without content, and not with a 104 (Upload Resumption Supported).
struct ResumableAttempt {
    private let exchange: UploadExchange
    private let request: UploadRequest
    private let layout: FormLayout
    private let length: Int64
    private let acceptedStatuses: Set<Int>

    /// How much of the form the server has.
    private struct Extent {
        var offset: Int64 = 0
        /// Whether the server knows that this is all.
        var isComplete = false
    }

    /// Statuses of which an answer says something by itself: all but those of a redirect that is followed.
    private static let anyStatus = Set(100..<600).subtracting([307, 308])

    /// - Parameters:
    ///   - request: What an ordinary upload would send; `nil` is made of one that cannot be resumed.
    ///   - policy: From which size on it is worth it.
    ///   - acceptedStatuses: The statuses that say that the server has the form.
    ///   - exchange: By which requests are sent.
    init?(
        _ request: UploadRequest, _ policy: ResumptionPolicy, accepting acceptedStatuses: Set<Int>,
        by exchange: UploadExchange
    ) {
        guard let layout = request.body, let length = layout.contentLength, layout.isReplayable,
            length >= policy.minimumBytes
        else { return nil }
        self.request = request
        self.layout = layout
        self.length = length
        self.acceptedStatuses = acceptedStatuses
        self.exchange = exchange
    }

    /// Sends what the server has not got.
    ///
    /// - Returns: The answer to the whole form; `nil` where the server does not resume uploads, and an ordinary one is
    ///   to be made.
    func response(_ resumption: inout Resumption) async throws -> UploadResponse? {
        guard let offer = try await offer(resumption), offer.takes(length) else {
            try resumption.end()
            return nil
        }
        resumption.begin(request, offer)
        while true {
            guard let (resource, extent) = try await extent(&resumption, offer) else {
                resumption.policy.offers.note(nil, of: request.url)
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

    /// Gets ready to go on from an offset.
    ///
    /// - Throws: ``UploadError`` where a file is not what it was.
    private func prepare(to offset: Int64, _ resumption: inout Resumption) async throws {
        resumption.advance(to: offset)
        do {
            try layout.checkFiles()
            if resumption.takeIsInherited(), layout.observer != nil { try await passOver(offset) }
        } catch let error as FormError {
            throw UploadError.form(error)
        }
    }

    /// Shows what an earlier process has sent to whoever watches the body go out.
    private func passOver(_ count: Int64) async throws {
        var bytes = layout.slice(0..<count)
        bytes.pace = nil
        for try await _ in bytes.chunks() { try Task.checkCancellation() }
    }
}

// MARK: - What the server has

extension ResumableAttempt {
    /// How the server takes resumable uploads; `nil` where it does not.
    private func offer(_ resumption: Resumption) async throws -> ResumptionOffer? {
        let policy = resumption.policy
        if let offer = resumption.offer { return offer }
        if let answer = policy.offers.answer(of: request.url) { return answer }
        var isCertain = true
        for version in policy.versions {
            let response: UploadResponse
            do {
                response = try await ask(.options, at: request.url, version, accepting: Self.anyStatus)
            } catch let error as UploadError where error.code == .connectionLost && resumption.resource == nil {
                // Some servers close the connection on a method that they do not know.
                return nil
            }
            if response.status.kind == .successful, response.headerFields.offersResumableUploads(in: version) {
                let limits = response.headerFields.uploadLimits(in: version)
                let offer = ResumptionOffer(version: version, limits: limits ?? UploadLimits())
                policy.offers.note(offer, of: request.url)
                return offer
            }
            if policy.retryPolicy.statuses.union([401, 403]).contains(response.status.code) {
                // What is on the server already is not given up for a busy proxy or an old token.
                guard resumption.resource == nil else { throw UploadError.refused(response, by: request.url) }
                isCertain = false
            }
        }
        if isCertain { policy.offers.note(nil, of: request.url) }
        return nil
    }

    /// The upload resource and how much of the form it has; made where there is none any more.
    ///
    /// - Returns: `nil` where the server makes none after all.
    private func extent(
        _ resumption: inout Resumption, _ offer: ResumptionOffer
    ) async throws -> (resource: URL, Extent)? {
        if let resource = resumption.resource {
            if let extent = try await extent(of: resource, offer, &resumption) {
                // One that has all of it may be making the record.
                if !extent.isComplete, extent.offset < length { resumption.noteIncomplete() }
                return (resource, extent)
            }
            try resumption.forget()
        }
        guard let resource = try await create(offer) else { return nil }
        try resumption.create(resource)
        return (resource, Extent())
    }

    /// Asks an upload resource how much it has.
    ///
    /// - Returns: `nil` where it is gone.
    /// - Throws: ``UploadError`` where it says to have bytes that were never sent: it is not used again.
    private func extent(
        of resource: URL, _ offer: ResumptionOffer, _ resumption: inout Resumption
    ) async throws -> Extent? {
        let response = try await ask(.head, at: resource, offer.version, accepting: Self.anyStatus)
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
            throw UploadError.refused(response, by: request.url)
        }
    }

    /// What `postcard serve` says where it cannot keep a form until it is complete; in one request it may take it.
    private static let noRoomCodes: Set = ["store-full", "too-many-unfinished-uploads"]

    /// Has the server make an upload resource, without any of the form yet.
    ///
    /// - Returns: Where it is; `nil` where the server does not do so.
    private func create(_ offer: ResumptionOffer) async throws -> URL? {
        var fields = fields(for: request.url, offer.version)
        fields.setUploadCompleteness(false, in: offer.version)
        fields.uploadLength = length
        let creation = try UploadRequest(
            url: request.url, method: request.method, headerFields: fields, body: layout.slice(0..<0),
            maximumResponseBytes: request.maximumResponseBytes)
        let (response, url) = try await send(creation, accepting: Self.anyStatus)
        switch response.status.code {
        case 200..<300:
            guard let location = response.headerFields[.location],
                let resource = URL(string: location, relativeTo: url)?.absoluteURL, resource.host() != nil,
                // Behind a proxy that encrypts, a server may not know its own scheme.
                resource.scheme?.lowercased() == "https" || request.url.scheme?.lowercased() == "http"
            else { return nil }
            return resource
        case 404, 405, 501:
            return nil
        case 503 where Self.noRoomCodes.contains(response.problem?["code"]?.text ?? ""):
            return nil
        default:
            throw UploadError.refused(response, by: url)
        }
    }
}

// MARK: - What it has not

extension ResumableAttempt {
    /// Sends the rest of the form, in as many requests as the server wants.
    ///
    /// - Returns: The answer to the last of them, which is that to the form.
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
                body: layout.slice(offset..<offset + count, contentType: PartialUpload.mediaType),
                maximumResponseBytes: request.maximumResponseBytes)
            if isLast {
                var response = try await send(
                    append, noting: &resumption, upTo: offset + count, accepting: acceptedStatuses)
                response.bytesSent += offset
                return response
            }
            let response = try await send(
                append, noting: &resumption, upTo: offset + count, accepting: Set(200..<300), isLast: false)
            // What was left out is missing, whatever the client accepts as an answer to the whole.
            if response.isEarly { throw UploadError.answeredEarly(response, by: resource, of: count) }
            offset += count
            resumption.advance(to: offset)
        }
    }

    /// Sends an append, and notes what the server may have afterwards: nothing more where it has rejected the append.
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

    /// Sees what an append's failure means for the upload resource.
    ///
    /// - Throws: The error, unless the upload can go on at once: from where the server has it, or anew.
    private func settle(
        _ error: UploadError, _ extent: Extent, _ resumption: inout Resumption
    ) async throws {
        guard let response = error.response, error.code == .refused else { throw error }
        let status = response.status.code
        let offset = response.headerFields.uploadOffset
        if extent.isComplete {
            // Asked for its answer once more, the server has given it, or has none any more.
            try resumption.forget()
            let isCompleted = response.problem?.type == ResumptionProblemType.completed.uri
            guard isCompleted || [404, 405, 409, 410].contains(status) else { throw error }
            var lost = error.adding("The server has the whole form, and its answer to it was lost on the way.")
            lost.delivery = .answerLost
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
            throw error.adding("It has rejected what it asked for \(resumption.rejections) times in a row.")
        }
        if resumption.failures >= resumption.policy.retryPolicy.maximumAttempts { throw error }
    }
}

// MARK: - Requests

extension ResumableAttempt {
    /// Sends a request without a body.
    private func ask(
        _ method: HTTPRequest.Method, at url: URL, _ version: ResumptionVersion, accepting statuses: Set<Int>
    ) async throws -> UploadResponse {
        let request = try UploadRequest(
            url: url, method: method, headerFields: fields(for: url, version), body: nil,
            maximumResponseBytes: request.maximumResponseBytes)
        return try await send(request, accepting: statuses).response
    }

    private func send(
        _ request: UploadRequest, accepting statuses: Set<Int>, isLast: Bool = false
    ) async throws -> (response: UploadResponse, url: URL) {
        do {
            return try await exchange.response(
                to: request, accepting: statuses, isSecret: request.url != self.request.url)
        } catch var error as UploadError {
            // Until its last byte goes out the form is no form to any server.
            if !isLast, error.delivery == .answerLost { error.delivery = .neverArrived }
            if !request.url.hasOrigin(of: self.request.url) { error.hasLeftOrigin = true }
            throw error
        }
    }

    private func fields(for url: URL, _ version: ResumptionVersion) -> HTTPFields {
        request.resumptionFields(for: url, version)
    }
}

extension UploadRequest {
    /// The header fields that go with every request about this one's upload: to another origin only what may be shown
    /// to a stranger.
    func resumptionFields(for url: URL, _ version: ResumptionVersion) -> HTTPFields {
        var fields = url.hasOrigin(of: self.url) ? headerFields : headerFields.harmless
        fields[.expect] = nil
        fields.setResumptionVersion(version)
        return fields
    }
}
