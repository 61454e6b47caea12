import HTTPTypes
import PostcardForm
import PostcardResumption

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decides what one attempt of a resumable upload does next: it finds out whether the server resumes uploads, makes or
/// finds the upload resource, and sends what the server is missing. Like ``DeliveryMachine``, of which it is a part, it
/// has no clock, network or files of its own.
///
/// Every step is a whole request with a final response, so that every transport can do it: the URL of the upload
/// resource is in the response to a creation without content, and not in a 104 (Upload Resumption Supported).
struct ResumableUpload: Sendable {
    private let request: UploadRequest
    private let body: UploadBody
    private let length: Int64
    private let acceptedStatuses: Set<Int>
    private var step = Step.new

    /// What is done next.
    enum Action: Sendable {
        /// Send a request.
        ///
        /// - Parameters:
        ///   - accepting: The statuses of success; all others are redirects or refusals.
        case send(UploadRequest, accepting: Set<Int>)
        /// Check that the files have not changed.
        ///
        /// - Parameter readBytes: How many bytes of the form an earlier process has sent, which are read for their
        ///   digests; `nil` if this process has read them.
        case check(readBytes: Int64?)
        /// Make an ordinary upload: the server does not resume this one.
        case sendWhole
        case finish(UploadResponse)
        case fail(UploadError)
    }

    private enum Step: Sendable {
        case new
        /// The server is asked whether it resumes uploads.
        ///
        /// - Parameters:
        ///   - others: The versions to ask for then.
        ///   - isCertain: Whether the servers' responses so far mean that it does not.
        case asking(ResumptionVersion, others: ArraySlice<ResumptionVersion>, isCertain: Bool)
        /// The server makes an upload resource.
        case creating(ResumptionOffer)
        /// The upload resource is asked how much it has.
        case locating(ResumptionOffer, Resumption.Resource)
        /// The files are checked before the rest is sent.
        case checking(ResumptionOffer, URL, Extent)
        /// A part of the form, or all the rest, is being sent.
        case appending(ResumptionOffer, URL, Extent, Range<Int64>)
    }

    /// How much of the form the server has.
    private struct Extent {
        var offset: Int64 = 0
        /// Whether the server knows that it has the whole form.
        var isComplete = false
    }

    /// Every status that ends a request: all but those of redirects that are followed.
    private static let anyStatus = Set(100..<600).subtracting([307, 308])

    /// - Parameters:
    ///   - request: The request of an ordinary upload. The result is `nil` if it cannot be resumed.
    ///   - policy: The policy, with the minimum size.
    ///   - acceptedStatuses: The statuses of success.
    init?(_ request: UploadRequest, _ policy: ResumptionPolicy, accepting acceptedStatuses: Set<Int>) {
        guard let body = request.body, let length = body.contentLength, body.isReplayable,
            length >= policy.minimumBytes
        else { return nil }
        self.request = request
        self.body = body
        self.length = length
        self.acceptedStatuses = acceptedStatuses
    }

    /// The upload resource that has said in this attempt that it does not have the whole form.
    var incompleteResource: URL? {
        // One that has all of it may be about to store the form.
        guard case .checking(_, let resource, let extent) = step, !extent.isComplete, extent.offset < length
        else { return nil }
        return resource
    }

    /// Begins the attempt.
    ///
    /// - Parameter support: What is known of the server from other uploads.
    mutating func begin(_ resumption: inout Resumption, _ support: ResumptionSupport) -> Action {
        if let offer = resumption.offer { return begin(offer, &resumption) }
        switch support {
        case .offered(let offer): return begin(offer, &resumption)
        case .unsupported: return sendWhole(&resumption)
        case .unknown: return ask(resumption.policy.versions[...], isCertain: true, &resumption)
        }
    }

    /// What the server has said about resumption in this attempt; `nil` if nothing that other uploads can rely on.
    private(set) var support: ResumptionSupport?

    private mutating func begin(_ offer: ResumptionOffer, _ resumption: inout Resumption) -> Action {
        guard offer.accepts(length) else { return sendWhole(&resumption) }
        resumption.begin(offer)
        return locate(offer, resumption)
    }

    private mutating func sendWhole(_ resumption: inout Resumption) -> Action {
        resumption.end()
        return .sendWhole
    }

    /// Decides what a response means.
    ///
    /// - Parameters:
    ///   - response: The response to the latest request.
    ///   - url: The URL that responded, which is another one after a redirect.
    mutating func handle(_ response: UploadResponse, from url: URL, _ resumption: inout Resumption) -> Action {
        switch step {
        case .asking(let version, let others, let isCertain):
            handle(response, from: url, askedFor: version, others, isCertain: isCertain, &resumption)
        case .creating(let offer): create(response, from: url, offer, &resumption)
        case .locating(let offer, let resource): handle(response, from: url, offer, resource, &resumption)
        case .appending(let offer, let resource, let extent, let range):
            handle(response, to: range, offer, resource, extent, &resumption)
        case .new, .checking: .finish(response)
        }
    }

    /// Decides what the failure of a request or a check means.
    mutating func handle(_ error: UploadError, _ resumption: inout Resumption) -> Action {
        switch step {
        case .asking where error.code == .connectionLost && resumption.resource == nil:
            // Some servers close the connection at a method that they do not know.
            return sendWhole(&resumption)
        case .appending(let offer, let resource, let extent, let range):
            let status = error.response?.status.code
            if status.map({ ![404, 409, 410].contains($0) }) ?? true { resumption.noteSent(upTo: range.upperBound) }
            return settle(self.error(error, of: resource, range), offer, extent, &resumption)
        case .locating(_, let resource): return .fail(self.error(error, of: resource.url))
        default: return .fail(self.error(error, of: request.url))
        }
    }

