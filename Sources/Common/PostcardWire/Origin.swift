package import HTTPTypes
package import PostcardFoundation

extension URL {
    /// The port of the URL, or the default port of its scheme.
    package var portOrDefault: Int { port ?? (scheme?.lowercased() == "https" ? 443 : 80) }

    /// The host and port, such as `example.com:443`.
    package var address: String {
        let host = host() ?? ""
        return "\(host.contains(":") ? "[\(host)]" : host):\(portOrDefault)"
    }

    /// The scheme, host and port (RFC 6454 §4), such as `https://example.com:443`.
    package var origin: String { "\(scheme?.lowercased() ?? "")://\(address.lowercased())" }

    /// Whether both URLs have the same scheme, host and port.
    package func hasOrigin(of other: URL) -> Bool { origin == other.origin }

    /// The URL without its query, for messages: the query of a presigned PUT has the signature.
    package var withoutQuery: String { absoluteString.withoutQuery }
}

extension String {
    /// The address without its query, for messages.
    package var withoutQuery: String { String(prefix { $0 != "?" }) }
}

extension HTTPFields {
    /// The fields that are safe to send to another origin, or to an object store: fields that describe the content or
    /// what is accepted, and the `Idempotency-Key`, which identifies the upload and no person.
    package var harmless: HTTPFields {
        filter { Self.harmlessNames.contains($0.name.canonicalName) }
    }

    private static let harmlessNames: Set<String> = [
        "accept", "accept-language", "content-digest", "content-encoding", "content-language", "content-type", "expect",
        "idempotency-key", "repr-digest", "upload-complete", "upload-draft-interop-version", "upload-incomplete",
        "upload-length", "upload-offset", "user-agent",
    ]
}
