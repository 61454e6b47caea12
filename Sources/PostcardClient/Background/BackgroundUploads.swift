public import Foundation
public import HTTPTypes
public import PostcardForm

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Uploads that go on while the app is suspended, and whose results are found again when it was gone.
///
/// ```swift
/// let uploads = try await BackgroundUploads(identifier: "com.example.pets", directory: folder)
/// let id = try await uploads.add(form, to: url)
/// for await list in uploads.updates { show(list) }
/// ```
///
/// Make one object for a folder, at every start of the app, with the same identifier and folder. The form is
/// written to a file once, because the system takes nothing else; from then on its pictures may change or go.
/// An upload stays in the folder, with what the server answered, until ``remove(_:)`` is called for it.
///
/// On Apple platforms the system carries the uploads, begins them anew where the network fails, and follows
/// redirects; each carries an `Idempotency-Key`, by which a server can tell that several requests are one. On
/// Linux there is nobody who goes on when the program ends: an upload under way then is ``BackgroundUpload/State/lost(mayHaveArrived:)``
/// and can be begun anew.
///
/// Nobody is asked about the redirects that the system follows, which may pass on header fields of the app's own to
/// another origin: send secrets to places that do not redirect.
///
/// The folder should be one of the app's own and not one that it shares with extensions: iOS ends an app that is
/// suspended while it holds a lock in a shared folder. Secret header fields, such as `Authorization`, are handed
/// to the system and not written to the folder. The URL, with a password that is in it, and the form are.
public final class BackgroundUploads: Sendable {
    private let account: BackgroundAccount
    private let events = BackgroundEvents()
    private let rules: FormRules?
    private let session: URLSession
    private let delegateQueue: OperationQueue

    /// Where the session is called: its methods may wait, which no thread of Swift's own must.
    private let calls = DispatchQueue(label: "Postcard background uploads")

    /// Finds the uploads of earlier runs, and what has become of them.
    ///
    /// What was written to the folder and never begun, because the program ended first, is begun now, unless it
    /// has secret header fields.
    ///
    /// - Parameters:
    ///   - identifier: The name of the system's session; one for each folder.
    ///   - directory: A folder for this alone, made where there is none. It needs room for the forms.
    ///   - rules: Which fields and files may go out; whatever the form holds unless given.
    ///   - restartsLost: Whether what was under way and is lost is begun anew as well, where no secret header field
    ///     is needed for it. It may have arrived: only a server that heeds `Idempotency-Key` then stores it once.
    ///   - maximumResponseBytes: The most bytes of an answer: 1 MiB unless given, because answers are kept.
    /// - Throws: ``BackgroundUploadError`` where the folder cannot be used. What is wrong with single uploads is
    ///   told by ``problems`` instead.
    public init(
        identifier: String, directory: URL, rules: FormRules? = nil, restartsLost: Bool = false,
        maximumResponseBytes: Int = 1 << 20
    ) async throws(BackgroundUploadError) {
        account = try BackgroundAccount(directory, maximumResponseBytes: maximumResponseBytes)
        self.rules = rules
        delegateQueue = OperationQueue()
        delegateQueue.maxConcurrentOperationCount = 1
        session = URLSession(
            configuration: .carryingOn(identifier), delegate: BackgroundDelegate(account, events),
            delegateQueue: delegateQueue)
        for task in await tasks() {
            account.adopt(task)
            // The program ended between making the task and beginning it.
            if task.state == .suspended { calls.async { task.resume() } }
        }
        for manifest in account.lost where manifest.isFollowed != true {
            let mayHaveArrived = if case .started = manifest.state { true } else { false }
            guard restartsLost || !mayHaveArrived, manifest.withheldFields.isEmpty else { continue }
            // One that cannot be begun stays lost, and problems says why.
            do {
                try await restart(manifest.id)
            } catch {
                account.note(error)
            }
        }
    }

    deinit {
        let session = session
        calls.async { session.finishTasksAndInvalidate() }
    }

    /// Every upload of the folder, oldest first, as it stands now.
    public var uploads: [BackgroundUpload] { account.uploads }

    /// An upload as it stands now; `nil` where there is none of that identity.
    public subscript(id: BackgroundUpload.ID) -> BackgroundUpload? { account.upload(id) }

    /// What could not be read from the folder or written to it, since this object was made. Nothing of it is lost:
    /// what cannot be read is left as it is.
    public var problems: [BackgroundUploadError] { account.problems }

