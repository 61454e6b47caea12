import HTTPTypes
package import Logging
import NIOCore
import PostcardForm
import PostcardFoundation
import PostcardWire
package import PostcardStore

/// Receives the form of a request, and responds with its record or a refusal.
package struct Reception<Store: UploadStore>: Sendable {
    let store: Store
    package let options: UploadOptions
    let meter: UploadMeter
    /// Counts the resources that each client uses.
    let shares: ShareAccount
    /// The limit of the store's total size; `nil` for no limit.
    let limit: StoreLimit?
    /// The app's handler for stored forms, called before the response.
    private var stored: StoredHandler?

    package init(store: Store, options: UploadOptions, meter: UploadMeter, shares: ShareAccount, limit: StoreLimit?) {
        self.store = store
        self.options = options
        self.meter = meter
        self.shares = shares
        self.limit = limit
    }

    /// An app's handler of a stored form, which returns the app's own response, or `nil` to respond with the record.
    package typealias StoredHandler = @Sendable (CommittedUpload) async throws -> FormResponse?

    /// Returns a copy that passes stored forms to the app.
    package func passingForm(to stored: StoredHandler?) -> Self {
        var reception = self
        reception.stored = stored
        return reception
    }

    /// A form that became a record.
    struct Received {
        let upload: CommittedUpload
        /// Counts the upload as in progress until its response is sent.
        let hold: ShareAccount.Hold
        /// Reserves the memory for the texts of the record.
        let text: ShareAccount.Hold?
        /// The digest of the form, if the client asked for it.
        let digest: BodyDigest?
        /// The app's own response; `nil` if the response shows the record.
        var ownResponse: FormResponse?
    }

    package func response(to request: IncomingRequest, on connection: (any RequestConnection)?, logger: Logger)
        async throws -> FormResponse
    {
        let received = try await receive(request, on: connection, observer: connection?.report.observer, logger: logger)
        return await response(showing: received, on: connection, logger: logger)
    }

    /// Receives the form of a request, and counts and reports the outcome. `connection` is `nil` if the server provides
    /// none. The form becomes a record under `key`, which defaults to the key in the request.
    func receive(
        _ request: IncomingRequest, on connection: (any RequestConnection)?, observer: (any FormObserver)?,
        under key: UploadKey? = nil, logger: Logger
    ) async throws -> Received {
        var received: Received
        do {
            received = try await save(request, on: connection, observer: observer, under: key, logger: logger)
        } catch let problem as UploadProblem {
            let refusal = await observer?.refusal(for: problem) ?? problem
            countRefusal(refusal)
            throw named(refusal)
        }
        let upload = received.upload
        meter.received(upload)
        connection?.report.note(upload.isRepetition ? .repeated(upload.record.id) : .recorded(upload.record))
        // The form counts as received even if the app refuses it.
        received.ownResponse = try await ownResponse(to: upload, logger: logger)
        return received
    }

    /// Returns the app's own response to a stored form: the one that the store has kept, or else a new one.
    private func ownResponse(to upload: CommittedUpload, logger: Logger) async throws -> FormResponse? {
        guard let stored else { return nil }
        let keeper = store as? any ResponseKeepingUploadStore
        let id = upload.record.id
        do {
            if upload.isRepetition, let bytes = try await keeper?.response(to: id) {
                return try await JSONDecoder().decode(FinalResponse.self, from: Data(bytes)).response { _ in
                    .bytes(ByteBuffer(), nil)
                }
            }
        } catch let error as DecodingError {
            // If the kept response cannot be read, the app responds again.
            logger.error("Could not read the app's response", metadata: ["upload": "\(id)", "error": "\(error)"])
        } catch let error as UploadStoreError {
            // The app must not respond again, because a new response could differ from the kept one.
            throw problem(of: error, logger: logger)
        }
        guard let response = try await stored(upload) else { return nil }
        do {
            let kept = FinalResponse(response, isOwn: true, showing: id, length: 0)
            try await keeper?.keepResponse(Array(kept.encoded()), to: id)
        } catch {
            logger.error("Could not keep the app's response", metadata: ["upload": "\(id)", "error": "\(error)"])
        }
        return response
    }

    /// Counts a refusal, unless ``ShareAccount`` has already counted it.
    func countRefusal(_ problem: UploadProblem) {
        if !problem.isOfShare { meter.refused(problem) }
    }

    /// Adds a list of all size limits to a problem with the status 413, if the problem has no list yet.
    func named(_ problem: UploadProblem) -> UploadProblem {
        guard problem.status == .contentTooLarge, problem.limits.isEmpty else { return problem }
        var problem = problem
        problem.limits = options.sizeLimits
        return problem
    }

    func response(
        showing received: Received, on connection: (any RequestConnection)?, logger: Logger
    ) async -> FormResponse {
        if let response = received.ownResponse { return response }
        var headers = HTTPFields(content: "application/json")
        headers[.location] = received.upload.record.url
        headers[.reprDigest] = received.digest?.fieldValue
        return FormResponse(
            status: .created, headers: headers, body: await body(of: received, on: connection, logger: logger))
    }

    /// Makes the body of a response. A small record is encoded, which is faster than reading its stored bytes. A large
    /// record is read from the store, so that it is not in memory while its client reads slowly.
    private func body(
        of received: Received, on connection: (any RequestConnection)?, logger: Logger
    ) async -> FormResponse.Body {
        let record = received.upload.record
        if record.expectedBytes <= Self.smallBytes {
            let json = record.jsonBuffer()
            // Escaped text may be six times as long.
            if json.readableBytes <= Self.smallBytes { return .bytes(json, nil) }
        }
        do {
            return try await body(ofRecord: record.id, received.hold, .immediate, logger: logger)
        } catch {
            // The record was deleted by another request, or cannot be opened. The form was received in any case.
            let json = record.jsonBuffer()
            if let hold = try? shares.take(json.readableBytes, of: .responseBytes, on: connection) {
                return .bytes(json, hold)
            }
            return .bytes(FormResponse.Body.identifier(record.id), nil)
        }
    }

    /// The maximum size of a small record, in bytes. Several thousand small records fit in memory.
    private static var smallBytes: Int { 4 << 10 }

    /// The stored bytes of a record. `hold` is the reservation of the open file.
    func body(
        ofRecord id: UploadID, _ hold: ShareAccount.Hold, _ priority: FormResponse.Priority, logger: Logger
    ) async throws -> FormResponse.Body {
        do {
            if let stored = try await store.openRecord(id) {
                return .record(id, stored, hold, priority)
            }
        } catch let error as UploadStoreError {
            logger.error("Could not read a record", metadata: ["upload": "\(id)", "error": "\(error)"])
            meter.storeFailed(.read, error)
            throw UploadProblem.unreadable
        }
        throw UploadProblem.uploadNotFound
    }

    private func save(
        _ request: IncomingRequest, on connection: (any RequestConnection)?, observer: (any FormObserver)?,
        under key: UploadKey?,
        logger: Logger
    ) async throws -> Received {
        let form = try form(for: request, on: connection, observer: observer)
        let key = try key ?? UploadKey(of: request, scope: options.keyScope)
        var body = request.chunks()
        try shares.check(of: .uploads, for: connection?.peer)
        do {
            // The upload begins before `100 Continue` is sent, because a full store throws here.
            let announced = request.headers[.contentLength].flatMap { Int64($0) }
            let upload = try await store.beginUpload(under: key, announcedBytes: announced)
            let beginning: ByteBuffer?
            let hold: ShareAccount.Hold
            do {
                if !upload.isRepetition { try limit?.check(announced ?? 0, of: connection?.peer) }
                beginning = try await request.beginning(of: &body, on: connection)
                hold = try shares.take(of: .uploads, on: connection)
            } catch {
                await upload.discard()
                throw form.problem(for: error)
            }
            let start = ContinuousClock.now
            meter.begins()
            defer { meter.ended(bodyBytes: form.bodyBytes, after: start.duration(to: .now)) }
            do {
                try await form.receive(beginning, &body, into: upload)
            } catch {
                await upload.discard()
                throw form.problem(for: error)
            }
            return Received(
                upload: try await finish(upload, with: form, from: connection?.peer, logger: logger), hold: hold,
                text: form.text, digest: form.digest)
        } catch let error as UploadStoreError {
            throw problem(of: error, logger: logger)
        }
    }

    /// The refusal for a form that the store could not keep. The error is logged and counted if the store caused it.
    func problem(of error: UploadStoreError, logger: Logger) -> UploadProblem {
        let problem = UploadProblem.store(error)
        if problem.status.kind == .serverError {
            logger.error("Could not store a form", metadata: ["error": "\(error)"])
            meter.storeFailed(.store, error)
        }
        return problem
    }

    private func finish(
        _ upload: some PendingUpload, with form: IncomingForm, from peer: PeerAddress?, logger: Logger
    ) async throws -> CommittedUpload {
        do {
            if let screening = Screening(options, shares),
                let (index, reason) = try await screening.refusal(
                    of: try await upload.finishedFiles(), from: peer, logger: logger)
            {
                throw UploadProblem.fileRefused(index, reason: reason)
            }
            let place =
                upload.isRepetition
                ? nil : try await limit?.place(for: form.bodyBytes, files: form.fileCount, of: peer)
            let committed = try await upload.commit(fields: form.fields, parts: form.parts)
            if !committed.isRepetition { place?.becomes(committed.record) }
            return committed
        } catch {
            await upload.discard()
            throw form.problem(for: error)
        }
    }

    /// Makes the form of a request after checking the request's head.
    @inline(never)
    private func form(
        for request: IncomingRequest, on connection: (any RequestConnection)?, observer: (any FormObserver)?
    ) throws -> IncomingForm {
        let frame = try frame(of: request)
        return IncomingForm(
            parser: try parser(for: request, in: frame), frame: frame,
            digestCheck: try DigestCheck(of: request, [.contentDigest, .reprDigest]),
            maximumRecordBytes: options.maximumRecordBytes, maximumBodyBytes: options.limits.maximumBodyBytes,
            shares: shares, connection: connection, observer: observer, typePolicy: options.contentTypePolicy)
    }

    /// Makes the checker of a form that arrives in several requests, after checking the request's head.
    @inline(never)
    func checker(for request: IncomingRequest) throws -> ArrivingFormChecker {
        let frame = try frame(of: request)
        return try ArrivingFormChecker(parser: try parser(for: request, in: frame), frame: frame)
    }

    /// Checks a request's head. Returns the bytes to add before and after the body to make it a form; `nil` if the body
    /// already is a form.
    func frame(of request: IncomingRequest) throws(UploadProblem) -> FramedBody? {
        let contentType = try request.head.formContentType(limits: options.limits)
        return options.acceptsAnyBody && !FramedBody.isForm(contentType) ? FramedBody(of: request) : nil
    }

    private func parser(for request: IncomingRequest, in frame: FramedBody?) throws(UploadProblem) -> CheckedFormParser
    {
        var limits = options.limits
        if let frame {
            limits.maximumBodyBytes = limits.maximumBodyBytes.addingReportingOverflow(frame.byteCount).partialValue
            if limits.maximumBodyBytes < 0 { limits.maximumBodyBytes = .max }
        }
        do {
            return try CheckedFormParser(
                contentType: frame?.contentType ?? request.headers[.contentType] ?? "", limits: limits,
                rules: options.rules)
        } catch {
            throw UploadProblem(error)
        }
    }
}
