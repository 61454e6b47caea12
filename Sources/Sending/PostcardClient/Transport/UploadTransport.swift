public import HTTPTypes
import PostcardForm
public import PostcardFoundation
import PostcardWire

/// Sends one request to a server and returns the response.
///
/// A transport does little: it sends the body once and reports the bytes that it has sent. ``UploadClient`` handles
/// retries, progress for each part, statuses and timeouts for all transports.
///
/// A transport must meet these requirements:
/// - The body is read while it is sent, and never held in memory as a whole.
/// - A body that cannot be read to its end is never ended as if it were complete; the connection is closed.
/// - A response that arrives while the body is still being sent is returned like any other, once all bytes sent so far
///   have been reported. If a transport does not report sent bytes, the body counts as sent once there is a response.
/// - `.sent(bytes: 0)` is reported when the connection is made. An upload that times out before that counts as never
///   sent.
/// - Redirects are not followed; a 3xx is a response like any other.
/// - If the task is cancelled, the connection is closed and ``send(_:reporting:)`` returns soon.
public protocol UploadTransport: Sendable {
    /// The header fields that ``UploadClient`` adds to each upload that has none of the same name. Defaults to none.
    ///
    /// They are treated like the upload's own fields: if they contain credentials, a redirect to another origin does
    /// not get these.
    var defaultHeaderFields: HTTPFields { get }

    /// Returns whether a body of known length is sent with its `Content-Length`, and not in chunks. Object stores
    /// refuse bodies in chunks. Defaults to `true`.
    ///
    /// - Parameter bytes: The length of the body.
    func sendsContentLength(of bytes: Int64) -> Bool

    /// Sends a request and returns the response, with any status.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - report: Called with each event. The closure returns at once. Events of one kind must be reported one after
    ///     the other; bytes sent and bytes received may be reported at the same time.
    /// - Returns: The response with its whole body.
    /// - Throws: ``UploadError`` for failures of the connection; the errors of the body's reader unchanged, which are
    ///   `FormError` and the errors of the form's own streams; `CancellationError`.
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
    /// The URL: `http` or `https`, with a host, and without a user name and password.
    public let url: URL

    /// The method.
    public let method: HTTPRequest.Method

    /// The header fields. The `Content-Type` is that of the body and cannot be changed. The transport sets `Host`,
    /// `Content-Length` and `Transfer-Encoding`. A request without a body has no `Expect`.
    public var headerFields: HTTPFields {
        get { fields }
        set { fields = Self.fitting(newValue, body) }
    }

    private var fields: HTTPFields

    /// The networks that the request may use. Transports on platforms that do not distinguish networks ignore this
    /// property.
    public var networks = AllowedNetworks.all

    /// The size of the whole form in bytes, for a request of a resumable upload; `nil` for any other request.
    var uploadBytes: Int64?

    /// The body; `nil` for a request without a body, such as the GET after a 303 (See Other).
    public let body: UploadBody?

    /// The maximum size of the response body, in bytes. A larger body is an error with the code
    /// ``UploadError/Code/responseTooLarge``.
    public let maximumResponseBytes: Int

    /// Makes a request.
    ///
    /// - Parameters:
    ///   - url: The URL. A user name and password in the URL become a Basic `Authorization` (RFC 7617), unless the
    ///     header fields have an `Authorization`.
    ///   - method: The method.
    ///   - headerFields: The header fields. A `Content-Type` among them is replaced by that of the body, so that the
    ///     boundary is always right.
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

/// The kinds of network that an upload may use.
///
/// ```swift
/// client.network.allowed = .unmetered
/// ```
///
/// Only Apple platforms distinguish networks. On other platforms every upload may use any network.
public struct AllowedNetworks: Sendable, Hashable {
    /// Whether the upload may use a cellular network. Defaults to `true`.
    public var cellular: Bool

    /// Whether the upload may use a network that the system considers expensive, such as cellular or a personal
    /// hotspot. Defaults to `true`.
    public var expensive: Bool

    /// Whether the upload may use a network in Low Data Mode. Defaults to `true`.
    public var constrained: Bool

    /// Makes a set of networks. By default every network is allowed.
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
    /// Reports the total number of body bytes handed to the connection so far. 0 means that the connection was made.
    case sent(bytes: Int64)
    /// An interim response (RFC 9110 §15.2) was received, such as 104 (Upload Resumption Supported), which says where
    /// an interrupted upload resumes. A transport whose HTTP library hides interim responses reports none.
    case informed(status: HTTPResponse.Status, headerFields: HTTPFields)
    /// Reports the total number of bytes of the response body received so far. 0 means that the head was received.
    case received(bytes: Int)
}
