public import HTTPTypes
import PostcardForm
public import PostcardFoundation
import PostcardWire

/// Sends one request to a server and returns the response.
///
/// A transport sends the body once and reports the bytes sent. ``UploadClient`` handles retries, progress for each
/// part, statuses and timeouts for all transports.
///
/// A transport must meet these requirements:
/// - It reads the body while sending it, and never has the whole body in memory.
/// - If reading the body fails, it closes the connection, so that the body does not look complete.
/// - If a response arrives while the body is still being sent, it reports all bytes sent so far, and then returns the
///   response. If it reports no bytes, the body counts as sent once there is a response.
/// - It reports `.sent(bytes: 0)` when the connection is made. An upload that times out earlier was never sent.
/// - It does not follow redirects: a 3xx is a response like any other.
/// - If the task is cancelled, it closes the connection, and ``send(_:reporting:)`` returns soon.
public protocol UploadTransport: Sendable {
    /// The header fields that ``UploadClient`` adds to each upload, unless the upload has fields of the same name.
    /// Defaults to none. After a redirect to another origin, fields that may contain credentials are not sent.
    var defaultHeaderFields: HTTPFields { get }

    /// Returns whether a body of known length is sent with its `Content-Length` and not in chunks, which object stores
    /// refuse. Defaults to `true`.
    ///
    /// - Parameter bytes: The length of the body.
    func sendsContentLength(of bytes: Int64) -> Bool

    /// Sends a request and returns the response, with any status.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - report: Called with each event, and returns at once. Events of one kind must be reported one after the
    ///     other. Bytes sent and bytes received may be reported at the same time.
    /// - Returns: The response with its whole body.
    /// - Throws: ``UploadError`` for failures of the connection; `CancellationError`; the errors of the body's reader
    ///   unchanged, which are `FormError` and the errors of the form's own streams.
    func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse
}

extension UploadTransport {
    public var defaultHeaderFields: HTTPFields { HTTPFields() }

    public func sendsContentLength(of bytes: Int64) -> Bool { true }
}

/// A request that a transport sends.
public struct UploadRequest: Sendable {
    /// The URL, `http` or `https`, with a host and without a user name and password.
    public let url: URL

    /// The method.
    public let method: HTTPRequest.Method

    /// The header fields. The `Content-Type` is always that of the body. The transport sets `Host`, `Content-Length`
    /// and `Transfer-Encoding`. A request without a body has no `Expect`.
    public var headerFields: HTTPFields {
        get { fields }
        set { fields = Self.fitting(newValue, body) }
    }

    private var fields: HTTPFields

    /// The networks that the request may use. Transports ignore this on platforms that do not distinguish networks.
    public var networks = AllowedNetworks.all

    /// The size of the whole form in bytes, for a request of a resumable upload; `nil` for any other request.
    var uploadBytes: Int64?

    /// The body; `nil` for a request without a body, such as the GET after a 303 (See Other).
    public let body: UploadBody?

    /// The maximum size of the response body, in bytes. More bytes are an error with the code
    /// ``UploadError/Code/responseTooLarge``.
    public let maximumResponseBytes: Int

    /// Makes a request.
    ///
    /// - Parameters:
    ///   - url: The URL. A user name and password in the URL become a Basic `Authorization` (RFC 7617), unless the
    ///     header fields have an `Authorization`.
    ///   - method: The method.
    ///   - headerFields: The header fields. The body's `Content-Type`, with its boundary, replaces theirs.
    ///   - body: The body; `nil` for a request without a body and without a `Content-Type`.
    ///   - maximumResponseBytes: The maximum size of the response body, in bytes.
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/invalidURL``.
    public init(
        url: URL, method: HTTPRequest.Method, headerFields: HTTPFields, body: UploadBody?, maximumResponseBytes: Int
    ) throws(UploadError) {
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
            throw .invalidURL(url, "it must begin with http:// or https://")
        }
        guard let host = url.host(), !host.isEmpty else { throw .invalidURL(url, "it has no host") }
        if let port = url.port, !Port.valid.contains(port) { throw .invalidURL(url, "there is no port \(port)") }
        self.url = url.withoutCredentials
        self.method = method
        var headerFields = headerFields
        if let credentials = url.basicCredentials, !headerFields.contains(.authorization) {
            headerFields[.authorization] = credentials
        }
        fields = Self.fitting(headerFields, body)
        self.body = body
        self.maximumResponseBytes = maximumResponseBytes
    }

    /// Removes the header fields that could contradict the body, and sets the body's `Content-Type`.
    private static func fitting(_ headerFields: HTTPFields, _ body: UploadBody?) -> HTTPFields {
        var fields = headerFields
        for name in [HTTPField.Name.contentLength, .transferEncoding] { fields[name] = nil }
        fields[.contentType] = body?.contentType
        // Only a request with a body may have an expectation (RFC 9110 §10.1.1).
        if body == nil { fields[.expect] = nil }
        return fields
    }
}

extension URL {
    fileprivate var withoutCredentials: URL {
        guard user() != nil || password() != nil,
            var components = URLComponents(url: self, resolvingAgainstBaseURL: true)
        else { return self }
        components.user = nil
        components.password = nil
        return components.url ?? self
    }

    fileprivate var basicCredentials: String? {
        guard let user = user(percentEncoded: false) else { return nil }
        let credentials = "\(user):\(password(percentEncoded: false) ?? "")"
        return "Basic \(Data(credentials.utf8).base64EncodedString())"
    }
}

/// The networks that an upload may use.
///
/// ```swift
/// client.network.allowed = .unmetered
/// ```
///
/// Only Apple platforms distinguish networks. On other platforms this setting has no effect.
public struct AllowedNetworks: Sendable, Hashable {
    /// Whether the upload may use a cellular network. Defaults to `true`.
    public var cellular: Bool

    /// Whether the upload may use a network that the system considers expensive, such as cellular. Defaults to `true`.
    public var expensive: Bool

    /// Whether the upload may use a network in Low Data Mode. Defaults to `true`.
    public var constrained: Bool

    /// Makes a set of networks. Defaults to every network.
    public init(cellular: Bool = true, expensive: Bool = true, constrained: Bool = true) {
        self.cellular = cellular
        self.expensive = expensive
        self.constrained = constrained
    }

    /// Every network.
    public static let all = AllowedNetworks()

    /// Networks that are neither expensive nor in Low Data Mode: usually Wi-Fi.
    public static let unmetered = AllowedNetworks(expensive: false, constrained: false)
}

/// An event of a request in progress.
public enum TransportEvent: Sendable, Hashable {
    /// There is no network; the request waits until there is one.
    case waitingForNetwork
    /// Bytes of the body were handed to the connection, this many in total. 0 means that the connection was made.
    case sent(bytes: Int64)
    /// An interim response (RFC 9110 §15.2) was received, such as a 104 (Upload Resumption Supported) with the URL of
    /// an upload resource. A transport whose HTTP library hides interim responses reports none.
    case informed(status: HTTPResponse.Status, headerFields: HTTPFields)
    /// Bytes of the response body were received, this many in total. 0 means that the head was received.
    case received(bytes: Int)
}
