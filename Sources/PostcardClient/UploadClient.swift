public import HTTPTypes
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

    /// How long no byte may move, in either direction, before an attempt ends with
    /// ``UploadError/Code/timedOut``; `nil` for as long as it takes. There is no limit on the whole: a large
    /// form over a slow network takes its time.
    public var idleTimeout: Duration?

    /// The most bytes of a response's body: 16 MiB unless given, far above what answers to forms have, and
    /// little enough to be held.
    public var maximumResponseBytes: Int

    /// Which fields and files may go out; whatever the form holds unless set. A form that breaks a rule ends with
    /// ``UploadError/Code/brokenRule`` before anything is sent.
    public var rules: FormRules?

    /// How fast forms go out, all of this client's uploads and its copies' together; as fast as the network takes
    /// them unless set.
    public var rateLimit: RateLimit?

    /// Compares what the server says it has received with what was sent; nothing is compared unless set.
    public var verification: UploadVerification?

    /// How often an upload tells how far it is, at the most: every 50 milliseconds unless set, which is more than is
    /// seen on a screen. An attempt's first step, the end of each part and the last step are always told.
    public var progressInterval = Duration.milliseconds(50)

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
    /// - Returns: The answer, whose status is 2xx. Redirects are not followed.
    /// - Throws: ``UploadError``, with the code ``UploadError/Code/refused`` for any other status;
    ///   `CancellationError`; an error of one of the form's own streams, unchanged.
    @discardableResult
    public func upload(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), progress: (@Sendable (UploadProgress) -> Void)? = nil
    ) async throws -> UploadResponse {
        var tell: (@Sendable (UploadEvent) -> Void)?
        if let progress {
            tell = { event in
                if case .sending(let step) = event { progress(step) }
            }
        }
        return try await upload(form, to: url, method: method, headerFields: headerFields, telling: tell)
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
        UploadEvents { tell in
            try await upload(form, to: url, method: method, headerFields: headerFields, telling: tell)
        }
    }

    private func upload(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method, headerFields: HTTPFields,
        telling tell: (@Sendable (UploadEvent) -> Void)?
    ) async throws -> UploadResponse {
        tell?(.preparing)
        var fields = headerFields
        if retryPolicy.isOn, let idempotencyKey = HTTPField.Name.idempotencyKey, !fields.contains(idempotencyKey) {
            // A string of a structured field (RFC 9651 §3.3.3) stands in quotes.
            fields[idempotencyKey] = "\"\(UUID().uuidString)\""
        }
        let request = try request(for: form, to: url, method: method, headerFields: fields)
        var attempt = 1
        while true {
            do {
                return try await send(request, attempt: attempt, telling: tell)
            } catch var error as UploadError {
                error.attempts = attempt
                let delay = try delay(before: attempt + 1, of: request, after: error)
                tell?(.retrying(UploadRetry(after: error, nextAttempt: attempt + 1, delay: delay)))
                try await Task.sleep(for: delay)
                attempt += 1
            }
        }
    }

    private func request(
        for form: MultipartForm, to url: URL, method: HTTPRequest.Method, headerFields: HTTPFields
    ) throws(UploadError) -> UploadRequest {
        var layout: FormLayout
        let problem: FormProblem?
        do {
            layout = try form.layout()
            problem = try rules?.problems(in: layout).first
        } catch {
            throw .form(error)
        }
        if let problem { throw .brokenRule(problem) }
        layout.pace = rateLimit
        if verification != nil { layout.observer = ContentDigests(of: layout.parts) }
        return try UploadRequest(
            url: url, method: method, headerFields: headerFields, body: layout,
            maximumResponseBytes: maximumResponseBytes)
    }

    /// How long to wait before an attempt.
    ///
    /// - Throws: The error, where there is to be no further attempt.
    private func delay(
        before attempt: Int, of request: UploadRequest, after error: UploadError
    ) throws(UploadError) -> Duration {
        guard attempt <= retryPolicy.maximumAttempts, retryPolicy.mayPass(error) else { throw error }
        guard request.body?.isReplayable ?? true else {
            var error = error
            error.message += ". It was not tried again, because the form holds a stream that can be read only once."
            throw error
        }
        var generator = SystemRandomNumberGenerator()
        return retryPolicy.delay(
            after: attempt - 1, retryAfter: error.response?.retryAfter(), using: &generator)
    }
}

extension HTTPField.Name {
    /// By which a server can tell that several requests are one (draft-ietf-httpapi-idempotency-key-header).
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")
}
