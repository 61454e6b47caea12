import PostcardFoundation
import PostcardWire

/// An http or https URL, as a connection and a request need it.
package struct ServerAddress: Sendable, Hashable, CustomStringConvertible {
    /// Whether the connection uses TLS.
    let isSecure: Bool
    /// The name or the address of the host, without the brackets of an IPv6 address.
    let host: String
    let port: Int
    /// The path and the query, as they are in a request.
    let target: String
    private let url: URL

    /// - Returns: `nil` if the text is not an absolute http or https URL.
    package init?(_ text: String) {
        guard let url = URL(string: text) else { return nil }
        self.init(url)
    }

    /// Whether both have the same scheme, host and port.
    func hasOrigin(of other: ServerAddress) -> Bool {
        isSecure == other.isSecure && host.lowercased() == other.host.lowercased() && port == other.port
    }

    private init?(_ url: URL) {
        let url = url.absoluteURL
        guard let components = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let scheme = components.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let host = components.host, !host.isEmpty
        else { return nil }
        isSecure = scheme == "https"
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        port = components.port ?? Port.ofScheme(scheme)
        let path = components.percentEncodedPath
        target = (path.isEmpty ? "/" : path) + (components.percentEncodedQuery.map { "?\($0)" } ?? "")
        self.url = url
    }

    package var description: String { url.absoluteString }

    /// The address that a `Location` points to, which may be relative (RFC 9110 §10.2.2).
    func resolving(_ reference: String) -> ServerAddress? {
        URL(string: reference, relativeTo: url).flatMap { ServerAddress($0) }
    }

    /// The same address with another last letter or digit: that of a resource that does not exist. `nil` if its path
    /// has none.
    var changedAtEnd: ServerAddress? {
        let text = url.absoluteString
        guard let last = text.lastIndex(where: { $0.isASCII && ($0.isLetter || $0.isNumber) }) else { return nil }
        let other = text[last] == "7" ? "8" : "7"
        let changed = ServerAddress(text[..<last] + other + text[text.index(after: last)...])
        // Without a letter in the path, the last one is that of the host or the port.
        guard let changed, changed.hasOrigin(of: self) else { return nil }
        return changed
    }

    /// Whether a connection to one is a connection to the other.
    func isOnServer(of other: ServerAddress) -> Bool {
        isSecure == other.isSecure && host == other.host && port == other.port
    }

    /// The value of the field `Host`.
    var authority: String {
        Port.authority(host, port, of: isSecure ? "https" : "http")
    }
}