    /// The list of uploads, now and whenever something changed. A slow reader misses lists in between, never the
    /// newest one. It ends with ``close()``.
    public var updates: BackgroundUploadUpdates { BackgroundUploadUpdates(account: account) }

    /// Writes a form to the folder and hands it to the system.
    ///
    /// - Parameters:
    ///   - form: The form. Once this returns, its files are no longer needed.
    ///   - url: Where it goes, `http` or `https`.
    ///   - method: POST unless given.
    ///   - headerFields: Further header fields. An `Idempotency-Key` is set unless there is one.
    /// - Returns: By what the upload is found again.
    /// - Throws: ``UploadError`` where the form or the URL cannot be sent; ``BackgroundUploadError`` where the
    ///   folder cannot be written; `CancellationError`; an error of one of the form's own streams, unchanged.
    ///   Nothing is left of the upload then.
    @discardableResult
    public func add(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post, headerFields: HTTPFields = HTTPFields()
    ) async throws -> BackgroundUpload.ID {
        let id = UUID()
        let manifest = try await write(id, form, to: url, method: method, headerFields: headerFields)
        try await begin(manifest, adding: headerFields)
        return id
    }

    /// Does so under an identity that the caller has written down before, and by which it finds the upload again
    /// also where the program ends in here. An upload that is there under the identity stays as it is, and one that is
    /// lost is the caller's to begin anew.
    ///
    /// - Parameter needsUnmeteredNetwork: Whether the system waits for a network that is not metered, where it tells.
    package func add(
        _ form: MultipartForm, as id: BackgroundUpload.ID, to url: URL, method: HTTPRequest.Method,
        headerFields: HTTPFields, needsUnmeteredNetwork: Bool = false
    ) async throws {
        guard account.upload(id) == nil else { return }
        let manifest = try await write(
            id, form, to: url, method: method, headerFields: headerFields,
            needsUnmeteredNetwork: needsUnmeteredNetwork, isFollowed: true)
        try await begin(manifest, adding: headerFields)
    }

    private func begin(_ manifest: UploadManifest, adding headerFields: HTTPFields) async throws {
        account.add(manifest)
        do {
            try await start(manifest, adding: headerFields)
        } catch {
            _ = try? account.remove(manifest.id)
            throw error
        }
    }

    private func write(
        _ id: UUID, _ form: MultipartForm, to url: URL, method: HTTPRequest.Method, headerFields: HTTPFields,
        needsUnmeteredNetwork: Bool? = nil, isFollowed: Bool? = nil
    ) async throws -> UploadManifest {
        if account.isClosed { throw BackgroundUploadError.closed }
        let layout: FormLayout
        do {
            layout = try form.layout()
            if let problem = try rules?.problems(in: layout).first { throw UploadError.brokenRule(problem) }
            var fields = headerFields
            IdempotencyKey(id).add(to: &fields)
            let request = try UploadRequest(
                url: url, method: method, headerFields: fields, body: nil, maximumResponseBytes: 0)
            var kept = request.headerFields
            // One that comes from the URL is made of it each time.
            if !fields.contains(.authorization) { kept[.authorization] = nil }
            return try await account.folder.create(id, layout) { [kept] length in
                UploadManifest(
                    id: id, url: url, method: method, contentType: layout.contentType,
                    headerFields: kept, bodyLength: length,
                    filenames: layout.parts.compactMap(\.filename), added: Date(),
                    needsUnmeteredNetwork: needsUnmeteredNetwork, isFollowed: isFollowed)
            }
        } catch let error as FormError {
            throw UploadError.form(error)
        }
    }

    /// Waits until an upload has ended.
    ///
    /// - Returns: The answer, whose status is 2xx.
    /// - Throws: ``UploadError`` where it failed or was refused; ``BackgroundUploadError`` where it is lost, is
    ///   not there, or the object was closed; `CancellationError` where it was cancelled, or the task was that
    ///   waits: the upload then goes on.
    public func response(of id: BackgroundUpload.ID) async throws -> UploadResponse {
        try await response(of: id) { _ in }
    }

