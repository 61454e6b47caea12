public import HTTPTypes
public import PostcardForm
public import PostcardFoundation
import PostcardWire

/// Sends forms to HTTP servers.
///
/// ```swift
/// var form = MultipartForm()
/// form.append("초코", named: "name")
/// form.append(fileAt: photo, named: "petImage")
///
/// let client = UploadClient()
/// let response = try await client.upload(form, to: url) { progress in
///     print(progress.fraction ?? 0)
/// }
/// let pet = try response.decode(Pet.self)
/// ```
/// The closure runs on the actor of the caller, such as the main actor of a view model. The form's bytes are read while
/// they are sent, so memory use does not grow with the size of its files. Cancelling the task that awaits
/// ``upload(_:to:method:headerFields:progress:)`` closes the connection. A client is a value and can send any number of
/// forms at a time. Its copies share the transport's connections.
public struct UploadClient: Sendable {
    /// The transport that sends the requests.
    public let transport: any UploadTransport

    let time: UploadTime

    /// The timeouts of an upload. By default an attempt fails after 60 seconds in which no bytes move.
    public var timeouts: UploadTimeouts

    /// Whether and when a failed upload is tried again. Defaults to ``RetryPolicy/never``.
    public var retryPolicy: RetryPolicy

    /// Whether and how interrupted uploads resume, if the server supports it. Defaults to `nil`: a retry starts over.
    public var resumption: ResumptionPolicy?

    /// Whether an upload follows redirects. Defaults to up to five redirects in a row.
    public var redirects = RedirectPolicy.follow(maximum: 5)

    /// The responses that count as success, and how responses are read.
    public var responses = ResponseOptions()

    /// The networks that uploads may use, and how they use them.
    public var network = NetworkOptions()

    /// The interceptors, in the order of their calls. They adapt every request, and decide first after a failure.
    public var interceptors: [any UploadInterceptor] = []

    /// Rules for the fields and files of a form. Defaults to `nil`, no rules. A form that breaks a rule fails with
    /// ``UploadError/Code/brokenRule`` before anything is sent. Photos that are fitted to the server's limit are also
    /// made to fit these rules.
    public var rules: FormRules?

    /// The reports of uploads: progress and the log.
    public var reporting = ReportingOptions()

    /// Makes a client.
    ///
    /// - Parameters:
    ///   - transport: The transport that sends the requests. Defaults to URLSession. On Linux, URLSession sends a form
    ///     of more than 1 MiB without its length. For servers that refuse such a form or read it as empty, use
    ///     `AsyncHTTPTransport`.
    ///   - retryPolicy: Whether and when a failed upload is tried again. Defaults to never.
    ///   - timeouts: The timeouts of an upload.
    public init(
        transport: any UploadTransport = URLSessionTransport(), retryPolicy: RetryPolicy = .never,
        timeouts: UploadTimeouts = UploadTimeouts()
    ) {
        self.transport = transport
        time = UploadTime(of: transport)
        self.retryPolicy = retryPolicy
        self.timeouts = timeouts
    }