    /// The error of a request for this upload.
    private func error(_ error: UploadError, of url: URL, _ range: Range<Int64>? = nil) -> UploadError {
        var error = error
        // A form is not a form to any server until its last byte was sent.
        if range?.upperBound != length, error.delivery == .responseLost { error.delivery = .neverArrived }
        if !url.hasOrigin(of: request.url) { error.hasLeftOrigin = true }
        return error
    }
}

// MARK: - What the server has

extension ResumableUpload {
    /// Asks whether and how the server resumes uploads.
    private mutating func ask(
        _ versions: ArraySlice<ResumptionVersion>, isCertain: Bool, _ resumption: inout Resumption
    ) -> Action {
        guard let version = versions.first else {
            if isCertain { support = .unsupported }
            return sendWhole(&resumption)
        }
        step = .asking(version, others: versions.dropFirst(), isCertain: isCertain)
        return send(.options, at: request.url, version)
    }

    private mutating func handle(
        _ response: UploadResponse, from url: URL, askedFor version: ResumptionVersion,
        _ others: ArraySlice<ResumptionVersion>, isCertain: Bool, _ resumption: inout Resumption
    ) -> Action {
        if response.status.kind == .successful, response.headerFields.offersResumableUploads(in: version) {
            let limits = response.headerFields.uploadLimits(in: version)
            let offer = ResumptionOffer(version: version, limits: limits ?? UploadLimits())
            support = .offered(offer)
            return begin(offer, &resumption)
        }
        if resumption.policy.retry.statuses.union([401, 403]).contains(response.status.code) {
            // A busy proxy or an expired token is no reason to give up what is on the server already.
            guard resumption.resource == nil else { return .fail(refusal(response, by: url)) }
            return ask(others, isCertain: false, &resumption)
        }
        return ask(others, isCertain: isCertain, &resumption)
    }

    /// Finds out how much the upload resource has; has one made if there is none.
    private mutating func locate(_ offer: ResumptionOffer, _ resumption: Resumption) -> Action {
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
    private mutating func handle(
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

    /// The problems of `postcard serve` when it cannot keep an incomplete form; in one request it may accept it.
    private static let noRoomCodes: Set = ["store-full", "too-many-unfinished-uploads"]

    /// The server was asked to make an upload resource, without any of the form yet.
    private mutating func create(
        _ response: UploadResponse, from url: URL, _ offer: ResumptionOffer, _ resumption: inout Resumption
    ) -> Action {
        switch response.status.code {
        case 200..<300:
            guard let location = response.headerFields[.location],
                let resource = URL(string: location, relativeTo: url)?.absoluteURL, resource.host() != nil,
                // Behind a proxy that encrypts, a server may not know its own scheme.
                resource.scheme?.lowercased() == "https" || request.url.scheme?.lowercased() == "http"
            else { break }
            resumption.create(resource, offer)
            return check(offer, resource, Extent(), &resumption)
        case 404, 405, 501: break
        case 503 where Self.noRoomCodes.contains(response.problem?["code"]?.text ?? ""):
            // Room comes back: the next form asks for a resource again.
            return sendWhole(&resumption)
        default: return .fail(refusal(response, by: url))
        }
        support = .unsupported
        return sendWhole(&resumption)
    }
}

// MARK: - What the server is missing

extension ResumableUpload {
    private mutating func check(
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

    /// Sends the rest of the form, or as much of it as the server takes in one request.
    private mutating func append(
        from offset: Int64, to resource: URL, _ offer: ResumptionOffer, _ extent: Extent
    ) -> Action {
        let count = min(length - offset, max(offer.limits.maximumAppendBytes ?? .max, 1))
        let range = offset..<offset + count
        let isLast = range.upperBound == length
        step = .appending(offer, resource, extent, range)
        var fields = request.resumptionFields(for: resource, offer.version)
        fields.uploadOffset = offset
        fields.setUploadCompleteness(isLast, in: offer.version)
        return send(
            .patch, at: resource, fields, body.slice(range, contentType: PartialUpload.mediaType),
            accepting: isLast ? acceptedStatuses : Set(200..<300))
    }

    /// The server has accepted an append.
    private mutating func handle(
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
    private mutating func settle(
        _ error: UploadError, _ offer: ResumptionOffer, _ extent: Extent, _ resumption: inout Resumption
    ) -> Action {
        guard let response = error.response, error.code == .refused else { return .fail(error) }
        let status = response.status.code
        let offset = response.headerFields.uploadOffset
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

// MARK: - Requests

extension ResumableUpload {
    private func send(_ method: HTTPRequest.Method, at url: URL, _ version: ResumptionVersion) -> Action {
        send(method, at: url, request.resumptionFields(for: url, version), nil)
    }

    private func send(
        _ method: HTTPRequest.Method, at url: URL, _ fields: HTTPFields, _ body: UploadBody?,
        accepting statuses: Set<Int> = Self.anyStatus
    ) -> Action {
        do throws(UploadError) {
            let request = try UploadRequest(
                url: url, method: method, headerFields: fields, body: body,
                maximumResponseBytes: request.maximumResponseBytes)
            return .send(request, accepting: statuses)
        } catch {
            return .fail(error)
        }
    }

    /// The error for a response that is neither a success nor a reason for an ordinary upload.
    private func refusal(_ response: UploadResponse, by url: URL) -> UploadError {
        error(.refused(response, by: url), of: url)
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
