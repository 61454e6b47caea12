package import HTTPTypes
package import PostcardFoundation

package enum Port {
    /// The ports that a server can have. Port 0, which lets the system choose, is not among them.
    package static let valid = 1...65535

    /// The default port of a scheme (RFC 9110 §4.2.1 and §4.2.2).
    package static func ofScheme(_ scheme: String?) -> Int { scheme?.lowercased() == "https" ? 443 : 80 }

    /// A host and a port, such as `example.com:8080` or `[::1]:8080` (RFC 3986 §3.2). If a scheme is given, its default
    /// port is left out.
    package static func authority(_ host: String, _ port: Int, of scheme: String? = nil) -> String {
        let name = host.contains(":") ? "[\(host)]" : host
        return scheme != nil && port == ofScheme(scheme) ? name : "\(name):\(port)"
    }
}

extension URL {
    package var portOrDefault: Int { port ?? Port.ofScheme(scheme) }

    /// Whether the port is valid or missing.
    package var hasValidPort: Bool { port.map(Port.valid.contains) ?? true }

    /// The host and port, such as `example.com:443`.
    package var address: String { Port.authority(host() ?? "", portOrDefault) }

    /// The scheme, host and port (RFC 6454 §4), such as `https://example.com:443`.
    package var origin: String { "\(scheme?.lowercased() ?? "")://\(address.lowercased())" }

    /// Whether both URLs have the same scheme, host and port.
    package func hasOrigin(of other: URL) -> Bool { origin == other.origin }

    /// The URL without its query, for messages, because the query of a presigned PUT has the signature.
    package var withoutQuery: String { absoluteString.withoutQuery }
}

extension String {
    /// The address without its query, for messages.
    package var withoutQuery: String { String(prefix { $0 != "?" }) }
}

extension HTTPFields {
    /// The fields that are safe to send to another origin or an object store: those that describe the content or what
    /// is accepted, and the `Idempotency-Key`, which identifies no person.
    package var harmless: HTTPFields {
        filter { Self.harmlessNames.contains($0.name.canonicalName) }
    }

    private static let harmlessNames: Set<String> = [
        "accept", "accept-language", "content-digest", "content-encoding", "content-language", "content-type", "expect",
        "idempotency-key", "repr-digest", "upload-complete", "upload-draft-interop-version", "upload-incomplete",
        "upload-length", "upload-offset", "user-agent",
    ]
}
