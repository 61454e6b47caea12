public import HTTPTypes
public import Logging
public import PostcardForm

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

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
/// The form's bytes are read while they are sent: memory does not grow with its files. Cancelling the task
/// that awaits ``upload(_:to:method:headerFields:progress:)`` closes the connection. A client is a value and
/// can send any number of forms at a time; its copies share the transport's connections.
public struct UploadClient: Sendable {
    /// What carries the requests.
    public let transport: any UploadTransport

    /// Whether and when a failed upload is tried again. Nothing is, unless asked for.
    public var retryPolicy: RetryPolicy

    /// Whether an upload goes where the server points: up to five times unless set.
    public var redirectPolicy = RedirectPolicy.follow(maximum: 5)

    /// The statuses that say that the server has the form: those from 200 to 299 unless set. An answer with any other
    /// is an error, ``UploadError/Code/refused``, or a redirect.
    public var acceptedStatuses = UploadClient.successfulStatuses

    /// Whether an answer counts that came before the whole form was sent. Defaults to `false`: it ends the upload with
    /// ``UploadError/Code/answeredEarly``, because a server that has not received a form cannot have stored it. After an
    /// attempt whose answer was lost it counts: a server that knows the form by its key need not read it again.
    ///
    /// Set it for a server that decides by the beginning of a form. ``UploadResponse/isEarly`` then says which answers
    /// came early.
    public var acceptsEarlyAnswers = false

    /// Whether an upload that was cut goes on where it stopped, with servers that know how; it begins anew, or not at
    /// all, unless set.
    public var resumption: ResumptionPolicy?

    /// What is added to every request, and decides first after a failure; called in this order.
    public var interceptors: [any UploadInterceptor] = []

    /// How often interceptors may have one upload tried again, beside the retries of the policy: 5 times unless set.
    public var maximumInterceptorRetries = 5

    /// The networks that uploads may use. Defaults to all of them.
    public var networks = AllowedNetworks.all

    /// How long no byte may move, in either direction, before an attempt ends with
    /// ``UploadError/Code/timedOut``; `nil` for as long as it takes.
    public var idleTimeout: Duration?

    /// How long a whole answer may take, from the end of the form to the end of the answer, before an attempt ends with
    /// ``UploadError/Code/timedOut``. Defaults to five times ``idleTimeout``, which is five minutes; `nil` means no limit.
    ///
    /// It ends answers that the idle timeout does not, because they come byte by byte.
    public var answerTimeout: Duration? {
        get {
            switch answerLimit {
            case .followingIdleTimeout: idleTimeout.map { min($0, Self.longestIdleTimeout) * 5 }
            case .set(let duration): duration
            }
        }
        set { answerLimit = .set(newValue) }
    }

    private enum AnswerLimit {
        case followingIdleTimeout
        case set(Duration?)
    }

    private var answerLimit = AnswerLimit.followingIdleTimeout

    /// Longer than any program runs, and short enough to be multiplied.
    private static let longestIdleTimeout = Duration.seconds(Int64(1) << 40)

    /// How long it may take until an attempt's connection stands, the wait for a free one included, before it ends with
    /// ``UploadError/Code/connectTimedOut``. Unless set, the transport's own limit holds, and the idle timeout.
    public var connectTimeout: Duration?

    /// How long an upload may take with all its attempts and the waits between them, before it ends with
    /// ``UploadError/Code/deadlinePassed``. As long as it takes unless set: a large form over a slow network takes its
    /// time.
    public var totalTimeout: Duration?

    /// The most bytes of a response's body: 16 MiB unless given, far above what answers to forms have, and
    /// little enough to be held.
    public var maximumResponseBytes: Int

    /// Which fields and files may go out; whatever the form holds unless set. A form that breaks a rule ends with
    /// ``UploadError/Code/brokenRule`` before anything is sent.
    public var rules: FormRules?

    /// How fast forms go out, all of this client's uploads and its copies' together; as fast as the network takes
    /// them unless set.
    public var rateLimit: RateLimit?

    /// Compares what the server says it received with what was sent. Defaults to `nil`: nothing is compared.
    public var verification: UploadVerification?

