import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardWire

/// Decides the steps of one attempt of a resumable upload: asking whether the server resumes uploads, making or finding
/// the upload resource, and sending the missing bytes. Like ``DeliveryMachine``, which contains this type, it has no
/// clock, network or files of its own.
///
/// Every step is a request with a final response, so every transport can perform it. The response to a creation without
/// content names the URL of the upload resource. A 104 (Upload Resumption Supported) that names the URL counts only if
/// no such response follows. A server without OPTIONS gets the whole form, and may name the upload resource in a 104.
///
/// Each event leads to the next step, or to an action that ends the attempt: `finish`, `fail` or `sendWhole`.
///
/// | step: its request | event | next step or action |
/// | --- | --- | --- |
/// | `new` | `begin` | `asking`, `creating`, `inviting`, `locating`, `probing` |
/// | `asking`: OPTIONS at the form's URL | `responded` | `asking`, `creating`, `inviting`, `locating`, `fail`, `sendWhole` |
/// | | `failed` | `fail`, `sendWhole` |
/// | `inviting`: the whole form | `responded` | `locating`, `finish`, `fail` |
/// | | `failed` | `inviting`, `locating`, `askingForLimits`, `cancelling`, `fail`, `sendWhole` |
/// | `creating`: POST with the form's first bytes or none | `responded` | `creating`, `locating`, `checking`, `askingForLimits`, `cancelling`, `finish`, `fail`, `sendWhole` |
/// | | `failed` | `cancelling`, `fail` |
/// | `locating`: HEAD at the upload resource | `responded` | `creating`, `inviting`, `probing`, `checking`, `fetching`, `cancelling`, `fail` |
/// | | `failed` | `fail` |
/// | `probing`: PATCH without content | `responded` | `creating`, `inviting`, `checking`, `cancelling`, `fail` |
/// | | `failed` | `fail` |
/// | `checking`: none | `checked` | `appending` |
/// | | `failed` | `fail` |
/// | `appending`: PATCH with the next bytes | `responded` | `appending`, `locating`, `probing`, `cancelling`, `finish`, `fail` |
/// | | `failed` | `creating`, `inviting`, `locating`, `probing`, `askingForLimits`, `fetching`, `cancelling`, `fail`, `sendWhole` |
/// | `askingForLimits`: OPTIONS at the form's URL | `responded` | `locating`, `cancelling`, `fail` |
/// | | `failed` | `fail` |
/// | `fetching`: GET at the upload resource | `responded` | `finish`, `fail` |
/// | | `failed` | `fail` |
/// | `cancelling`: DELETE at the upload resource | `responded` | `fail`, `sendWhole` |
/// | | `failed` | `fail`, `sendWhole` |
struct ResumableUpload: Sendable {
    let request: UploadRequest
    let body: UploadBody
    let length: Int64
    let acceptedStatuses: Set<Int>
    var step = Step.new

    /// The server's support for resumption, for other uploads; `nil` if this attempt has shown nothing reliable.
    var support: ResumptionSupport?

    /// The result of an action.
    enum Event: Sendable {
        /// The files have not changed.
        case checked
        /// - Parameter from: The URL that responded. After a redirect it is not the request's URL.
        case responded(UploadResponse, from: URL)
        case failed(UploadError)
    }

    /// The next action of the upload.
    enum Action: Sendable {
        /// Send a request.
        ///
        /// - Parameters:
        ///   - accepting: The statuses of success; all other statuses are redirects or refusals.
        case send(UploadRequest, accepting: Set<Int>)
        /// Check that the files have not changed.
        ///
        /// - Parameter readBytes: The number of the form's bytes that an earlier process has sent. They are read again
        ///   for their digests. `nil` if this process has read them.
        case check(readBytes: Int64?)
        /// Send the form as an ordinary upload, because the server does not resume this upload.
        case sendWhole
        case finish(UploadResponse)
        case fail(UploadError)
    }