    /// Sends a form and waits for the response.
    ///
    /// - Parameters:
    ///   - form: The form. Its files are checked before anything is sent, and must not change until the upload has
    ///     ended. Parts with a preparation are prepared first. If a part follows the server's limit and the server
    ///     refuses the form with a smaller limit, the parts are prepared for that limit and the form is sent again with
    ///     the same `Idempotency-Key`. This happens up to four times, because some servers report one limit after the
    ///     other.
    ///   - url: The URL that the form is sent to, `http` or `https`.
    ///   - method: The request's method. Defaults to POST.
    ///   - headerFields: Further header fields. `Content-Type`, `Content-Length` and `Transfer-Encoding` are ignored,
    ///     because the form determines them.
    ///   - progress: Called with the progress, in order, at most once per ``ReportingOptions/progressInterval``, and
    ///     never after this method has returned. The closure runs on the caller's actor, so it can update a view model.
    ///     If the closure is slow or the actor is busy, the closure misses outdated progress and the upload continues.
    /// - Returns: The response, whose status is one of ``ResponseOptions/acceptedStatuses``.
    /// - Throws: ``UploadError``, with the code ``UploadError/Code/refused`` for any other status; `CancellationError`;
    ///   an error of one of the form's own streams or preparations or of an interceptor, unchanged.
    @discardableResult
    public func upload(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), progress: ((UploadProgress) -> Void)? = nil
    ) async throws -> UploadResponse {
        try await perform(progress: progress) {
            UploadJob(.form(form), url: url, method: method, headerFields: headerFields)
        }
    }

    /// Sends a form, and decodes the response.
    ///
    /// ```swift
    /// let form = MultipartForm(.text("초코", named: "name"), .file(at: photo, named: "petImage"))
    /// let pet = try await UploadClient().upload(form, to: url, as: Pet.self)
    /// ```
    ///
    /// - Returns: The response's JSON as a value of the given type, decoded by ``ResponseOptions/decoder``.
    /// - Throws: The same errors as ``upload(_:to:method:headerFields:progress:)``, and ``UploadError`` with the code
    ///   ``UploadError/Code/decoding`` if the server has accepted the form and its response cannot be decoded.
    public func upload<Value: Decodable>(
        _ form: MultipartForm, to url: URL, as type: Value.Type, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), progress: ((UploadProgress) -> Void)? = nil
    ) async throws -> Value {
        try await upload(form, to: url, method: method, headerFields: headerFields, progress: progress).decode(type)
    }

    /// Sends a form, and reports every event of the upload.
    ///
    /// ```swift
    /// for try await event in client.events(of: form, to: url) {
    ///     if case .sending(let progress) = event { print(progress.fraction ?? 0) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - form: The form.
    ///   - url: The URL that the form is sent to, `http` or `https`.
    ///   - method: The request's method. Defaults to POST.
    ///   - headerFields: Further header fields.
    /// - Returns: The events. Each iteration over them is a separate upload. Leaving the loop cancels the upload.
    public func events(
        of form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields()
    ) -> UploadEvents {
        UploadEvents(by: time.clock) { key, events in
            try await perform(under: key, reportingTo: events) {
                UploadJob(.form(form), url: url, method: method, headerFields: headerFields)
            }
        }
    }

    /// Sends a stored body. If the client resumes uploads, resumes the upload that an earlier process began.
    ///
    /// - Parameters:
    ///   - layout: The layout of the body, with the same bytes as in the earlier process.
    ///   - url: The URL that the body is sent to.
    ///   - method: The request's method.
    ///   - headerFields: Further header fields.
    ///   - resource: The upload resource with the bytes that an earlier process sent; `nil` if there is none.
    ///   - save: Saves the URL of an upload resource before any of the body is sent to it, and `nil` when the server
    ///     has deleted it. If the closure throws an error, the upload fails.
    ///   - delivery: Whether servers may have the body from earlier attempts. Defaults to `neverArrived`.
    ///   - elapsed: The time since the first attempt began. Defaults to zero.
    ///   - progress: Called with the progress.
    /// - Throws: The same errors as for a form, but ``InterceptorError`` if an interceptor fails.
    @discardableResult
    package func upload(
        _ layout: FormLayout, to url: URL, method: HTTPRequest.Method, headerFields: HTTPFields,
        resuming resource: URL?, savingResource save: @escaping @Sendable (URL?) throws -> Void,
        after delivery: PossibleDelivery = .neverArrived, elapsed: Duration = .zero,
        progress: @escaping (UploadProgress) -> Void
    ) async throws -> UploadResponse {
        try await perform(progress: progress) {
            var job = UploadJob(.layout(layout), url: url, method: method, headerFields: headerFields)
            job.resource = resource
            job.saveResource = save
            job.delivery = delivery
            job.elapsed = elapsed
            job.distinguishesInterceptors = true
            return job
        }
    }
}

