import HTTPTypes
package import Logging
import PostcardForm
import PostcardFoundation
import PostcardWire
package import PostcardStore

/// Receives a form in several requests (draft-ietf-httpbis-resumable-upload). The last response answers the form.
package struct ResumableReception<Store: UploadStore, Uploads: ResumableUploadStore>: Sendable {
    let uploads: UnfinishedUploads<Uploads>
    package private(set) var reception: Reception<Store>
    let options: UnfinishedUploadOptions

    package init(uploads: Uploads, reception: Reception<Store>, options: UnfinishedUploadOptions) {
        self.uploads = UnfinishedUploads(store: uploads, shares: reception.shares, options: options)
        self.reception = reception
        self.options = options
    }

    /// Returns a copy that passes stored forms to the app.
    package func passingForm(to stored: Reception<Store>.StoredHandler?) -> Self {
        var resumption = self
        resumption.reception = reception.passingForm(to: stored)
        return resumption
    }

    enum RequestOutcome {
        case response(FormResponse)
        /// The form was refused, and the refusal must not be counted again. A final refusal ends the upload.
        case refusedForm(UploadProblem, isFinal: Bool)
    }

    // MARK: - Requests

    /// Responds to OPTIONS with the limits of uploads that can be resumed (§4.1.4 of the draft).
    package func offer(to request: IncomingRequest) throws -> FormResponse {
        let version = ResumptionVersion(of: request.headers) ?? .newest
        var headers: HTTPFields = [.acceptPatch: PartialUpload.mediaType, .cacheControl: "no-store"]
        headers.setResumptionVersion(version)
        headers.setUploadLimits(limits, in: version)
        headers.askForDigests()
        return FormResponse(status: .noContent, headers: headers)
    }

    /// Responds to a request that posts a form.
    package func response(
        to request: IncomingRequest, on connection: (any RequestConnection)?, logger: Logger
    ) async throws -> FormResponse {
        if AppendRequest.isAsked(by: request) {
            return try await create(request, on: connection, logger: logger)
        }
        return try await receiveOrdinary(request, on: connection, logger: logger)
    }

    /// Receives a form that cannot be resumed. Its client may support resumption, so a refusal of the form's size
    /// includes the limits (§4.1.4).
    func receiveOrdinary(
        _ request: IncomingRequest, on connection: (any RequestConnection)?, logger: Logger
    ) async throws -> FormResponse {
        do {
            return try await reception.response(to: request, on: connection, logger: logger)
        } catch let problem as UploadProblem where problem.status == .contentTooLarge {
            throw problem.adding { $0.setUploadLimits(limits, in: ResumptionVersion(of: request.headers) ?? .newest) }
        }
    }

    /// Receives a form in one request if its client asked for resumption, but no upload can be added or the header
    /// fields follow no known version of the draft. The response has the header fields of a completed upload.
    private func receiveUnresumable(
        _ request: IncomingRequest, on connection: (any RequestConnection)?, logger: Logger
    ) async throws -> FormResponse {
        let version = ResumptionVersion(of: request.headers) ?? .latestNumbered
        do {
            var response = try await reception.response(to: request, on: connection, logger: logger)
            response.headers.setResumptionVersion(version)
            response.headers.setUploadCompleteness(true, in: version)
            return response
        } catch var problem as UploadProblem {
            let advice = [problem.advice, AppendRequest.advice(for: request)].compactMap(\.self)
            problem.advice = advice.isEmpty ? nil : advice.joined(separator: " ")
            throw named(problem, version, isFinal: problem.isFinalForForm)
        }
    }

    /// Responds to a request with a form that can be resumed.
    // Not inlined, because its stack frame is large, and forms that cannot be resumed do not need it.
    @inline(never)
    func create(
        _ request: IncomingRequest, on connection: (any RequestConnection)?, logger: Logger
    ) async throws -> FormResponse {
        guard let append = try await counting(logger, { try AppendRequest(creatingBy: request) }) else {
            return try await receiveUnresumable(request, on: connection, logger: logger)
        }
        // If the head alone shows an error, the request is refused before an upload is created.
        let (form, checker) = try await naming(append.version, isOfForm: true, logger) {
            // The digests themselves are compared after the bytes have arrived.
            _ = try DigestCheck(of: request, [.contentDigest, .reprDigest])
            return (try unfinishedForm(of: request), try reception.checker(for: request))
        }
        guard
            let upload = try await naming(
                append.version, logger, { try await create(append, form, checker, by: request, from: connection?.peer) }
            )
        else { return try await receiveUnresumable(request, on: connection, logger: logger) }
        return try await responding(append.version, logger) {
            try await upload.lock.withLock(on: connection) { holder in
                try await limiting(upload, append.version) {
                    try await receive(append, request, on: connection, into: upload, holder, isWhole: true, logger)
                }
            }
        }
    }

    private func unfinishedForm(of request: IncomingRequest) throws(UploadProblem) -> KnownForm {
        let frame = try reception.frame(of: request)
        return KnownForm(
            contentType: request.headers[.contentType] ?? "",
            key: try UploadKey(of: request, scope: reception.options.keyScope), fileParameters: frame?.parameters)
    }

    /// The facts about a form in the head of its request.
    private struct KnownForm {
        let contentType: String
        let key: UploadKey?
        let fileParameters: String?
    }

    /// Creates an unfinished upload. If a limit is reached, returns `nil` for a request with the whole form, and throws
    /// for other requests.
    private func create(
        _ append: AppendRequest, _ known: KnownForm, _ checker: ArrivingFormChecker,
        by request: IncomingRequest, from peer: PeerAddress?
    ) async throws -> Uploads.Unfinished? {
        let length = try append.length(known: nil, maximum: reception.options.limits.maximumBodyBytes)
        do {
            let id = ResumptionID.random()
            var form = UnfinishedForm(
                contentType: known.contentType,
                // Only the client knows the identifier, so only the client knows the key made from it.
                key: known.key ?? UploadKey(id.text, scope: "\u{0}resumable"), length: length,
                reprDigest: request.headers[.reprDigest], wantReprDigest: request.headers[.wantReprDigest])
            form.fileParameters = known.fileParameters
            form.client = peer
            let upload = try await uploads.create(id, of: form, for: peer)
            uploads.keep(checker, of: upload)
            return upload
        } catch let error as UploadStoreError where error.code == .full && append.isComplete {
            // This request contains the whole form, so the store may still accept the form as a record.
            return nil
        } catch let problem as UploadProblem where problem.isOfShare && append.isComplete {
            return nil
        }
    }

    /// Responds to PATCH: appends to an upload.
    package func append(
        _ request: IncomingRequest, id: String?, on connection: (any RequestConnection)?, logger: Logger
    ) async throws -> FormResponse {
        let version = try await counting(logger) { try Self.version(of: request) }
        return try await responding(version, logger) {
            let append = try AppendRequest(appendingBy: request, in: version)
            let upload = try await find(id)
            return try await upload.lock.withLock(on: connection) { holder in
                try await limiting(upload, version) {
                    switch try await upload.durableProgress() {
                    case .gone: throw UploadProblem.unfinishedUploadNotFound
                    case .unfinished(let offset):
                        try await note(append, to: upload, at: offset, from: connection?.peer)
                        return try await receive(
                            append, request, on: connection, into: upload, holder, isWhole: false, logger)
                    case .finished(let length, _):
                        try await checkRepetition(append, request, length)
                        return .response(try await finalResponse(of: upload, version, on: connection, logger))
                    }
                }
            }
        }
    }

    /// Records the length of the upload that an append declares.
    private func note(
        _ append: AppendRequest, to upload: Uploads.Unfinished, at offset: Int64, from peer: PeerAddress?
    ) async throws {
        try check(append, offset)
        uploads.adopt(upload, at: offset, for: peer)
        let known = upload.form.length
        let length = try append.length(known: known, maximum: reception.options.limits.maximumBodyBytes)
        guard let length, known == nil else { return }
        try await uploads.announce(length, of: upload)
        try await upload.setLength(length)
    }

    /// Checks an append to a complete upload. An append without content asks for the final response again (§4.4.2).
    private func checkRepetition(_ append: AppendRequest, _ request: IncomingRequest, _ length: Int64) async throws {
        try check(append, length)
        if try await hasContent(append, request), append.version.has(.lengthAfterCompletion) {
            throw UploadProblem.inconsistentLength
        }
        guard append.version.has(.replay) else { throw UploadProblem.completedUpload }
        _ = try append.length(known: length, maximum: .max)
    }

    private func check(_ append: AppendRequest, _ offset: Int64) throws(UploadProblem) {
        guard append.offset == offset else { throw .mismatchingOffset(expected: offset, provided: append.offset) }
    }

    private func hasContent(_ append: AppendRequest, _ request: IncomingRequest) async throws -> Bool {
        guard append.contentLength ?? 0 == 0 else { return true }
        var body = request.chunks()
        do {
            return try await request.beginning(of: &body, on: nil) != nil
        } catch {
            throw Self.problem(of: error, at: 0)
        }
    }

    /// Responds to GET. For a complete upload, repeats the final response. For an incomplete upload, sends the response
    /// to HEAD, because some proxies turn HEAD into GET.
    package func repeatResponse(
        _ request: IncomingRequest, id: String?, on connection: (any RequestConnection)?, logger: Logger
    ) async throws -> FormResponse {
        let version = try await counting(logger) { try Self.version(of: request) }
        return try await responding(version, logger) {
            let upload = try await find(id)
            guard case .finished = try await settledProgress(of: upload) else {
                return .response(try await progress(of: upload, version, connection))
            }
            var response = try await finalResponse(of: upload, version, on: connection, logger)
            response.headers.setUploadLength(response.headers.uploadOffset, in: version)
            response.headers.setUploadLimits(limits(of: upload), in: version)
            return .response(response)
        }
    }

    /// Makes the final response of a complete upload again.
    private func finalResponse(
        of upload: Uploads.Unfinished, _ version: ResumptionVersion, on connection: (any RequestConnection)?,
        _ logger: Logger
    ) async throws -> FormResponse {
        let kept = try await upload.response()
        if let record = kept.record { connection?.report.note(.repeated(record)) }
        var response = try await kept.response { id in
            let hold = try reception.shares.take(of: .responses, on: connection)
            return try await reception.body(
                ofRecord: id, hold, .ordinary, logger: logger)
        }
        response.headers[.cacheControl] = "no-store"
        return describe(response, kept.length, version)
    }

    /// Responds to HEAD with the progress. An append in progress is ended, because a client that sends HEAD has given
    /// up its append. The bytes that the append has received are kept.
    package func progress(
        _ request: IncomingRequest, id: String?, on connection: (any RequestConnection)?, logger: Logger
    ) async throws -> FormResponse {
        let version = try await counting(logger) { try Self.version(of: request) }
        return try await responding(version, logger) {
            .response(try await progress(of: find(id), version, connection))
        }
    }

    private func progress(
        of upload: Uploads.Unfinished, _ version: ResumptionVersion, _ connection: (any RequestConnection)?
    ) async throws -> FormResponse {
        // The response does not wait for the screening of a form, which may take long.
        if upload.lock.isFinishing, let response = try? await describe(upload, version, connection) { return response }
        return try await upload.lock.withLock { try await describe(upload, version, connection) }
    }

    /// Returns the progress. Ends an append in progress first, unless the upload is becoming a record.
    private func settledProgress(of upload: Uploads.Unfinished) async throws -> UnfinishedUploadProgress {
        if upload.lock.isFinishing { return try await upload.durableProgress() }
        return try await upload.lock.withLock { try await upload.durableProgress() }
    }

    private func describe(
        _ upload: Uploads.Unfinished, _ version: ResumptionVersion, _ connection: (any RequestConnection)?
    ) async throws -> FormResponse {
        var headers: HTTPFields = [.cacheControl: "no-store"]
        headers.setUploadLength(upload.form.length, in: version)
        switch try await upload.durableProgress() {
        case .gone: throw UploadProblem.unfinishedUploadNotFound
        case .unfinished(let offset):
            headers.uploadOffset = offset
            headers.setUploadCompleteness(false, in: version)
        case .finished(let length, let record):
            headers.uploadOffset = length
            headers.setUploadLength(length, in: version)
            headers.setUploadCompleteness(true, in: version)
            headers[.location] = record.map(UploadRecord.url(of:))
            if let record { connection?.report.note(.repeated(record)) }
        }
        headers.setUploadLimits(limits(of: upload), in: version)
        return FormResponse(status: .noContent, headers: headers)
    }

    /// Responds to DELETE by discarding the upload. The record of a complete upload stays.
    package func cancel(_ request: IncomingRequest, id: String?, logger: Logger) async throws -> FormResponse {
        let version = try await counting(logger) { try Self.version(of: request) }
        return try await responding(version, logger) {
            let upload = try await find(id)
            return try await upload.lock.withLock {
                guard upload.progress != .gone else { throw UploadProblem.unfinishedUploadNotFound }
                try await discard(upload)
                return .response(FormResponse(status: .noContent))
            }
        }
    }

    func discard(_ upload: Uploads.Unfinished) async throws {
        try await upload.discard()
        uploads.ended(upload)
    }

    // MARK: - Common to all requests

    private static func version(of request: IncomingRequest) throws(UploadProblem) -> ResumptionVersion {
        guard let version = ResumptionVersion(of: request.headers) else { throw .unknownResumptionVersion }
        return version
    }

    private func find(_ id: String?) async throws -> Uploads.Unfinished {
        guard let id = id.flatMap({ ResumptionID($0) }), let upload = try await uploads.find(id)
        else {
            throw UploadProblem.unfinishedUploadNotFound
        }
        return upload
    }

    func location(of upload: Uploads.Unfinished) -> String {
        (options.locationOrigin ?? "") + ResumptionPath.folder(below: reception.options.path) + "/" + upload.id.text
    }

    func limits(of upload: Uploads.Unfinished) -> UploadLimits {
        limits(lifetime: upload.expires.timeIntervalSinceNow)
    }

    /// The limits of a new upload.
    var limits: UploadLimits { limits(lifetime: options.lifetime / .seconds(1)) }

    private func limits(lifetime: Double) -> UploadLimits {
        UploadLimits(
            maximumBytes: reception.options.limits.maximumBodyBytes,
            lifetimeSeconds: Int64(max(lifetime, 0).rounded(.up)))
    }
}