    enum Step: Sendable {
        case new
        /// The server is asked whether it resumes uploads.
        ///
        /// - Parameters:
        ///   - others: The versions to ask for after this one.
        ///   - isCertain: Whether the responses so far mean that the server does not resume uploads.
        case asking(ResumptionVersion, others: ArraySlice<ResumptionVersion>, isCertain: Bool)
        /// The whole form is sent, and the server may name an upload resource in a 104.
        case inviting(ResumptionVersion)
        /// The server is asked to make an upload resource, in a request with the given range of the form's bytes.
        case creating(ResumptionOffer, Range<Int64>)
        /// The upload resource is asked for its offset.
        case locating(ResumptionOffer, Resumption.Resource)
        /// The upload resource does not answer HEAD. An empty append at the given offset shows the server's offset.
        case probing(ResumptionOffer, Resumption.Resource, at: Int64)
        /// The files are checked before the rest of the form is sent.
        case checking(ResumptionOffer, URL, Extent)
        /// A range of the form's bytes is being sent.
        case appending(ResumptionOffer, URL, Extent, Range<Int64>)
        /// The server is asked for its limits again, because it refused an append as too large. If the response has no
        /// new limit, the attempt fails with the given error.
        case askingForLimits(ResumptionOffer, URL, Range<Int64>, UploadError)
        /// The upload is complete, and the upload resource is asked for the form's lost response. If the resource does
        /// not have that response, the attempt fails with the given error.
        case fetching(ResumptionOffer, URL, UploadError)
        /// The upload resource is deleted, because it cannot be used.
        case cancelling(Ending)
    }

    /// The action after an upload resource was deleted.
    enum Ending: Sendable {
        /// The form is sent as an ordinary upload.
        case sendWhole
        case fail(UploadError)
    }

    /// The part of the form that the server has.
    struct Extent {
        var offset: Int64 = 0
        /// Whether the server knows that it has the whole form.
        var isComplete = false
    }

    /// All statuses of responses, except those of redirects that are followed.
    static let anyStatus = Set(100..<600).subtracting([307, 308])

    /// Prepares a resumable upload of a request.
    ///
    /// - Parameters:
    ///   - request: The request of an ordinary upload. If its form cannot be resumed, the initializer returns `nil`.
    ///   - policy: The client's resumption policy, with the minimum size of a form.
    ///   - acceptedStatuses: The statuses of success.
    ///   - known: The facts that other uploads have learned about the server.
    init?(
        _ request: UploadRequest, _ policy: ResumptionPolicy, accepting acceptedStatuses: Set<Int>,
        _ known: KnownServer
    ) {
        // A form that is probably too large for a proxy in one request is resumed even below the minimum size.
        guard let body = request.body, let length = body.contentLength, body.isReplayable,
            length >= policy.minimumBytes || length > known.appendBytes ?? .max
        else { return nil }
        self.request = request
        self.body = body
        self.length = length
        self.acceptedStatuses = acceptedStatuses
    }

    /// The URL of the upload resource, if the resource has reported in this attempt that it lacks some of the form.
    var incompleteResource: URL? {
        // A resource that has all bytes may be about to store the form.
        guard case .checking(_, let resource, let extent) = step, !extent.isComplete, extent.offset < length
        else { return nil }
        return resource
    }

    /// Begins the attempt.
    ///
    /// - Parameter known: The facts that other uploads have learned about the server.
    mutating func begin(_ resumption: inout Resumption, _ known: KnownServer) -> Action {
        if resumption.resource == nil, resumption.lostCreations >= Resumption.maximumLostCreations {
            return sendWhole(&resumption)
        }
        if let offer = resumption.offer { return begin(offer, &resumption) }
        switch known.support {
        case .offered(let offer): return begin(offer, &resumption)
        case .unlisted(let version): return invite(in: version, &resumption)
        case .unknown:
            let versions = resumption.policy.versions
            let first = versions.filter { $0 == known.version }
            return ask((first + versions.filter { $0 != known.version })[...], isCertain: true, &resumption)
        }
    }

    mutating func begin(_ offer: ResumptionOffer, _ resumption: inout Resumption) -> Action {
        guard offer.accepts(length) || resumption.mustResume else { return sendWhole(&resumption) }
        resumption.begin(offer)
        return locate(offer, &resumption)
    }

