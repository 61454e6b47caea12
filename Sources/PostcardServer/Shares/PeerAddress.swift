package import NIOCore

/// The client that a connection counts for: an IPv4 address, or an IPv6 network of 64 bits, which usually belongs to a
/// single client (RFC 6177).
package struct PeerAddress: Hashable, Sendable {
    private enum Family: UInt8 { case unknown, v4, v6 }

    private let family: Family
    /// The IPv4 address, or the first half of the IPv6 address.
    private let bits: UInt64

    /// All clients whose addresses are no longer known because their connections are closed. If they did not count for
    /// any address, a client could exceed its share by closing its connections right after its requests.
    static let unknown = PeerAddress(.unknown, [])

    private init(_ family: Family, _ bytes: some Sequence<UInt8>) {
        self.family = family
        bits = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// - Returns: `nil` for an address that does not identify a client, such as a Unix socket's.
    package init?(_ address: SocketAddress?) {
        guard let address, case let family = address.protocol, family != .unix else { return nil }
        self = address.withSockAddr { pointer, count in
            let bytes = UnsafeRawBufferPointer(start: pointer, count: count)
            // The fields of `sockaddr_in` and `sockaddr_in6`.
            guard family == .inet6 else { return PeerAddress(.v4, bytes.dropFirst(4).prefix(4)) }
            let full = bytes.dropFirst(8).prefix(16)
            // An IPv4 client of a dual-stack socket (RFC 4291 §2.5.5.2).
            let isMapped =
                full.prefix(10).allSatisfy { $0 == 0 } && full.dropFirst(10).prefix(2).allSatisfy { $0 == 255 }
            return isMapped ? PeerAddress(.v4, full.suffix(4)) : PeerAddress(.v6, full.prefix(8))
        }
    }
}