    /// Waits until an upload has ended, and tells on the way how many bytes of its body were sent.
    package func response(
        of id: BackgroundUpload.ID, progress: @Sendable (_ bytesSent: Int64) -> Void
    ) async throws -> UploadResponse {
        for await _ in account.changes() {
            guard let upload = account.upload(id) else { throw BackgroundUploadError.unknown(id) }
            switch upload.state {
            case .waiting: continue
            case .sending(let bytesSent): progress(bytesSent)
            case .done(let response): return response
            case .failed(let error): throw error
            case .cancelled: throw CancellationError()
            case .lost(let mayHaveArrived): throw BackgroundUploadError.lost(id, mayHaveArrived: mayHaveArrived)
            }
        }
        try Task.checkCancellation()
        throw BackgroundUploadError.closed
    }

    /// Begins an upload anew that is lost, failed or was cancelled, with the same bytes and `Idempotency-Key`.
    ///
    /// - Parameters:
    ///   - id: Which one.
    ///   - headerFields: The secret header fields that are not kept, and others in place of those that are.
    /// - Throws: ``BackgroundUploadError``, with the code ``BackgroundUploadError/Code/headerFieldsNeeded`` where a
    ///   secret one is missing.
    public func restart(
        _ id: BackgroundUpload.ID, headerFields: HTTPFields = HTTPFields()
    ) async throws(BackgroundUploadError) {
        let manifest = try account.claim(id)
        do {
            try await start(manifest, adding: headerFields)
        } catch {
            account.release(manifest)
            throw error
        }
    }

    /// Ends an upload and keeps it in the folder. One that is over stays what it is.
    ///
    /// - Throws: ``BackgroundUploadError``.
    public func cancel(_ id: BackgroundUpload.ID) throws(BackgroundUploadError) {
        guard let task = try account.cancel(id) else { return }
        calls.async { task.cancel() }
    }

    /// Forgets an upload, its body and its answer; one under way is ended.
    ///
    /// - Throws: ``BackgroundUploadError``.
    public func remove(_ id: BackgroundUpload.ID) throws(BackgroundUploadError) {
        guard let task = try account.remove(id) else { return }
        calls.async { task.cancel() }
    }

    /// Lets go of the folder, so that another object may take it. On Apple platforms the uploads go on, and the object
    /// that the next run of the app makes finds them: until they have ended the system keeps this run's session, and
    /// there is one of an identifier at a time. Elsewhere they end here.
    public func close() async {
        await withCheckedContinuation { continuation in
            // Behind all that the session has told so far.
            delegateQueue.addOperation { [account] in
                account.close()
                continuation.resume()
            }
        }
        calls.async { [session] in
            #if canImport(FoundationNetworking)
            session.invalidateAndCancel()
            #else
            session.finishTasksAndInvalidate()
            #endif
        }
    }

    /// Keeps what the system hands to `application(_:handleEventsForBackgroundURLSession:completionHandler:)`, and
    /// calls it on the main actor once the session has told everything and all of it is in the folder.
    @MainActor
    public func handleEvents(completionHandler: @escaping () -> Void) {
        events.add(completionHandler)
    }
}

extension BackgroundUploads {
    private func tasks() async -> [URLSessionTask] {
        await withCheckedContinuation { continuation in
            calls.async { [session] in session.getAllTasks { continuation.resume(returning: $0) } }
        }
    }

    private func start(
        _ manifest: UploadManifest, adding headerFields: HTTPFields
    ) async throws(BackgroundUploadError) {
        try account.folder.checkBody(of: manifest)
        let request = try manifest.request(adding: headerFields)
        let result = await withCheckedContinuation { continuation in
            calls.async { [self] in continuation.resume(returning: begin(manifest.id, request)) }
        }
        try result.get()
    }

    private func begin(_ id: UUID, _ request: URLRequest) -> Result<Void, BackgroundUploadError> {
        // A session that was let go of takes no task; what is in the folder is begun by the next object.
        if account.isClosed { return .success(()) }
        #if canImport(FoundationNetworking)
        // A task that is given a file may stand still for ever on Linux: the delegate gives the file as a stream.
        let task = session.uploadTask(withStreamedRequest: request)
        #else
        let task = session.uploadTask(with: request, fromFile: account.folder.body(id))
        #endif
        task.uploadID = id
        do {
            if try account.begin(task, id) { task.resume() } else { task.cancel() }
            return .success(())
        } catch {
            task.cancel()
            return .failure(error)
        }
    }
}

extension URLSessionConfiguration {
    /// A session whose uploads go on without the program, where the system has such sessions.
    fileprivate static func carryingOn(_ identifier: String) -> URLSessionConfiguration {
        #if canImport(FoundationNetworking)
        return URLSessionTransport.configuration()
        #else
        let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCache = nil
        return configuration
        #endif
    }
}