extension UploadClient {
    /// The maximum time for deleting the server's bytes of a cancelled upload.
    static let deletionTimeout = Duration.seconds(5)

    /// Asks a server to delete an upload that an earlier process began (draft-ietf-httpbis-resumable-upload §4.5).
    /// Takes at most five seconds. The request is also sent if the current task is cancelled.
    ///
    /// - Parameters:
    ///   - resource: The upload resource.
    ///   - url: The URL that the form was sent to.
    ///   - headerFields: The header fields of the form's request.
    /// - Returns: Whether the server has deleted the upload, now or earlier.
    @discardableResult
    package func delete(_ resource: URL, of url: URL, headerFields: HTTPFields) async -> Bool {
        let versions = resumption?.versions ?? ResumptionPolicy().versions
        let limits = RequestTimeouts.Limits(
            idle: nil, connect: nil, total: (Self.deletionTimeout, .now.advanced(by: Self.deletionTimeout)))
        let sender = RequestSender(
            client: self, limits: limits, attempt: 1, acceptsEarly: false,
            log: UploadLog(reporting.logger, id: UUID().uuidString), progress: nil)
        // The request is sent by a separate task, because this task may be cancelled.
        return await Task {
            // The earlier process may have used any of these versions.
            for version in versions {
                do {
                    let form = try UploadRequest(
                        url: url, method: .post, headerFields: headerFields, body: nil,
                        maximumResponseBytes: responses.maximumBytes)
                    let deletion = try UploadRequest(
                        url: resource, method: .delete, headerFields: form.resumptionFields(for: resource, version),
                        body: nil, maximumResponseBytes: responses.maximumBytes)
                    _ = try await sender.response(to: deletion, accepting: Set(200..<300), isSecret: true)
                    return true
                } catch let error as UploadError {
                    guard let status = error.response?.status.code else { return false }
                    if status == 404 || status == 410 { return true }
                } catch {
                    return false
                }
            }
            return false
        }.value
    }
}

/// An upload that a caller has requested: the content and the request's properties.
struct UploadJob: Sendable {
    var content: Content
    let url: URL
    let method: HTTPRequest.Method
    let headerFields: HTTPFields
    /// The statuses of success; `nil` to use the client's setting.
    var acceptedStatuses: Set<Int>?
    /// Whether early responses count as success; `nil` to use the client's setting.
    var acceptsEarly: Bool?
    /// The signed form for an object store, and the time for checking its expiration; `nil` for other servers.
    var presigned: (form: PresignedForm, now: Date?)?
    /// Called with the layout of each body that is made from the form.
    var noteLayout: (@Sendable (FormLayout) -> Void)?
    /// Whether the form is sent to an object store, without credentials of the app and without an idempotency key.
    var isForObjectStore = false
    /// The URL of the upload resource with the bytes that an earlier process has sent.
    var resource: URL?
    /// Saves the URL of the upload resource for a later process.
    var saveResource: (@Sendable (URL?) throws -> Void)?
    /// Whether servers may have the form from earlier processes.
    var delivery = PossibleDelivery.neverArrived
    /// Whether an error of an interceptor is thrown as an ``InterceptorError``, which a queue handles differently.
    var distinguishesInterceptors = false
    /// How long the upload had taken before it was passed to this client.
    var elapsed = Duration.zero

    enum Content: Sendable {
        case form(MultipartForm)
        case layout(FormLayout)

        /// Whether the form has a part that is prepared again for a limit that the server reports.
        var followsServerLimit: Bool { if case .form(let form) = self { form.followsServerLimit } else { false } }
    }

    init(_ content: Content, url: URL, method: HTTPRequest.Method, headerFields: HTTPFields) {
        self.content = content
        self.url = url
        self.method = method
        self.headerFields = headerFields
    }
}
