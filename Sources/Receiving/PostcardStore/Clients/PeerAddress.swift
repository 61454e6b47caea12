package import NIOCore

/// The client that a connection or a request counts for: an IPv4 address, or an IPv6 network of 64 bits, which usually
/// belongs to a single client (RFC 6177).
package struct PeerAddress: Hashable, Sendable {
    private enum Network: Hashable {
        case unknown
        case v4(UInt32)
        case v6(UInt64)
    }

    private let network: Network

    /// All clients whose addresses are no longer known because their connections are closed. If they did not count for
    /// any address, a client could exceed its share by closing its connections right after its requests.
    package static let unknown = PeerAddress(.unknown)

    private init(_ network: Network) {
        self.network = network
    }

    package init(_ address: IPAddress) {
        switch address.family {
        case .v4: self.init(.v4(UInt32(truncatingIfNeeded: address.bits)))
        case .v6: self.init(.v6(UInt64(truncatingIfNeeded: address.bits >> 64)))
        }
    }

    /// The address, or the first one of the network.
    private var address: IPAddress? {
        switch network {
        case .unknown: nil
        case .v4(let bits): IPAddress(bytes: withUnsafeBytes(of: bits.bigEndian) { Array($0) })
        case .v6(let bits): IPAddress(bytes: withUnsafeBytes(of: (bits.bigEndian, 0 as UInt64)) { Array($0) })
        }
    }

    /// - Returns: `nil` for an address that does not identify a client, such as a Unix socket's.
    package init?(_ address: SocketAddress?) {
        guard let address = IPAddress(address) else { return nil }
        self.init(address)
    }
}

/// As a text, so that a store can remember whose an upload is.
extension PeerAddress: Codable {
    package init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        if text.isEmpty {
            self = .unknown
        } else if let address = IPAddress(text: text) {
            self.init(address)
        } else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "The client is no address."))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(address?.description ?? "")
    }
}
