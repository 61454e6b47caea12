public import HTTPTypes
import PostcardForm
public import PostcardFoundation

/// A request for a transport to send.
public struct UploadRequest: Sendable {
    /// The URL: `http` or `https`, with a host, and without a user name and password.
    public let url: URL

    /// The method.
    public let method: HTTPRequest.Method

    /// The header fields, with the `Content-Type` of the body, which cannot be changed. The transport sets `Host`,
    /// `Content-Length` and `Transfer-Encoding`. A request without a body has no `Expect`.
    public var headerFields: HTTPFields {
        get { fields }
        set { fields = Self.fitting(newValue, body) }
    }

    private var fields: HTTPFields

    /// The networks that the request may use. Transports on platforms that do not distinguish networks ignore it.
    public var networks = AllowedNetworks.all

    /// The size of the whole form in bytes, for a request of a resumable upload; `nil` for any other.
    var uploadBytes: Int64?

    /// The body; `nil` for a request without one, such as the GET after a 303 (See Other).
    public let body: UploadBody?

    /// The maximum size of the response body, in bytes. A larger one is an error with the code
    /// ``UploadError/Code/responseTooLarge``.
    public let maximumResponseBytes: Int

    /// Makes a request.
    ///
    /// - Parameters:
    ///   - url: The URL. A user name and password in it become a Basic `Authorization` (RFC 7617), unless the header
    ///     fields have an `Authorization`.
    ///   - method: The method.
    ///   - headerFields: The header fields. A `Content-Type` among them is ignored: that of the body is used, so that
    ///     the two cannot disagree on the boundary.
    ///   - body: The body; `nil` for a request without one, which has no `Content-Type` either.
    ///   - maximumResponseBytes: The maximum size of the response body, in bytes.
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/invalidURL``.
    public init(
        url: URL, method: HTTPRequest.Method, headerFields: HTTPFields, body: UploadBody?, maximumResponseBytes: Int
    ) throws(UploadError) {
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
            throw .invalidURL(url, "it must begin with http:// or https://")
        }
        guard let host = url.host(), !host.isEmpty else { throw .invalidURL(url, "it has no host") }
        if let port = url.port, !(1...65535).contains(port) { throw .invalidURL(url, "there is no port \(port)") }
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

    /// Header fields that do not contradict the body.
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
