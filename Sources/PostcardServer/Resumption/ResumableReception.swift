import HTTPTypes
import Hummingbird
import Logging
import PostcardForm
import PostcardResumption

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Takes a form in as many requests as it needs, and answers the last of them as if it had come in one.
struct ResumableReception<Store: UploadStore>: Sendable {
    let uploads: UnfinishedUploads
    let reception: Reception<Store>
    let options: ResumptionOptions

    /// What a request has come to.
    enum Outcome {
        case answer(Response)
        /// The form was looked at, and the refusal counted there.
        case refusedForm(UploadProblem)
    }

    // MARK: - Requests

    /// Answers OPTIONS: that uploads can be resumed here, and how large they may be (§4.1.4 of the draft).
    func offer(to request: Request) throws -> Response {
        let version = ResumptionVersion(of: request.headers) ?? .newest
        var headers: HTTPFields = [.acceptPatch: PartialUpload.mediaType, .cacheControl: "no-store"]
        headers.setResumptionVersion(version)
        headers.setUploadLimits(limits(lifetime: options.lifetime / .seconds(1)), in: version)
        return Response(status: .noContent, headers: headers)
    }

    /// Answers a request that posts a form, and may want to go on with it later.
    func create(_ request: Request, logger: Logger) async throws -> Response {
        if let response = try await createResumable(request, logger) { return response }
        return try await reception.answer(request, logger: logger)
    }

    /// Receives a form that can be resumed.
    ///
    /// Apart, because its frame is large: without it a sender of another form that stalls costs less.
    ///
    /// - Returns: `nil` if the form is to be received without the offer to resume it.
    @inline(never)
    private func createResumable(_ request: Request, _ logger: Logger) async throws -> Response? {
        guard let append = try await counting(logger, { try AppendRequest(creatingBy: request) }),
            let upload = try await naming(append.version, logger, { try await begin(append, by: request) })
        else { return nil }
        return try await answering(append.version, logger) {
            try await upload.turns.taking(on: UploadConnection.current?.channel) { turn in
                try await tell(append.version, of: upload)
                return try await receive(append, request, into: upload, turn, isWhole: true, logger)
            }
        }
    }

    /// - Returns: `nil` where no more uploads can be kept, and this one can do without.
    private func begin(_ append: AppendRequest, by request: Request) async throws -> UnfinishedUpload? {
        // What can be said of the form by its head alone is said now.
        let contentType = try request.formContentType(limits: reception.options.limits)
        let check = try reception.check(for: request)
        let key = try IdempotencyKey(of: request, scope: reception.options.keyScope)
        let length = try append.length(known: nil, maximum: reception.options.limits.maximumBodyBytes)
        let share = PeerAddress.share(reception.options.clientShare, of: options.maximumUnfinished)
        do {
            let upload = try await uploads.begin(
                contentType: contentType, key: key, length: length, check: check, options: options,
                owner: UploadConnection.current?.peer, share: share)
            guard upload != nil || append.isComplete else {
                throw UploadProblem.tooManyUnfinished(options, share: share)
            }
            return upload
        } catch let error as UploadStoreError where error.code == .full && append.isComplete {
            // There may be room for the form once, if not for what came and its record.
            return nil
        }
    }

    /// Tells where the upload can be gone on with, before its bytes are read (§5).
    private func tell(_ version: ResumptionVersion, of upload: UnfinishedUpload) async throws {
        var head = HTTPResponse(status: .uploadResumptionSupported)
        head.headerFields[.location] = location(of: upload)
        head.headerFields.setResumptionVersion(version)
        head.headerFields.setUploadLimits(limits(of: upload), in: version)
        try await UploadConnection.current?.inform(head)
    }

    /// Answers PATCH.
    func append(_ request: Request, id: String?, logger: Logger) async throws -> Response {
        let append = try await counting(logger) { try AppendRequest(appendingBy: request) }
        return try await answering(append.version, logger) {
            let upload = try await find(id)
            return try await upload.turns.taking(on: UploadConnection.current?.channel) { turn in
                switch try await upload.promisedProgress() {
                case .gone: throw UploadProblem.unfinishedUploadNotFound
                case .unfinished(let offset):
                    try check(append, offset, isComplete: false)
                    let length = try append.length(
                        known: upload.facts.length, maximum: reception.options.limits.maximumBodyBytes)
                    if let length { try await upload.learn(length: length) }
                    return try await receive(append, request, into: upload, turn, isWhole: false, logger)
                case .finished(let length, _):
                    try check(append, length, isComplete: true)
                    return .answer(try await answerAgain(append, request, upload, logger))
                }
            }
        }
    }

    private func check(_ append: AppendRequest, _ offset: Int64, isComplete: Bool) throws(UploadProblem) {
        guard append.offset != offset else { return }
        throw .mismatchingOffset(expected: offset, provided: append.offset).adding { fields in
            fields.setUploadCompleteness(isComplete, in: append.version)
        }
    }

