import HTTPTypes
import NIOCore
import PostcardStore

/// The other end of a connection: a client, or a proxy.
enum ConnectionPeer: Hashable, Sendable {
    case address(IPAddress)
    case unixSocket
    /// The connection is closed, and its address is no longer known.
    case gone

    /// - Parameter channel: A connection, or a stream of one.
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
    /// The address; `nil` if it is not known.
    let address: IPAddress?
    /// The account of what the client holds; `nil` if clients cannot be distinguished.
    let peer: PeerAddress?

    /// Finds the client of a request.
    ///
    /// - Parameters:
    ///   - fields: The header fields of the request, which only count if a trusted proxy sends them.
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
