#if Server || CommandLine
public import HTTPTypes
public import Hummingbird
import Logging
import NIOCore
import PostcardForm
import PostcardFoundation
import PostcardReception
import PostcardServer
public import PostcardStore

extension Router {
    /// Adds routes through which clients send files directly to a store's bucket.
    ///
    /// ```swift
    /// let store = try await S3UploadStore.open(S3Bucket("s3://uploads/forms"))
    /// var options = PresignedFormOptions()
    /// options.maximumBytes = 20 << 20
    /// options.contentTypes = [.anyImage]
    /// router.addUploads(to: store)
    /// try router.addPresignedForms(of: store, options: options)
    /// ```
    ///
    /// | request | response |
    /// | --- | --- |
    /// | `POST /uploads/forms` with `{"filename", "contentType", "fields"}`, all optional | a signed form: `{"method", "url", "fields" or "headers", "key", "expires"}` |
    /// | `POST /uploads/forms/finished` with `{"key", "etag", "size"}`, the last two optional | 201 and the record |
    /// | `POST /uploads/forms/finished` with an event of the store | 200 and the identifiers of the records |
    ///
    /// A file is reported by the client that sent it, by the store's events, or by both: the same file makes one
    /// record. Ceph and MinIO post their events themselves; Amazon S3 needs a function in between. An event that cannot
    /// be handled now is answered with 503, so that the store delivers it again.
    ///
    /// The routes do not authenticate clients: add middleware for that. Use a separate token for the store's events.
    ///
    /// - Parameters:
    ///   - store: The store that keeps the uploads.
    ///   - options: The rules for files, and the paths of the routes.
    ///   - stored: Called with each reported file after it has a record, and again if the file is reported again. The
    ///     head and the context belong to the report, which the client or the store sends. Defaults to `nil`. If the
    ///     closure throws, the record stays. The sender of the report gets the thrown `UploadProblem` or `HTTPError`,
    ///     or a 503 for another error. A store then delivers its event again.
    /// - Throws: ``S3Error`` if the endpoint or the key prefix in the options is invalid.
    @discardableResult
    public func addPresignedForms(
        of store: S3UploadStore, options: PresignedFormOptions = PresignedFormOptions(),
        stored: (@Sendable (CommittedUpload, HTTPRequest, Context) async throws -> Void)? = nil
    ) throws -> Self {
        let forms = try PresignedForms(of: store, options)
        let routes = PresignedFormRoutes(forms: forms)
        let path = UploadOptions.withSingleSlashes(options.path)
        let finished = UploadOptions.withSingleSlashes("\(path)/finished")
        var added = Routes<Context>()
        added.add(RouterPath(path), .post) { request, context, _ in
            try await routes.form(request, logger: context.logger)
        }
        added.add(RouterPath(finished), .post) { request, context, _ in
            try await routes.finished(request, logger: context.logger) { upload in
                guard let stored else { return }
                let handler: StoredFormHandler<Context> = {
                    try await stored($0, $1.head, $2); return nil
                }
                _ = try await upload.pass(to: handler, request, context)
            }
        }
        added.install(on: self)
        return self
    }
}

extension PresignedForm: ResponseEncodable {}

/// Responds to requests for forms, and to reports of stored files.
private struct PresignedFormRoutes: Sendable {
    let forms: PresignedForms

    func form(_ request: Request, logger: Logger) async throws -> Response {
        let body = try await Self.body(of: request, upTo: FormRequest.maximumBytes)
        let wish = try body.readableBytes == 0 ? FormRequest() : Self.decoded(FormRequest.self, body)
        let type: PostcardForm.MediaType?
        do {
            type = try wish.contentType.map { try PostcardForm.MediaType($0) }
        } catch {
            throw UploadProblem.malformedRequest("contentType is not a media type.")
        }
        let form = try await Self.storing(logger) {
            try await forms.form(
                filename: wish.filename ?? "", contentType: type,
                fields: (wish.fields ?? []).map { UploadRecord.Field(name: $0.name, value: $0.value) })
        }
        return try Self.response(.ok, JSONEncoder.forResponses.encode(form))
    }

