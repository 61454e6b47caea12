import HTTPTypes
import Hummingbird
import Logging
import PostcardForm
import PostcardFoundation
import PostcardResumption

/// Receives a form in several requests, and responds to the last one as if the form had arrived in it alone.
struct ResumableReception<Store: UploadStore, Uploads: ResumableUploadStore>: Sendable {
    let uploads: UnfinishedUploads<Uploads>
    private(set) var reception: Reception<Store>
    let options: ResumptionOptions

    init(uploads: Uploads, reception: Reception<Store>, options: ResumptionOptions) {
        self.uploads = UnfinishedUploads(store: uploads, shares: reception.shares, options: options)
        self.reception = reception
        self.options = options
    }

    /// The reception of one request. If it brings the end of a form, the form is passed to the app once it is stored.
    func passingForm<Context: RequestContext>(
        to stored: StoredFormHandler<Context>?, of request: Request, _ context: Context
    ) -> Self {
        var resumption = self
        resumption.reception = reception.passingForm(to: stored, of: request, context)
        return resumption
    }

    /// What became of a request.
    enum Outcome {
        case response(Response)
        /// The form was read and refused, and the refusal counted. The client need not ask again if it is final.
        case refusedForm(UploadProblem, isFinal: Bool)
    }

    // MARK: - Requests

    /// Responds to OPTIONS: uploads can be resumed here, and how large they may be (§4.1.4 of the draft).
    func offer(to request: Request) throws -> Response {
        let version = ResumptionVersion(of: request.headers) ?? .newest
        var headers: HTTPFields = [.acceptPatch: PartialUpload.mediaType, .cacheControl: "no-store"]
        headers.setResumptionVersion(version)
        headers.setUploadLimits(limits, in: version)
        headers.askForDigests()
        return Response(status: .noContent, headers: headers)
    }

    /// Receives a form that cannot be resumed. Its client may be one that can, so a refusal of the form's size carries
    /// the limits (§4.1.4).
    func receiveOrdinary(
        _ request: Request, on connection: UploadConnection?, logger: Logger
    ) async throws -> Response {
        do {
            return try await reception.response(to: request, on: connection, logger: logger)
        } catch let problem as UploadProblem where problem.status == .contentTooLarge {
            throw problem.adding { $0.setUploadLimits(limits, in: ResumptionVersion(of: request.headers) ?? .newest) }
        }
    }

    /// Responds to a request that posts a form which may be resumed.
    ///
    /// - Returns: `nil` if the form is to be received as one that cannot be resumed.
    // Not inlined, because its frame is large, and forms that cannot be resumed are received without it.
    @inline(never)
    func create(
        _ request: Request, on connection: UploadConnection?, logger: Logger
    ) async throws -> Response? {
        guard let append = try await counting(logger, { try AppendRequest(creatingBy: request) }) else { return nil }
        // A request that its head alone shows to be wrong is refused first.
        let (form, checker) = try await naming(append.version, isFinal: true, logger) {
            // Compared once the bytes have arrived.
            _ = try DigestCheck(of: request, [.contentDigest, .reprDigest])
            return (try unfinishedForm(of: request), try reception.checker(for: request))
        }
        guard
            let upload = try await naming(
                append.version, logger, { try await create(append, form, checker, by: request, from: connection?.peer) }
            )
        else { return nil }
        return try await responding(append.version, logger) {
            try await upload.lock.withLock(on: connection?.channel) { holder in
                try await receive(append, request, on: connection, into: upload, holder, isWhole: true, logger)
            }
        }
    }

    /// The facts about a form that are in the head of its request.
    private func unfinishedForm(of request: Request) throws(UploadProblem) -> (contentType: String, key: UploadKey?) {
        (
            try request.formContentType(limits: reception.options.limits),
            try UploadKey(of: request, scope: reception.options.keyScope)
        )
    }

    /// - Returns: `nil` if no more uploads can be kept, and the request has the whole form.
    private func create(
        _ append: AppendRequest, _ known: (contentType: String, key: UploadKey?), _ checker: ArrivingFormChecker,
        by request: Request, from peer: PeerAddress?
    ) async throws -> Uploads.Unfinished? {
        let length = try append.length(known: nil, maximum: reception.options.limits.maximumBodyBytes)
        do {
            let id = ResumptionID.random()
            var form = UnfinishedForm(
                contentType: known.contentType,
                // The identifier is known to the client alone, and so is a key made of it.
                key: known.key ?? UploadKey(id.text, scope: "\u{0}resumable"), length: length,
                reprDigest: request.headers[.reprDigest], wantReprDigest: request.headers[.wantReprDigest])
            form.client = peer
            let upload = try await uploads.create(id, of: form, for: peer)
            upload.lock.giveBack(checker)
            return upload
        } catch let error as UploadStoreError where error.code == .full && append.isComplete {
            // There may be room for the record alone.
            return nil
        } catch let problem as UploadProblem where problem.isOfShare && append.isComplete {
            return nil
        }
    }