    mutating func sendWhole(_ resumption: inout Resumption) -> Action {
        resumption.end()
        return .sendWhole
    }

    /// Decides the next action after an event. Returns `nil` if the event is impossible in this step.
    mutating func handle(_ event: Event, _ resumption: inout Resumption) -> Action? {
        if case .responded(let response, let url) = event, let (resource, offer) = resourceOfStep,
            !offer.isFinal(response), !offer.hasVersion(of: response)
        {
            return cancel(resource, offer, then: .fail(error(.changedVersion(response, by: url), of: url)), &resumption)
        }
        switch (step, event) {
        case (.asking(let version, let others, let isCertain), .responded(let response, let url)):
            return proceed(
                afterAskingFor: version, others, isCertain: isCertain, with: response, from: url, &resumption)
        case (.asking, .failed(let error))
        where error.code == .connectionLost && resumption.resource == nil && !isTooLarge(resumption):
            // Some servers close the connection when they do not know the OPTIONS method.
            return sendWhole(&resumption)
        case (.inviting(let version), .responded(let response, let url)):
            return proceed(afterInvitingIn: version, with: response, from: url, &resumption)
        case (.inviting(let version), .failed(let error)):
            return proceed(afterInvitingIn: version, with: error, &resumption)
        case (.creating(let offer, let content), .responded(let response, let url)):
            return proceed(afterCreatingWith: content, offer, with: response, from: url, &resumption)
        case (.creating(let offer, let content), .failed(let error)):
            return proceed(afterCreatingWith: content, offer, with: error, &resumption)
        case (.locating(let offer, let resource), .responded(let response, let url)):
            return proceed(afterLocating: resource, offer, with: response, from: url, &resumption)
        case (.probing(let offer, let resource, let offset), .responded(let response, let url)):
            return proceed(afterProbing: resource, at: offset, offer, with: response, from: url, &resumption)
        case (.locating(_, let resource), .failed(let error)), (.probing(_, let resource, _), .failed(let error)):
            return .fail(self.error(error, of: resource.url))
        case (.checking(let offer, let resource, let extent), .checked):
            resumption.noteChecked()
            return append(from: extent.offset, to: resource, offer, extent, resumption)
        case (.appending(let offer, let resource, let extent, let range), .responded(let response, _)):
            return proceed(afterAppending: range, to: resource, offer, extent, with: response, &resumption)
        case (.appending(let offer, let resource, let extent, let range), .failed(let error)):
            return proceed(afterAppending: range, to: resource, offer, extent, with: error, &resumption)
        case (.askingForLimits(let offer, let resource, let range, let refusal), .responded(let response, _)):
            return proceed(
                afterAskingForLimitsOf: resource, range, offer, with: response, otherwise: refusal, &resumption)
        case (.fetching(let offer, _, let lost), .responded(let response, let url)):
            return proceed(afterFetchingFrom: url, offer, with: response, otherwise: lost, &resumption)
        case (.fetching(_, let resource, let lost), .failed(let error)):
            return proceed(afterFetchingWith: self.error(error, of: resource), otherwise: lost, &resumption)
        case (.cancelling(.sendWhole), .responded), (.cancelling(.sendWhole), .failed):
            return sendWhole(&resumption)
        case (.cancelling(.fail(let error)), .responded), (.cancelling(.fail(let error)), .failed):
            return .fail(error)
        case (.asking, .failed(let error)), (.askingForLimits, .failed(let error)), (.checking, .failed(let error)):
            return .fail(self.error(error, of: request.url))
        case (.new, _), (.checking, .responded), (_, .checked):
            return nil
        }
    }

    /// The upload resource that is being used, and the server's offer to resume uploads. `nil` before there is a
    /// resource, and for the last append, whose successful response may name any draft version.
    private var resourceOfStep: (resource: URL, offer: ResumptionOffer)? {
        switch step {
        case .locating(let offer, let resource), .probing(let offer, let resource, _): (resource.url, offer)
        case .appending(let offer, let resource, _, let range) where range.upperBound < length: (resource, offer)
        default: nil
        }
    }

