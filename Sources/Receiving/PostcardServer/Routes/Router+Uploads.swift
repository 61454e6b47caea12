#if !Server && !CommandLine
#error("PostcardServer needs the trait Server of this package: .package(url: …, traits: [\"Server\"])")
#endif

public import HTTPTypes
public import Hummingbird
import Logging
package import PostcardReception
import PostcardStore

extension Router {
    /// Adds routes that receive forms and, if `UploadOptions.access` allows it, serve the stored uploads.
    ///
    /// ```swift
    /// let store = try LocalUploadStore(directory: "received")
    /// let router = Router()
    /// router.addUploads(to: store)
    /// let application = Application(router: router, server: .uploads())
    /// try await application.runService()
    /// ```
    ///
    /// | request | response |
    /// | --- | --- |
    /// | `POST /uploads` | 201 and the record |
    /// | `POST`, `PUT /uploads/NAME` | the same for a file, with `UploadOptions.acceptsAnyBody` |
    /// | `GET /uploads?limit=N&after=ID` | records, newest first: 1 to 1,000, by default 50 |
    /// | `GET /uploads/ID` | the record |
    /// | `GET /uploads/ID/files/N` | file N, counted from 0, or one range of its bytes |
    /// | `DELETE /uploads/ID` | 204 |
    /// | `OPTIONS /uploads` | the limits of uploads that can be resumed |
    /// | `HEAD`, `GET`, `PATCH`, `DELETE /uploads/resumable/ID` | reads the offset of an unfinished upload, appends, discards |
    ///
    /// A form that is posted with `Upload-Complete` can be resumed (draft-ietf-httpbis-resumable-upload) if the store
    /// is a `ResumableUploadStore`. The client gets the address of the upload from a 104 or 201, asks for the offset
    /// with HEAD, and sends the remaining bytes with PATCH. The last response is the same as for a form that is sent in
    /// a single request.
    ///
    /// Every refusal is `application/problem+json` (RFC 9457) with a `code`. Nothing of a refused form stays in the
    /// store, except after a refusal by the closure `stored`, which is called after the commit. Files are written while
    /// they arrive, so the memory for a form does not depend on the size of its files. The routes do not authenticate
    /// clients. Add middleware that authenticates clients before these routes.
    ///
    /// An app can add routes for several kinds of form, each with its own `UploadOptions.path`. The kinds can share a
    /// store if each has its own `UploadOptions.keyScope`, such as `{ _ in "films" }`. The limits of each client apply
    /// to each kind separately. Records are always read and deleted below `/uploads`, so only one kind can have an
    /// `UploadOptions.access`: the kind with the path `/uploads`, if there is one.
    ///
    /// - Parameters:
    ///   - store: The store that keeps the uploads.
    ///   - options: The options of the routes: accepted forms, paths, and further features.
    ///   - stored: Called with each stored form before its response is sent: for example, to add the record to a
    ///     database of your own with the user in the context. The head belongs to the request with the form's last
    ///     bytes. Defaults to `nil`. There is no time limit: the form counts as in progress until the closure returns.
    ///
    ///     The closure is called again when a client repeats a form under its key, with `CommittedUpload.isRepetition`,
    ///     because the first call may have failed. It may also be called while the first call still runs. Therefore
    ///     make the record's identifier a unique key of your table. After a power cut between the commit and the call,
    ///     the closure is called when the client repeats the form.
    ///
    ///     If the closure throws, the record stays, and the form counts as received. The client gets the thrown
    ///     `UploadProblem` or `HTTPError`. For a resumable upload, a status from 400 to 499 other than 408 and 429 is
    ///     final. Every other error is logged, and the client gets a 503: it can repeat the form under its key. Without
    ///     a key, repeating the form makes another record.
    @discardableResult
    public func addUploads(
        to store: some UploadStore, options: UploadOptions = UploadOptions(),
        stored: (@Sendable (CommittedUpload, HTTPRequest, Context) async throws -> Void)? = nil
    ) -> Self {
        guard let stored else { return adding(store, options, nil) }
        return adding(store, options) { upload, request, context in
            try await stored(upload, request.head, context)
            return nil
        }
    }

    /// Adds routes that receive forms. The app's closure makes the responses.
    ///
    /// ```swift
    /// router.addUploads(to: store) { upload, _, _ in
    ///     // A ResponseCodable, or any other result of a route.
    ///     try await pets.insert(upload.record)
    /// }
    /// ```
    ///
    /// If the store is a `ResponseKeepingUploadStore`, it keeps the response with the record: a client that repeats the
    /// form under its key, or resumes it, gets the same response, even after a restart, without another call. The
    /// closure is called again if the first call failed or still runs, or if the response could not be kept.
    ///
    /// - Parameters:
    ///   - store: The store that keeps the uploads.
    ///   - options: The options of the routes: accepted forms, paths, and further features.
    ///   - stored: Called with each stored form, and returns the response, whose body has at most 512 KiB. An error
    ///     that the closure throws has the same effect as for a closure that returns nothing.
    @discardableResult
    public func addUploads<Output: ResponseGenerator>(
        to store: some UploadStore, options: UploadOptions = UploadOptions(),
        stored: @escaping @Sendable (CommittedUpload, HTTPRequest, Context) async throws -> Output
    ) -> Self {
        adding(store, options) { upload, request, context in
            try await stored(upload, request.head, context).response(from: request, context: context)
        }
    }