    /// Responds to PATCH.
    func append(
        _ request: Request, id: String?, on connection: UploadConnection?, logger: Logger
    ) async throws -> Response {
        let append = try await counting(logger) { try AppendRequest(appendingBy: request) }
        return try await responding(append.version, logger) {
            let upload = try await find(id)
            return try await upload.lock.withLock(on: connection?.channel) { holder in
                switch try await upload.durableProgress() {
                case .gone: throw UploadProblem.unfinishedUploadNotFound
                case .unfinished(let offset):
                    try check(append, offset)
                    uploads.adopt(upload, at: offset, for: connection?.peer)
                    let known = upload.form.length
                    let length = try append.length(
                        known: known, maximum: reception.options.limits.maximumBodyBytes)
                    if let length, known == nil {
                        try await uploads.announce(length, of: upload)
                        try await upload.setLength(length)
                    }
                    return try await receive(
                        append, request, on: connection, into: upload, holder, isWhole: false, logger)
                case .finished(let length, _):
                    try check(append, length)
                    // Since the eighth version, bytes after the end are a wrong length (§4.4.2).
                    let hasContent = try await hasContent(append, request)
                    throw hasContent && append.version >= .interop8
                        ? UploadProblem.inconsistentLength : .completedUpload
                }
            }
        }
    }

    private func check(_ append: AppendRequest, _ offset: Int64) throws(UploadProblem) {
        guard append.offset == offset else { throw .mismatchingOffset(expected: offset, provided: append.offset) }
    }

    private func hasContent(_ append: AppendRequest, _ request: Request) async throws -> Bool {
        guard append.contentLength ?? 0 == 0 else { return true }
        for try await chunk in request.body where chunk.readableBytes > 0 { return true }
        return false
    }

    /// Responds to GET: repeats the response to a complete upload for a client that missed it. For an incomplete one it
    /// is the response to HEAD, because some proxies turn HEAD into GET.
    func repeatResponse(
        _ request: Request, id: String?, on connection: UploadConnection?, logger: Logger
    ) async throws -> Response {
        let version = try await counting(logger) { try Self.version(of: request) }
        return try await responding(version, logger) {
            let upload = try await find(id)
            guard case .finished = try await settledProgress(of: upload) else {
                return .response(try await progress(of: upload, version, connection))
            }
            let kept = try await upload.response()
            if let record = kept.record { connection?.report.note(.repeated(record)) }
            var response = try await kept.response { id in
                let hold = try reception.shares.take(of: .responses, on: connection)
                return try await reception.body(
                    ofRecord: id, hold, priority: .ordinary, on: connection, logger: logger)
            }
            response.headers[.cacheControl] = "no-store"
            return .response(describe(response, kept.length, version))
        }
    }

    /// Responds to HEAD. Ends an append in progress, because its client has given up on it, but first accepts the bytes
    /// that have arrived.
    func progress(
        _ request: Request, id: String?, on connection: UploadConnection?, logger: Logger
    ) async throws -> Response {
        let version = try await counting(logger) { try Self.version(of: request) }
        return try await responding(version, logger) {
            .response(try await progress(of: find(id), version, connection))
        }
    }

    private func progress(
        of upload: Uploads.Unfinished, _ version: ResumptionVersion, _ connection: UploadConnection?
    ) async throws -> Response {
        // A form may be screened for a long time, and is not waited for.
        if upload.lock.isFinishing, let response = try? await describe(upload, version, connection) { return response }
        return try await upload.lock.withLock { try await describe(upload, version, connection) }
    }

    /// The progress once an append that may still be taken back has ended.
    private func settledProgress(of upload: Uploads.Unfinished) async throws -> UnfinishedUploadProgress {
        if upload.lock.isFinishing { return try await upload.durableProgress() }
        return try await upload.lock.withLock { try await upload.durableProgress() }
    }