    /// Asks the server to delete an upload resource (draft-ietf-httpbis-resumable-upload, "Upload Cancellation").
    mutating func cancel(
        _ resource: URL, _ offer: ResumptionOffer, then ending: Ending, _ resumption: inout Resumption
    ) -> Action {
        resumption.forget()
        step = .cancelling(ending)
        return send(.delete, at: resource, offer.version)
    }

    /// The error to report for the failure of a request of this upload.
    func error(_ error: UploadError, of url: URL, _ range: Range<Int64>? = nil) -> UploadError {
        var error = error
        // No server can accept a form before the form's last byte was sent.
        if range?.upperBound != length, error.delivery == .responseLost { error.delivery = .neverArrived }
        if !url.hasOrigin(of: request.url) { error.hasLeftOrigin = true }
        return error
    }
}

// MARK: - Whether the server resumes uploads

extension ResumableUpload {
    /// Asks the server whether and how it resumes uploads.
    mutating func ask(
        _ versions: ArraySlice<ResumptionVersion>, isCertain: Bool, _ resumption: inout Resumption
    ) -> Action {
        guard let version = versions.first else {
            return isCertain ? invite(in: resumption.policy.invitations.first, &resumption) : sendWhole(&resumption)
        }
        step = .asking(version, others: versions.dropFirst(), isCertain: isCertain)
        return send(.options, at: request.url, version)
    }

    /// Whether requests as large as this form have failed because of their size.
    private func isTooLarge(_ resumption: Resumption) -> Bool { resumption.appendSize.maximum ?? .max < length }

    private mutating func proceed(
        afterAskingFor version: ResumptionVersion, _ others: ArraySlice<ResumptionVersion>, isCertain: Bool,
        with response: UploadResponse, from url: URL, _ resumption: inout Resumption
    ) -> Action {
        if response.status.kind == .successful, response.headerFields.offersResumableUploads(in: version) {
            let limits = response.headerFields.uploadLimits(in: version)
            let offer = ResumptionOffer(version: version, limits: limits ?? UploadLimits())
            support = .offered(offer)
            return begin(offer, &resumption)
        }
        if resumption.policy.saysNothing(response) {
            // The response may come from a busy proxy, or mean an expired token. So the upload resource is kept, and a
            // form that is too large for a proxy is not sent as a whole.
            let isBusy = resumption.policy.retryPolicy.statuses.contains(response.status.code)
            guard resumption.resource == nil, !(isBusy && isTooLarge(resumption)) else {
                return .fail(refusal(response, by: url))
            }
            return ask(others, isCertain: false, &resumption)
        }
        return ask(others, isCertain: isCertain, &resumption)
    }
}

// MARK: - Requests

extension ResumableUpload {
    func send(_ method: HTTPRequest.Method, at url: URL, _ version: ResumptionVersion) -> Action {
        send(method, at: url, request.resumptionFields(for: url, version), nil)
    }

    func send(
        _ method: HTTPRequest.Method, at url: URL, _ fields: HTTPFields, _ body: UploadBody?,
        accepting statuses: Set<Int> = Self.anyStatus
    ) -> Action {
        do throws(UploadError) {
            var request = try UploadRequest(
                url: url, method: method, headerFields: fields, body: body,
                maximumResponseBytes: request.maximumResponseBytes)
            request.uploadBytes = length
            return .send(request, accepting: statuses)
        } catch {
            return .fail(error)
        }
    }

    /// The error for a refusal that does not lead to an ordinary upload.
    func refusal(_ response: UploadResponse, by url: URL) -> UploadError {
        error(.refused(response, by: url), of: url)
    }
}

extension UploadRequest {
    /// The header fields for the requests of this upload. Requests to another origin get no fields with secrets.
    func resumptionFields(for url: URL, _ version: ResumptionVersion) -> HTTPFields {
        var fields = url.hasOrigin(of: self.url) ? headerFields : headerFields.harmless
        fields[.expect] = nil
        // These fields are about the whole form, so only the request that begins the upload has them.
        if url != self.url { (fields[.reprDigest], fields[.wantReprDigest]) = (nil, nil) }
        fields.setResumptionVersion(version)
        return fields
    }
}
