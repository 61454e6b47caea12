import HTTPTypes
import NIOCore
import PostcardStore

/// The path of a request through proxies. Each proxy adds the address from which it received the request.
///
/// The nearest proxy wrote the last address, but a client can write any addresses before it. An address therefore only
/// counts if a trusted proxy wrote it. The search goes from the last address to the first. It ends at the first address
/// that is not a trusted proxy's, which is the client, or at an element without an address.
///
/// A proxy adds to `Forwarded` (RFC 7239) or to `X-Forwarded-For`, and forwards the other field as the client wrote it.
/// The receiver cannot know which field the proxy uses. If a request has both fields, they therefore only count if both
/// lead to the same client. Otherwise the peer counts as the client, because no client can choose the peer's address.
struct ProxyPath {
    private let peer: ConnectionPeer
    private let proxies: [TrustedProxy]

    /// The maximum number of proxies in a row, which limits the work for a request.
    private static let maximumProxies = 32

    /// - Parameters:
    ///   - peer: The other end of the connection.
    ///   - proxies: The trusted proxies.
    init(to peer: ConnectionPeer, trusting proxies: [TrustedProxy]) {
        self.peer = peer
        self.proxies = proxies
    }

    /// The address of the client, or else of the peer; `nil` if neither is known, as for a client of a Unix socket.
    func client(of fields: HTTPFields) -> IPAddress? {
        let own: IPAddress? = if case .address(let address) = peer { address } else { nil }
        guard isTrusted(peer) else { return own }
        let ways: [IPAddress?] = [ForwardedAddresses.Field.forwarded, .xForwardedFor].compactMap { field in
            ForwardedAddresses(in: fields, field).map(lastTrue)
        }
        guard let way = ways.first, ways.allSatisfy({ $0 == way }) else { return own }
        return way ?? own
    }

    /// The last address in the search that a trusted proxy wrote; `nil` if the nearest proxy wrote no address.
    private func lastTrue(of addresses: ForwardedAddresses) -> IPAddress? {
        var known: IPAddress?
        for address in addresses.prefix(Self.maximumProxies) {
            guard let address else { break }
            known = address
            guard isTrusted(.address(address)) else { break }
        }
        return known
    }

    private func isTrusted(_ peer: ConnectionPeer) -> Bool {
        proxies.contains { $0.contains(peer) }
    }
}

/// The other end of a connection: a client, or a proxy.
enum ConnectionPeer: Hashable, Sendable {
    case address(IPAddress)
    case unixSocket
    /// The connection is closed, so its address is unknown.
    case gone

    /// - Parameter channel: A connection, or one of its streams.
    init(_ channel: any Channel) {
        if let address = channel.remoteAddress {
            self = IPAddress(address).map(ConnectionPeer.address) ?? .unixSocket
        } else {
            let listening = channel.parent?.parent ?? channel.parent
            self = listening?.localAddress?.ipAddress == nil ? .unixSocket : .gone
        }
    }
}

/// The client whose limits a request uses.
struct RequestClient: Hashable, Sendable {
    /// The address; `nil` if it is unknown.
    let address: IPAddress?
    /// The address whose limits the request uses; `nil` if clients cannot be distinguished.
    let peer: PeerAddress?

    /// Finds the client of a request. `peer` is the other end of the connection. The header fields only count if the
    /// peer is a trusted proxy.
    init(of fields: HTTPFields = [:], from peer: ConnectionPeer, trusting proxies: [TrustedProxy] = []) {
        guard peer != .gone else {
            address = nil
            self.peer = .unknown
            return
        }
        address = ProxyPath(to: peer, trusting: proxies).client(of: fields)
        self.peer = address.map { PeerAddress($0) }
    }
}