    /// - Parameter process: Called with each upload before the response.
    func finished(
        _ request: Request, logger: Logger, process: (CommittedUpload) async throws -> Void
    ) async throws -> Response {
        let body = try await Self.body(of: request, upTo: ObjectNotification.maximumBytes)
        let notification = try Self.decoded(ObjectNotification.self, body)
        if let records = notification.records {
            guard records.count <= ObjectNotification.maximumRecords else {
                throw UploadProblem.malformedRequest(
                    "It has \(records.count) records, and at most \(ObjectNotification.maximumRecords) are read.")
            }
            return try await handled(records, logger: logger, process)
        }
        guard let key = notification.key else { throw UploadProblem.malformedRequest("It names no key.") }
        let committed = try await Self.storing(logger) {
            try await forms.record(ofObject: key, etag: notification.etag, size: notification.size)
        }
        try await process(committed)
        return Self.response(.created, committed.record.json(), [.location: committed.record.url])
    }

    /// Makes records of the objects in an event. Objects of other programs and refused objects are skipped, because an
    /// event is delivered again until it succeeds. If an object fails, or the app fails to handle its record, the error
    /// is thrown after all other objects were handled, so that it does not delay them.
    private func handled(
        _ records: [ObjectNotification.Record], logger: Logger, _ process: (CommittedUpload) async throws -> Void
    ) async throws -> Response {
        var made: [UploadID] = []
        var failure: (any Error)?
        for record in records where record.isCreation && record.s3.bucket.name == forms.bucketName {
            let committed: CommittedUpload
            do {
                committed = try await Self.storing(logger) {
                    try await forms.record(
                        ofObject: record.key, etag: record.s3.object.eTag, size: record.s3.object.size)
                }
            } catch let problem as UploadProblem where problem.status.kind == .clientError {
                logger.info("An object of an event became no record", metadata: ["code": "\(problem.code)"])
                continue
            } catch {
                failure = failure ?? error
                continue
            }
            do {
                try await process(committed)
                made.append(committed.record.id)
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return try Self.response(.ok, JSONEncoder.forResponses.encode(["uploads": made]))
    }

    // MARK: - Bodies

    private static func body(of request: Request, upTo maximum: Int) async throws -> ByteBuffer {
        do {
            return try await request.body.collect(upTo: maximum)
        } catch is NIOTooManyBytesError {
            throw UploadProblem(
                status: .contentTooLarge, code: "body-too-large", message: "The body has more than \(maximum) bytes.")
        }
    }

    private static func decoded<Value: Decodable>(_ type: Value.Type, _ body: ByteBuffer) throws -> Value {
        let bytes = Data(body.readableBytesView)
        if let reason = JSON.reasonNotToDecode(bytes) { throw UploadProblem.malformedRequest(reason) }
        do {
            return try JSONDecoder().decode(type, from: bytes)
        } catch {
            throw UploadProblem.malformedRequest("It is not the expected JSON.")
        }
    }

    /// Makes a response that caches must not store, because a form is a credential.
    private static func response(
        _ status: HTTPResponse.Status, _ json: Data, _ fields: HTTPFields = [:]
    ) -> Response {
        var headers: HTTPFields = [.contentType: "application/json", .cacheControl: "no-store"]
        for field in fields { headers.append(field) }
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: json)))
    }

    /// Turns errors of the store into refusals.
    private static func storing<Value>(_ logger: Logger, _ work: () async throws -> Value) async throws -> Value {
        do {
            return try await work()
        } catch let error as UploadStoreError {
            let problem = UploadProblem.store(error)
            if problem.status.kind == .serverError {
                logger.error("Could not use the object store", metadata: ["error": "\(error)"])
            }
            throw problem
        }
    }
}

extension UploadProblem {
    fileprivate static func malformedRequest(_ message: String) -> UploadProblem {
        UploadProblem(
            status: .badRequest, code: "malformed-request", message: "The body cannot be used. \(message)",
            advice: "Send JSON as the documentation of the route describes.")
    }
}
#endif
