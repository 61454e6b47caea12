import PostcardFoundation
import PostcardWire

/// An http or https URL, split for a connection and its requests.
package struct ServerAddress: Sendable, Hashable, CustomStringConvertible {
    /// Whether the connection uses TLS.
    let isSecure: Bool
    /// The hostname or IP address, without the brackets of an IPv6 address.
    let host: String
    let port: Int
    /// The path and query for a request.
    let target: String
    private let url: URL

    /// Parses an absolute http or https URL. `nil` for any other text.
    package init?(_ text: String) {
        guard let url = URL(string: text) else { return nil }
        self.init(url)
    }

    /// Whether both addresses have the same scheme, host and port.
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

    /// The address in a `Location`, which may be relative to this address (RFC 9110 §10.2.2).
    func resolving(_ reference: String) -> ServerAddress? {
        URL(string: reference, relativeTo: url).flatMap { ServerAddress($0) }
    }

    /// A copy of the address with its last letter or digit changed, so that no resource has it; `nil` if the path has
    /// no letter or digit.
    var changedAtEnd: ServerAddress? {
        let text = url.absoluteString
        guard let last = text.lastIndex(where: { $0.isASCII && ($0.isLetter || $0.isNumber) }) else { return nil }
        let other = text[last] == "7" ? "8" : "7"
        let changed = ServerAddress(text[..<last] + other + text[text.index(after: last)...])
        // If the path has no letter or digit, the host or port has changed instead.
        guard let changed, changed.hasOrigin(of: self) else { return nil }
        return changed
    }

    /// Whether a connection to this address can be used for another address.
    func isOnServer(of other: ServerAddress) -> Bool {
        isSecure == other.isSecure && host == other.host && port == other.port
    }

    /// The value of the header field `Host`.
    var authority: String {
        Port.authority(host, port, of: isSecure ? "https" : "http")
    }
}
