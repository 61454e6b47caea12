import HTTPTypes
import PostcardStore

/// The path of a request through proxies, each of which adds the address that it received the request from.
///
/// The nearest proxy wrote the last address, and a client can write any number of addresses in front of it. So an
/// address is only believed if a trusted proxy wrote it: the walk goes from the last address towards the first one and
/// ends at the first address that is not a trusted proxy's, which is the client, or at an element that has no address.
///
/// A proxy adds to one of the two fields, `Forwarded` (RFC 7239) or `X-Forwarded-For`, and passes on the other one as
/// the client wrote it. Which one is not known. So if a request has both fields, they only count if both lead to the
/// same client. Otherwise the request counts for the peer, whose address no client can choose.
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

    /// The last address that is known to be true; `nil` if there is none, such as for a client of a Unix socket.
    func client(of fields: HTTPFields) -> IPAddress? {
        let own: IPAddress? = if case .address(let address) = peer { address } else { nil }
        guard isTrusted(peer) else { return own }
        let ways: [IPAddress?] = [ForwardedAddresses.Field.forwarded, .xForwardedFor].compactMap { field in
            ForwardedAddresses(in: fields, field).map(lastTrue)
        }
        guard let way = ways.first, ways.allSatisfy({ $0 == way }) else { return own }
        return way ?? own
    }

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