    /// The size of a body, in bytes, above which the server is asked whether it wants it before it goes out; nobody
    /// is asked unless set. A body of unknown length counts as larger.
    ///
    /// A refusal by the request's head alone, such as of missing authorization or of a form that is too large, then
    /// costs no more than the head. The question is `Expect: 100-continue` (RFC 9110 §10.1.1), and a server that
    /// says nothing gets the body after a second. On Apple platforms the wait is URLSession's own.
    public var expectContinueAbove: Int64?

    /// Where uploads are logged: every request and answer at the level `debug`, failures and retries at `info`. All lines
    /// of an upload carry the same `upload-id`. Values of fields are never logged, and of header fields only those that
    /// hold no secrets.
    public var logger: Logger?

    /// The name of a header field, such as `X-Request-ID`, that tells the server the `upload-id` of the log; none unless
    /// set.
    public var requestIDField: HTTPField.Name?

    /// How often an upload tells how far it is, at the most: every 50 milliseconds unless set, which is more than is
    /// seen on a screen. An attempt's first step, the end of each part and the last step are always told.
    public var progressInterval = Duration.milliseconds(50)

    /// Those from 200 to 299 (RFC 9110 §15.3).
    private static let successfulStatuses = Set(200..<300)

    /// Makes a client.
    ///
    /// - Parameters:
    ///   - transport: What carries the requests; URLSession unless given.
    ///   - retryPolicy: Whether and when a failed upload is tried again.
    ///   - idleTimeout: How long no byte may move.
    ///   - maximumResponseBytes: The most bytes of a response's body.
    public init(
        transport: any UploadTransport = URLSessionTransport(), retryPolicy: RetryPolicy = .never,
        idleTimeout: Duration? = .seconds(60), maximumResponseBytes: Int = 16 << 20
    ) {
        self.transport = transport
        self.retryPolicy = retryPolicy
        self.idleTimeout = idleTimeout
        self.maximumResponseBytes = maximumResponseBytes
    }

    /// Sends a form and waits for the answer.
    ///
    /// - Parameters:
    ///   - form: The form. Its files are looked at before anything is sent, and must then stay as they are.
    ///   - url: Where it goes, `http` or `https`.
    ///   - method: POST unless given.
    ///   - headerFields: Further header fields. `Content-Type`, `Content-Length` and `Transfer-Encoding` are the
    ///     form's own, and given ones are passed over.
    ///   - progress: Told how far the upload is, in order and no more often than ``progressInterval`` says, from
    ///     whatever task or thread; it should return at once.
    /// - Returns: The answer, whose status is one of ``acceptedStatuses``.
    /// - Throws: ``UploadError``, with the code ``UploadError/Code/refused`` for any other status;
    ///   `CancellationError`; an error of one of the form's own streams or of an interceptor, unchanged.
    @discardableResult
    public func upload(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), progress: (@Sendable (UploadProgress) -> Void)? = nil
    ) async throws -> UploadResponse {
        try await perform(telling: Self.steps(to: progress)) {
            UploadOrder(form: form, url: url, method: method, headerFields: headerFields)
        }
    }

    /// Sends a form, and tells every step of it while it goes on.
    ///
    /// ```swift
    /// for try await event in client.events(of: form, to: url) {
    ///     if case .sending(let progress) = event { print(progress.fraction ?? 0) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - form: The form.
    ///   - url: Where it goes, `http` or `https`.
    ///   - method: POST unless given.
    ///   - headerFields: Further header fields.
    /// - Returns: The steps. Each iteration over them is an upload, which ends when the loop is left.
    public func events(
        of form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields()
    ) -> UploadEvents {
        UploadEvents { key, tell in
            try await perform(under: key, telling: tell) {
                UploadOrder(form: form, url: url, method: method, headerFields: headerFields)
            }
        }
    }

    /// Takes of all events those that a program wants to hear which asks for progress alone.
    static func steps(to progress: (@Sendable (UploadProgress) -> Void)?) -> (@Sendable (UploadEvent) -> Void)? {
        guard let progress else { return nil }
        return { event in
            if case .sending(let step) = event { progress(step) }
        }
    }
}
