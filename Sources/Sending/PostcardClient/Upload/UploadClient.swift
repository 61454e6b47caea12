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
///
/// The closure runs on the actor of the caller, such as the main actor of a view model. The form's bytes are read while
/// they are sent: memory use does not grow with the size of its files. Cancelling the task that awaits
/// ``upload(_:to:method:headerFields:progress:)`` closes the connection. A client is a value and can send any number of
/// forms at a time; its copies share the transport's connections.
public struct UploadClient: Sendable {
    /// The transport that sends the requests.
    public let transport: any UploadTransport

    let time: UploadTime

    /// The timeouts of an upload. By default an attempt fails after 60 seconds in which no bytes move.
    public var timeouts: UploadTimeouts

    /// Whether and when a failed upload is tried again. Defaults to ``RetryPolicy/never``.
    public var retryPolicy: RetryPolicy

    /// Whether and how an interrupted upload resumes with servers that support it. Defaults to `nil`: an interrupted
    /// upload that is tried again starts over.
    public var resumption: ResumptionPolicy?

    /// Whether an upload follows redirects. Defaults to up to five.
    public var redirects = RedirectPolicy.follow(maximum: 5)

    /// Which responses mean that the server has the form, and how they are read.
    public var responses = ResponseOptions()

    /// Which networks uploads may use, and how.
    public var network = NetworkOptions()

    /// The interceptors, which adapt every request and are asked first what to do after a failure. They are called in
    /// this order.
    public var interceptors: [any UploadInterceptor] = []

    /// Rules for the fields and files of a form. Defaults to `nil`: everything may be sent. A form that breaks a rule
    /// fails with ``UploadError/Code/brokenRule`` before anything is sent. Photos that are fitted to the server's limit
    /// are also made to fit these rules.
    public var rules: FormRules?

    /// What uploads report and log.
    public var reporting = ReportingOptions()

    /// Makes a client.
    ///
    /// - Parameters:
    ///   - transport: The transport that sends the requests. Defaults to URLSession, which on Linux sends a form of
    ///     more than 1 MiB without its length. Some servers refuse such a form, or read it as empty: use
    ///     `AsyncHTTPTransport` with them.
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
    ///     ended. Parts with a preparation are prepared first. If a part follows the server's limit, and the server
    ///     refuses the form and reports a smaller limit, the parts are prepared for that limit and the form is sent
    ///     again, with the same `Idempotency-Key`. This happens up to four times, because some servers report one limit
    ///     after the other.
    ///   - url: The URL that the form is sent to, `http` or `https`.
    ///   - method: The request's method. Defaults to POST.
    ///   - headerFields: Further header fields. `Content-Type`, `Content-Length` and `Transfer-Encoding` are ignored:
    ///     the form determines them.
    ///   - progress: Called with the progress, in order, at most once per ``ReportingOptions/progressInterval``, and
    ///     never after this method has returned. The closure runs on the actor that calls this method, so it can update
    ///     a view model there. If the closure is slow or the actor is busy, it misses outdated progress; the upload
    ///     does not wait for it.
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
    /// - Returns: The events. Each iteration over them is a separate upload, which is cancelled when the loop is left.
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

    /// Sends a stored body, and resumes an upload that an earlier process began, if the client resumes uploads.
    ///
    /// - Parameters:
    ///   - layout: The layout of the body, with the same bytes as in the earlier process.
    ///   - url: The URL that the body is sent to.
    ///   - method: The request's method.
    ///   - headerFields: Further header fields.
    ///   - resource: The upload resource: the URL at which the server keeps the bytes that an earlier process has sent
    ///     of the same body; `nil` if there is none.
    ///   - save: Saves the URL of an upload resource before any of the body is sent to it, and `nil` when the server no
    ///     longer keeps it. If the closure throws an error, the upload fails.
    ///   - delivery: Whether servers may already have the body from earlier attempts. Defaults to `neverArrived`.
    ///   - elapsed: How long ago the first attempt began. Defaults to zero.
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
    /// How long deleting the server's copy of a cancelled upload may take.
    static let deletionTimeout = Duration.seconds(5)

    /// Asks a server to delete an upload that an earlier process began (draft-ietf-httpbis-resumable-upload §4.5).
    /// Returns within five seconds. The request is also sent if the current task is cancelled.
    ///
    /// - Parameters:
    ///   - resource: The upload resource.
    ///   - url: The URL that the form was sent to.
    ///   - headerFields: The header fields of the form's request.
    /// - Returns: Whether the server has deleted the upload, or had deleted it before.
    @discardableResult
    package func delete(_ resource: URL, of url: URL, headerFields: HTTPFields) async -> Bool {
        let versions = resumption?.versions ?? ResumptionPolicy().versions
        let limits = RequestTimeouts.Limits(
            idle: nil, connect: nil, total: (Self.deletionTimeout, .now.advanced(by: Self.deletionTimeout)))
        let sender = RequestSender(
            client: self, limits: limits, attempt: 1, acceptsEarly: false,
            log: UploadLog(reporting.logger, id: UUID().uuidString), progress: nil)
        // A separate task sends the request, because this task may be cancelled.
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

/// An upload that a caller has requested: what to send, and where.
struct UploadJob: Sendable {
    var content: Content
    let url: URL
    let method: HTTPRequest.Method
    let headerFields: HTTPFields
    /// The statuses of success; `nil` for those of the client.
    var acceptedStatuses: Set<Int>?
    /// Whether early responses count as success; `nil` to use the client's setting.
    var acceptsEarly: Bool?
    /// The signed form with which the file is sent to an object store, and the time for checking whether it has
    /// expired; `nil` for other servers.
    var presigned: (form: PresignedForm, now: Date?)?
    /// Called with the layout of each body that is made from the form.
    var noteLayout: (@Sendable (FormLayout) -> Void)?
    /// Whether the form is sent to an object store. Such a request has no credentials of the app and no idempotency
    /// key.
    var isForObjectStore = false
    /// The URL of the upload resource at which the server keeps the bytes that an earlier process has sent.
    var resource: URL?
    /// Saves the URL of the upload resource for a later process.
    var saveResource: (@Sendable (URL?) throws -> Void)?
    /// Whether servers may already have the form from earlier processes.
    var delivery = PossibleDelivery.neverArrived
    /// Whether an error of an interceptor is thrown as an ``InterceptorError``. A queue needs this, because it handles
    /// such errors differently.
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
