public import HTTPTypes
public import PostcardForm
public import PostcardFoundation

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
/// they are sent: memory does not grow with its files. Cancelling the task that awaits
/// ``upload(_:to:method:headerFields:progress:)`` closes the connection. A client is a value and can send any number of
/// forms at a time; its copies share the transport's connections.
public struct UploadClient: Sendable {
    /// The transport that sends the requests.
    public let transport: any UploadTransport

    let time: UploadTime

    /// How long an upload may wait for what. By default an attempt fails after 60 seconds without a byte.
    public var timeouts: UploadTimeouts

    /// Whether and when a failed upload is tried again. Defaults to ``RetryPolicy/never``.
    public var retryPolicy: RetryPolicy

    /// Whether and how an interrupted upload resumes with servers that support it. Defaults to `nil`: an interrupted
    /// upload starts over, if it is tried again.
    public var resumption: ResumptionPolicy?

    /// Whether an upload follows redirects. Defaults to up to five.
    public var redirects = RedirectPolicy.follow(maximum: 5)

    /// Which responses mean that the server has the form, and how they are read.
    public var responses = ResponseOptions()

    /// Which networks are used, and how.
    public var network = NetworkOptions()

    /// What is added to every request, and consulted first after a failure; called in this order.
    public var interceptors: [any UploadInterceptor] = []

    /// The fields and files that may be sent. Defaults to `nil`: any. A form that breaks a rule fails with
    /// ``UploadError/Code/brokenRule`` before anything is sent. Photos that are fitted to the server's limit fit these.
    public var rules: FormRules?

    /// What is reported and logged.
    public var reporting = ReportingOptions()

    /// Makes a client.
    ///
    /// - Parameters:
    ///   - transport: The transport that sends the requests. Defaults to URLSession, which on Linux sends a form of
    ///     more than 1 MiB without its length: some servers refuse that, or read an empty form. Use
    ///     `AsyncHTTPTransport` there.
    ///   - retryPolicy: Whether and when a failed upload is tried again. Defaults to never.
    ///   - timeouts: How long an upload may wait for what.
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
    ///   - form: The form. Its files are checked before anything is sent, and must not change until the upload is over.
    ///     Parts with a preparation are prepared first. If one follows the server's limit, and the server refuses the
    ///     form and reports a smaller limit, they are prepared for it and sent again, with the same
    ///     `Idempotency-Key`; up to four times, for servers that report one limit after the other.
    ///   - url: The URL that the form is sent to, `http` or `https`.
    ///   - method: The request's method. Defaults to POST.
    ///   - headerFields: Further header fields. `Content-Type`, `Content-Length` and `Transfer-Encoding` are ignored:
    ///     the form determines them.
    ///   - progress: Called with the progress, in order, at most once per ``ReportingOptions/progressInterval``, and
    ///     never after this method has returned. It runs on the actor that calls this method, so that it may update a
    ///     view model there. If it is slow or that actor is busy, it misses outdated progress; the upload does not wait
    ///     for it.
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
    /// - Returns: The events. Each iteration is an upload, which is cancelled when the loop is left.
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

    /// Sends a body that outlives the process, and resumes an upload that an earlier process began, if the client
    /// resumes uploads.
    ///
    /// - Parameters:
    ///   - layout: The body; the same bytes as in the earlier process.
    ///   - url: The URL that the body is sent to.
    ///   - method: The request's method.
    ///   - headerFields: Further header fields.
    ///   - resource: The URL at which the server keeps what an earlier process has sent of the same body, if it does.
    ///   - save: Saves that URL, before any of the body is sent there, and `nil` when the server no longer keeps it. An
    ///     error that it throws fails the upload.
    ///   - delivery: What servers may have of the body from earlier attempts. Defaults to nothing.
    ///   - elapsed: How long ago the first attempt began. Defaults to zero.
    ///   - progress: Called with the progress.
    /// - Throws: As for a form, but ``InterceptorError`` if an interceptor fails.
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
