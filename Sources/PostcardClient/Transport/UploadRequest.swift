public import HTTPTypes
public import PostcardForm

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One request as a transport sends it.
public struct UploadRequest: Sendable {
    /// Where it goes: `http` or `https`, with a host, and without the user name and password that were given in it.
    public let url: URL

    /// Its method.
    public let method: HTTPRequest.Method

    /// Its header fields, the body's `Content-Type` included, which stays whatever is set. `Host`, `Content-Length` and
    /// `Transfer-Encoding` are the transport's own to set.
    public var headerFields: HTTPFields {
        get { fields }
        set { fields = Self.fitting(newValue, body) }
    }

    private var fields: HTTPFields

    /// The networks that it may use. Transports on platforms that do not distinguish networks ignore it.
    public var networks = AllowedNetworks.all

    /// Its body, of which a transport makes a reader; `nil` for a request without one, such as the GET to which a
    /// 303 (See Other) points.
    public let body: FormLayout?

    /// The most bytes of a response's body; more are ``UploadError/Code/responseTooLarge``.
    public let maximumResponseBytes: Int

    /// Makes a request.
    ///
    /// - Parameters:
    ///   - url: Where it goes. A user name and password in it become an `Authorization` of Basic (RFC 7617), unless the
    ///     header fields have one, whatever the transport would make of them.
    ///   - method: Its method.
    ///   - headerFields: Its header fields. Those that the form decides are set, whatever is given: its
    ///     `Content-Type` comes from the body, so that the two cannot disagree on the boundary.
    ///   - body: Its body; `nil` for a request without one, which then has no `Content-Type` either.
    ///   - maximumResponseBytes: The most bytes of a response's body.
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/invalidURL``.
    public init(
        url: URL, method: HTTPRequest.Method, headerFields: HTTPFields, body: FormLayout?, maximumResponseBytes: Int
    ) throws(UploadError) {
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
            throw .invalidURL(url, "it must begin with http:// or https://")
        }
        guard let host = url.host(), !host.isEmpty else { throw .invalidURL(url, "it names no host") }
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
    private static func fitting(_ headerFields: HTTPFields, _ body: FormLayout?) -> HTTPFields {
        var fields = headerFields
        for name in [HTTPField.Name.contentLength, .transferEncoding] { fields[name] = nil }
        fields[.contentType] = body?.contentType
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

    /// The host and port that a connection goes to, for messages.
    var address: String {
        let host = host() ?? ""
        let name = host.contains(":") ? "[\(host)]" : host
        return "\(name):\(port ?? (scheme?.lowercased() == "https" ? 443 : 80))"
    }
}