    /// Gives the last answer to a sender who missed it, and asks for it by completing the upload once more.
    private func answerAgain(
        _ append: AppendRequest, _ request: Request, _ upload: UnfinishedUpload, _ logger: Logger
    ) async throws -> Response {
        let completed = UploadProblem.completedUpload(in: append.version).adding { fields in
            fields.setUploadCompleteness(true, in: append.version)
        }
        guard append.isComplete, append.contentLength ?? 0 == 0 else { throw completed }
        for try await chunk in request.body where chunk.readableBytes > 0 { throw completed }
        let kept = try await kept(by: upload)
        let response = try await kept.response { try await reception.body(ofRecord: $0, logger: logger) }
        return describe(response, kept.length, append.version)
    }

    private func kept(by upload: UnfinishedUpload) async throws -> KeptAnswer {
        try await onFileThread { [folder = upload.folder] in try folder.answer() }
    }

    /// Answers HEAD. An append that is under way is ended, because its sender has given it up, and its bytes that have
    /// got as far as here are taken before.
    func progress(_ request: Request, id: String?, logger: Logger) async throws -> Response {
        let version = try await counting(logger) { try Self.version(of: request) }
        return try await answering(version, logger) {
            let upload = try await find(id)
            // Nobody waits for a form that is being screened, unless that ends this very moment.
            if upload.turns.isFinishing, let answer = try? await describe(upload, version) { return .answer(answer) }
            return try await upload.turns.taking { _ in .answer(try await describe(upload, version)) }
        }
    }

    private func describe(_ upload: UnfinishedUpload, _ version: ResumptionVersion) async throws -> Response {
        var headers: HTTPFields = [.cacheControl: "no-store"]
        headers.uploadLength = upload.facts.length
        switch try await upload.promisedProgress() {
        case .gone: throw UploadProblem.unfinishedUploadNotFound
        case .unfinished(let offset):
            headers.uploadOffset = offset
            headers.setUploadCompleteness(false, in: version)
        case .finished(let length, let location):
            headers.uploadOffset = length
            headers.uploadLength = length
            headers.setUploadCompleteness(true, in: version)
            headers[.location] = location
        }
        headers.setUploadLimits(limits(of: upload), in: version)
        return Response(status: .noContent, headers: headers)
    }

    /// Answers DELETE: nothing is left of the upload; the record of one that was complete stays.
    func cancel(_ request: Request, id: String?, logger: Logger) async throws -> Response {
        let version = try await counting(logger) { try Self.version(of: request) }
        return try await answering(version, logger) {
            let upload = try await find(id)
            return try await upload.turns.taking { _ in
                guard upload.progress != .gone else { throw UploadProblem.unfinishedUploadNotFound }
                try await uploads.remove(upload)
                return .answer(Response(status: .noContent))
            }
        }
    }

    // MARK: - What they have in common

    private static func version(of request: Request) throws(UploadProblem) -> ResumptionVersion {
        guard let version = ResumptionVersion(of: request.headers) else { throw .unknownResumptionVersion }
        return version
    }

    private func find(_ id: String?) async throws -> UnfinishedUpload {
        guard let id = id.flatMap({ ResumptionID($0) }), let upload = await uploads.find(id) else {
            throw UploadProblem.unfinishedUploadNotFound
        }
        return upload
    }

    func location(of upload: UnfinishedUpload) -> String {
        Self.path(below: reception.options.path) + "/" + upload.id.text
    }

    /// Where uploads that can be resumed lie, below where forms are posted.
    static func path(below uploadPath: String) -> String {
        (uploadPath.hasSuffix("/") ? uploadPath : uploadPath + "/") + ResumptionPath.folder
    }

    func limits(of upload: UnfinishedUpload) -> UploadLimits {
        limits(lifetime: upload.facts.expires.timeIntervalSinceNow)
    }

    private func limits(lifetime: Double) -> UploadLimits {
        UploadLimits(
            maximumBytes: reception.options.limits.maximumBodyBytes,
            lifetimeSeconds: Int64(max(lifetime, 0).rounded(.up)))
    }

    private func answering(
        _ version: ResumptionVersion, _ logger: Logger, _ body: () async throws -> Outcome
    ) async throws -> Response {
        switch try await naming(version, logger, body) {
        case .answer(var response):
            response.headers.setResumptionVersion(version)
            return response
        case .refusedForm(let problem):
            throw problem.adding { $0.setResumptionVersion(version) }
        }
    }

    /// Names the version in a refusal, and the limits in one that is about them.
    private func naming<Value>(
        _ version: ResumptionVersion, _ logger: Logger, _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await counting(logger, body)
        } catch let problem as UploadProblem {
            throw problem.adding { fields in
                fields.setResumptionVersion(version)
                if problem.status == .contentTooLarge {
                    fields.setUploadLimits(limits(lifetime: options.lifetime / .seconds(1)), in: version)
                }
            }
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
                throw problem
            }
        } catch let problem as UploadProblem {
            reception.meter.refused(problem)
            throw problem
        }
    }
}