    private func describe(
        _ upload: Uploads.Unfinished, _ version: ResumptionVersion, _ connection: UploadConnection?
    ) async throws -> Response {
        var headers: HTTPFields = [.cacheControl: "no-store"]
        headers.uploadLength = upload.form.length
        switch try await upload.durableProgress() {
        case .gone: throw UploadProblem.unfinishedUploadNotFound
        case .unfinished(let offset):
            headers.uploadOffset = offset
            headers.setUploadCompleteness(false, in: version)
        case .finished(let length, let record):
            headers.uploadOffset = length
            headers.uploadLength = length
            headers.setUploadCompleteness(true, in: version)
            headers[.location] = record.map(UploadRecord.url(of:))
            if let record { connection?.report.note(.repeated(record)) }
        }
        headers.setUploadLimits(limits(of: upload), in: version)
        return Response(status: .noContent, headers: headers)
    }

    /// Responds to DELETE: discards the upload. The record of a complete one stays.
    func cancel(_ request: Request, id: String?, logger: Logger) async throws -> Response {
        let version = try await counting(logger) { try Self.version(of: request) }
        return try await responding(version, logger) {
            let upload = try await find(id)
            return try await upload.lock.withLock {
                guard upload.progress != .gone else { throw UploadProblem.unfinishedUploadNotFound }
                try await discard(upload)
                return .response(Response(status: .noContent))
            }
        }
    }

    func discard(_ upload: Uploads.Unfinished) async throws {
        try await upload.discard()
        uploads.ended(upload)
    }

    // MARK: - What the requests have in common

    private static func version(of request: Request) throws(UploadProblem) -> ResumptionVersion {
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
        ResumptionPath.folder(below: reception.options.path) + "/" + upload.id.text
    }

    func limits(of upload: Uploads.Unfinished) -> UploadLimits {
        limits(lifetime: upload.expires.timeIntervalSinceNow)
    }

    /// The limits of an upload that is created now.
    private var limits: UploadLimits { limits(lifetime: options.lifetime / .seconds(1)) }

    private func limits(lifetime: Double) -> UploadLimits {
        UploadLimits(
            maximumBytes: reception.options.limits.maximumBodyBytes,
            lifetimeSeconds: Int64(max(lifetime, 0).rounded(.up)))
    }

    private func responding(
        _ version: ResumptionVersion, _ logger: Logger, _ body: () async throws -> Outcome
    ) async throws -> Response {
        switch try await naming(version, logger, body) {
        case .response(var response):
            response.headers.setResumptionVersion(version)
            return response
        case .refusedForm(let problem, let isFinal):
            throw named(problem, version, isFinal: isFinal)
        }
    }

    /// Adds to refusals what the draft asks for.
    ///
    /// - Parameter isFinal: Whether the refusals are of the form, and not of the request (§4.4.2). Defaults to `false`.
    private func naming<Value>(
        _ version: ResumptionVersion, isFinal: Bool = false, _ logger: Logger, _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await counting(logger, body)
        } catch let problem as UploadProblem {
            // A form that is too large can be made smaller, within the limits.
            throw named(problem, version, isFinal: isFinal && problem.status != .contentTooLarge)
        }
    }

    /// Adds the version and the completeness to a refusal, and the limits to one that is about them.
    private func named(_ problem: UploadProblem, _ version: ResumptionVersion, isFinal: Bool) -> UploadProblem {
        reception.named(problem).adding { fields in
            fields.setResumptionVersion(version)
            fields.setUploadCompleteness(isFinal, in: version)
            if problem.status == .contentTooLarge { fields.setUploadLimits(limits, in: version) }
        }
    }

    /// Counts a refusal.
    private func counting<Value>(_ logger: Logger, _ body: () async throws -> Value) async throws -> Value {
        do {
            do {
                return try await body()
            } catch let error as UploadStoreError {
                let problem = UploadProblem.store(error)
                logger.error("Could not keep an upload", metadata: ["error": "\(error)"])
                if problem.status.kind == .serverError { reception.meter.storeFailed(.store, error) }
                throw problem
            }
        } catch let problem as UploadProblem {
            reception.countRefusal(problem)
            throw problem
        }
    }
}

/// The paths of unfinished uploads, below the path where forms are posted.
package enum ResumptionPath {
    private static let name = "resumable"

    static func folder(below uploadPath: String) -> String {
        (uploadPath.hasSuffix("/") ? uploadPath : uploadPath + "/") + name
    }

    /// Whether a path is that of an unfinished upload.
    package static func contains(_ path: String, below uploadPath: String) -> Bool {
        let segments = path.split(separator: "/")
        return segments.count > 1 && segments.dropLast() == (uploadPath + "/" + name).split(separator: "/")[...]
    }
}
