import NIOCore

/// The client that a connection counts for: an IPv4 address, or an IPv6 network of 64 bits, of which a single client
/// has all addresses as a rule (RFC 6177).
package struct PeerAddress: Hashable, Sendable {
    private let network: [UInt8]

    /// Identifies the client in text.
    var name: String { network.map { String($0, radix: 16) }.joined(separator: ":") }

    /// - Returns: `nil` for an address that says nothing about the client, such as a Unix socket's.
    init?(_ address: SocketAddress?) {
        guard let address else { return nil }
        let bytes = address.withSockAddr { pointer, count in Array(UnsafeRawBufferPointer(start: pointer, count: count))
        }
        switch address {
        case .v4: network = Array(bytes.dropFirst(4).prefix(4))
        case .v6:
            let full = bytes.dropFirst(8).prefix(16)
            // An IPv4 client of a socket for both (RFC 4291 §2.5.5.2).
            let isMapped = full.prefix(10).allSatisfy { $0 == 0 } && full.dropFirst(10).prefix(2) == [255, 255]
            network = Array(isMapped ? full.suffix(4) : full.prefix(8))
        case .unixDomainSocket: return nil
        }
    }

    /// The number that one address may have of a maximum.
    package static func share(_ share: Double, of maximum: Int) -> Int {
        guard share < 1 else { return maximum }
        return max(Int(Double(maximum) * share), 1)
    }
}
