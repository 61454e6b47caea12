import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardWire

// MARK: - The request

extension UploadRun {
    /// Makes the request of the form.
    ///
    /// - Parameters:
    ///   - limits: The size limits for the prepared parts.
    ///   - refusal: The server's refusal of an earlier, larger form; `nil` if there was none.
    ///   - folder: The folder of prepared files, which is made if a part needs it.
    func preparedRequest(
        within limits: FormSizeLimits, after refusal: UploadError?, in folder: inout PreparationFolder?
    ) async throws -> UploadRequest {
        guard case .form(let form) = job.content, form.needsPreparation else { return try await request(job.content) }
        if refusal != nil {
            events?.put(.preparing)
            log.preparingAgain(within: limits)
        }
        do {
            let files = try await PreparationFolder.make()
            folder = files
            let prepared = try await withinTotalTimeout(after: refusal) {
                try await form.prepared(within: limits, in: files.url)
            }
            return try await request(.form(prepared))
        } catch let error where !(error is CancellationError || error is UploadError) {
            if let refusal { throw refusal.adding(preparationError: error) }
            throw (error as? FormError).map(UploadError.form) ?? error
        }
    }

    @concurrent private func request(_ content: UploadJob.Content) async throws -> UploadRequest {
        var layout: FormLayout
        let problem: FormProblem?
        do throws(FormError) {
            switch content {
            case .form(let form): layout = try form.layout()
            case .layout(let given): layout = given
            }
            problem = try client.rules?.problems(in: layout).first
        } catch {
            throw UploadError.form(error)
        }
        if let problem { throw UploadError.brokenRule(problem) }
        if let presigned = job.presigned, case .form(let form) = content {
            layout = try presigned.form.layout(of: form, layout, at: presigned.now)
        }
        if job.isForObjectStore, let length = layout.contentLength, !client.transport.sendsContentLength(of: length) {
            throw UploadError.brokenPolicy(
                job.url, "A store needs the length of \(length) bytes first, and the transport does not send it.",
                advice: "Use AsyncHTTPTransport, or raise URLSessionTransport's maximumBytesInMemory.")
        }
        job.noteLayout?(layout)
        var fields = headerFields
        if let limit = client.network.expectContinueAbove, layout.contentLength ?? .max > limit {
            fields[.expect] = "100-continue"
        }
        let body = UploadBody(
            layout, rateLimit: client.network.rateLimit,
            digests: client.responses.verification == nil ? nil : ContentDigests(of: layout.parts))
        if client.responses.sendsDigests, let digest = try await Self.digest(of: body) {
            fields[.reprDigest] = digest.fieldValue
            fields[.wantReprDigest] = BodyDigest.want
        }
        return try UploadRequest(
            url: job.url, method: job.method, headerFields: fields, body: body,
            maximumResponseBytes: client.responses.maximumBytes)
    }

    /// Adds the digest of the body to an append of a resumable upload. Returns any other request unchanged.
    func digested(_ request: UploadRequest) async throws -> UploadRequest {
        guard client.responses.sendsDigests, request.method == .patch, let body = request.body,
            body.contentType == PartialUpload.mediaType, let digest = try await Self.digest(of: body)
        else { return request }
        var request = request
        request.headerFields[.contentDigest] = digest.fieldValue
        return request
    }

    /// Computes the digest of a body. Returns `nil` if the body is empty or can be read only once.
    private static func digest(of body: UploadBody) async throws -> BodyDigest? {
        guard body.isReplayable, body.contentLength != 0 else { return nil }
        do {
            return try await body.digestOfAll()
        } catch let error as FormError {
            throw UploadError.form(error)
        }
    }

    /// A sender for the requests of an attempt.
    func sender(_ attempt: Int, acceptsEarly: Bool) -> RequestSender {
        RequestSender(
            client: client,
            limits: RequestTimeouts.Limits(
                idle: client.timeouts.idle, connect: client.timeouts.connect, response: client.timeouts.response,
                total: client.timeouts.total.map { ($0, start.advanced(by: $0)) }),
            attempt: attempt, acceptsEarly: acceptsEarly, log: log, progress: progress)
    }

    /// A sender for requests without the form, which do not belong to an attempt.
    func sender(within total: Duration, idle: Duration? = nil, connect: Duration? = nil) -> RequestSender {
        RequestSender(
            client: client,
            limits: RequestTimeouts.Limits(
                idle: idle, connect: connect, total: (total, client.time.clock.instant.advanced(by: total))),
            attempt: 1, acceptsEarly: false, log: log, progress: nil)
    }
}

extension UploadError {
    /// This refusal, with the reason why the form cannot be prepared for the refusal's limit.
    fileprivate func adding(preparationError error: any Error) -> UploadError {
        var refusal = adding("The form cannot be prepared for that limit: \(error)")
        refusal.underlyingError = error
        return refusal
    }
}

// MARK: - The files

extension UploadRun {
    /// Checks that the form's files have not changed, and reads the bytes that an earlier process has sent.
    @concurrent static func check(
        _ request: UploadRequest, readBytes: Int64?
    ) async throws -> DeliveryMachine.Event {
        do {
            try request.body?.layout.checkFiles()
            if let readBytes { try await request.body?.digest(first: readBytes) }
            return .checked
        } catch let error as FormError {
            throw UploadError.form(error)
        }
    }

    /// Compares a response with the form.
    func verify(_ response: UploadResponse, to request: UploadRequest) async throws -> DeliveryMachine.Event {
        try await completeDigests(of: request)
        try client.responses.verification?.verify(response, to: request)
        return .verified
    }

    /// Reads the whole form for its digests, after a response that was accepted before the whole form was sent.
    func completeDigests(of request: UploadRequest) async throws {
        guard let body = request.body, body.isReplayable, let digests = body.digests, digests.sentParts == nil else {
            return
        }
        do {
            try await withinTotalTimeout {
                do {
                    try await body.digest()
                } catch let error as FormError {
                    throw UploadError.form(error)
                }
            }
        } catch var error as UploadError {
            error.delivery = .accepted
            throw error.adding("The server has accepted the form, which could not be compared with the response.")
        }
    }
}