    private func adding(
        _ store: some UploadStore, _ options: UploadOptions, _ stored: StoredFormHandler<Context>?
    ) -> Self {
        var routes = Routes<Context>()
        routes.addUploads(to: store, options: options, stored: stored)
        routes.install(on: self)
        return self
    }
}

extension Routes {
    /// `shares` limits the resources of each client. By default, its limits are for these routes only. `limit` is the
    /// limit of the store's total size. `stored` is called with each stored form.
    package mutating func addUploads(
        to store: some UploadStore, options: UploadOptions, meter: UploadMeter = UploadMeter(),
        shares: ShareAccount? = nil, limit: StoreLimit? = nil, stored: StoredFormHandler<Context>? = nil
    ) {
        let shares =
            shares
            ?? ShareAccount(ShareLimits(options), meter: meter, logger: Logger(label: "postcard.shares"))
        let budget = ResponseBudget(shares)
        let reception = Reception(store: store, options: options, meter: meter, shares: shares, limit: limit)
        if let resumption = options.resumption, let uploads = store as? any ResumableUploadStore {
            addForms(resumedIn: uploads, reception, resumption, budget, stored)
        } else {
            addReceiving(options) { request, context, connection in
                try await reception.passingForm(to: CommittedUpload.handler(stored, request, context))
                    .response(to: IncomingRequest(request), on: connection, logger: context.logger)
                    .response(within: budget, on: connection)
            }
        }
        let archive = Archive(store: store, budget: budget, meter: meter)
        let base = UploadRecord.readingPath
        if options.access.contains(.reading) {
            addReading("\(base)") { request, context, connection in
                try await archive.list(request, on: connection, logger: context.logger)
            }
            addReading("\(base)/{id}") { request, context, connection in
                try await archive.record(
                    request, id: context.parameters.get("id"), on: connection, logger: context.logger)
            }
            addReading("\(base)/{id}/files/{index}") { request, context, connection in
                try await archive.file(
                    request, id: context.parameters.get("id"), index: context.parameters.get("index"), on: connection,
                    logger: context.logger)
            }
        }
        if options.access.contains(.deleting) {
            add("\(base)/{id}", .delete) { _, context, connection in
                try await archive.delete(id: context.parameters.get("id"), on: connection, logger: context.logger)
            }
        }
    }

    /// Adds the routes that receive forms, and the routes for other files if these are accepted.
    private mutating func addReceiving(_ options: UploadOptions, _ handler: @escaping Handler) {
        add(RouterPath(options.path), .post, handler)
        guard options.acceptsAnyBody else { return }
        add(RouterPath(options.path), .put, handler)
        let named = RouterPath(options.path + (options.path.hasSuffix("/") ? "" : "/") + "{id}")
        for method in [HTTPRequest.Method.post, .put] { add(named, method, handler) }
    }

    private mutating func addForms(
        resumedIn uploads: some ResumableUploadStore, _ reception: Reception<some UploadStore>,
        _ options: UnfinishedUploadOptions, _ budget: ResponseBudget, _ stored: StoredFormHandler<Context>?
    ) {
        let resumption = ResumableReception(uploads: uploads, reception: reception, options: options)
        addUnfinishedUploads(of: resumption, below: reception.options.path, budget, stored)
        addReceiving(reception.options) { request, context, connection in
            try await resumption.passingForm(to: CommittedUpload.handler(stored, request, context))
                .response(to: IncomingRequest(request), on: connection, logger: context.logger)
                .response(within: budget, on: connection)
        }
    }

    private mutating func addUnfinishedUploads(
        of resumption: ResumableReception<some UploadStore, some ResumableUploadStore>, below path: String,
        _ budget: ResponseBudget, _ stored: StoredFormHandler<Context>?
    ) {
        add(RouterPath(path), .options) { request, _, connection in
            try resumption.offer(to: IncomingRequest(request)).response(within: budget, on: connection)
        }
        let upload = RouterPath(ResumptionPath.folder(below: path) + "/{id}")
        add(upload, .head) { request, context, connection in
            try await resumption.progress(
                IncomingRequest(request), id: context.parameters.get("id"), on: connection, logger: context.logger
            ).response(within: budget, on: connection)
        }
        add(upload, .get) { request, context, connection in
            try await resumption.repeatResponse(
                IncomingRequest(request), id: context.parameters.get("id"), on: connection, logger: context.logger
            ).response(within: budget, on: connection)
        }
        add(upload, .patch) { request, context, connection in
            try await resumption.passingForm(to: CommittedUpload.handler(stored, request, context)).append(
                IncomingRequest(request), id: context.parameters.get("id"), on: connection, logger: context.logger
            ).response(within: budget, on: connection)
        }
        add(upload, .delete) { request, context, connection in
            try await resumption.cancel(
                IncomingRequest(request), id: context.parameters.get("id"), logger: context.logger
            ).response(within: budget, on: connection)
        }
    }
}
