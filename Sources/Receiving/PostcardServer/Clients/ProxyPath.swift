import HTTPTypes
import NIOCore
import PostcardStore

/// The path of a request through proxies. Each proxy adds the address from which it received the request.
///
/// The nearest proxy wrote the last address, and a client can write any number of addresses in front of it. An address
/// therefore only counts if a trusted proxy wrote it. The search goes from the last address towards the first. It ends
/// at an address that is not a trusted proxy's, which is the client, or at an element that has no address.
///
/// A proxy adds to one of the two fields, `Forwarded` (RFC 7239) or `X-Forwarded-For`, and passes on the other field as
/// the client wrote it. It is not known to which field the proxy adds. If a request has both fields, they therefore
/// only count if both lead to the same client. Otherwise the request counts for the peer, whose address no client can
/// choose.
struct ProxyPath {
    private let peer: ConnectionPeer
    private let proxies: [TrustedProxy]

    /// The maximum number of proxies in a row, which limits the work for a single request.
    private static let maximumProxies = 32

    /// - Parameters:
    ///   - peer: The other end of the connection.
    ///   - proxies: The trusted proxies.
    init(to peer: ConnectionPeer, trusting proxies: [TrustedProxy]) {
        self.peer = peer
        self.proxies = proxies
    }

    /// The last address that is known to be true; `nil` if there is none, as for a client of a Unix socket.
    func client(of fields: HTTPFields) -> IPAddress? {
        let own: IPAddress? = if case .address(let address) = peer { address } else { nil }
        guard isTrusted(peer) else { return own }
        let ways: [IPAddress?] = [ForwardedAddresses.Field.forwarded, .xForwardedFor].compactMap { field in
            ForwardedAddresses(in: fields, field).map(lastTrue)
        }
        guard let way = ways.first, ways.allSatisfy({ $0 == way }) else { return own }
        return way ?? own
    }

    /// The last address that a trusted proxy wrote.
    ///
    /// - Returns: `nil` if the nearest proxy wrote no address.
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

/// The proxies that may name the client of a request: a range of addresses, or all peers of a Unix socket.
public struct TrustedProxy: Sendable, Hashable {
    private enum Place: Hashable {
        /// All addresses that begin with the same bits.
        case range(IPAddress, prefixLength: Int)
        case unixSocket
    }

    private let place: Place

    private init(_ place: Place) {
        self.place = place
    }

    /// Makes a range of addresses.
    ///
    /// - Parameter text: An IPv4 or IPv6 address such as `127.0.0.1`, or a range in CIDR notation (RFC 4632 §3.1, RFC
    ///   4291 §2.3) such as `10.0.0.0/8` or `2001:db8::/32`. `nil` for any other text.
    public init?(_ text: String) {
        let halves = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(text: halves[0]) else { return nil }
        guard halves.count == 2 else {
            self.init(.range(address, prefixLength: address.family.width))
            return
        }
        let digits = halves[1]
        guard (1...3).contains(digits.utf8.count), digits.allSatisfy({ ("0"..."9").contains($0) }),
            let written = Int(digits)
        else { return nil }
        // An IPv4 address in IPv6 notation has 96 bits in front of it.
        let isMapped = address.family == .v4 && halves[0].contains(":")
        let length = isMapped ? written - 96 : written
        guard (0...address.family.width).contains(length) else { return nil }
        self.init(.range(address, prefixLength: length))
    }

    /// All peers of a Unix socket. They have no addresses. The permissions of the socket's file decide who may connect.
    public static let unixSocket = TrustedProxy(.unixSocket)

    func contains(_ peer: ConnectionPeer) -> Bool {
        switch (place, peer) {
        case (.range(let first, let length), .address(let address)):
            first.family == address.family && (first.bits ^ address.bits) >> (first.family.width - length) == 0
        case (.unixSocket, .unixSocket): true
        default: false
        }
    }
}

/// The other end of a connection: a client, or a proxy.
enum ConnectionPeer: Hashable, Sendable {
    case address(IPAddress)
    case unixSocket
    /// The connection is closed, and its address is no longer known.
    case gone

    /// - Parameter channel: A connection, or a stream of a connection.
    init(_ channel: any Channel) {
        if let address = channel.remoteAddress {
            self = IPAddress(address).map(ConnectionPeer.address) ?? .unixSocket
        } else {
            let listening = channel.parent?.parent ?? channel.parent
            self = listening?.localAddress?.ipAddress == nil ? .unixSocket : .gone
        }
    }
}

/// The client that a request counts for.
struct RequestClient: Hashable, Sendable {
    /// The address; `nil` if it is unknown.
    let address: IPAddress?
    /// The address for the client's share of resources; `nil` if clients cannot be distinguished.
    let peer: PeerAddress?

    /// Finds the client of a request.
    ///
    /// - Parameters:
    ///   - fields: The header fields of the request. They only count if a trusted proxy sends them.
    ///   - peer: The other end of the connection.
    ///   - proxies: The trusted proxies.
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
