import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// An event whose promise succeeds once all parts of the response are in the socket.
struct ResponseFlush: Sendable {}

/// The connection of the current request, and what is kept until the request ends.
package struct UploadConnection: Sendable {
    @TaskLocal package static var current: UploadConnection?

    let channel: any Channel

    /// Whether it is one stream of an HTTP/2 connection. The parent of a whole connection is the listening channel.
    package var isStream: Bool { channel.parent?.parent != nil }

    /// The client that the request counts for, or `nil` if clients cannot be told apart.
    package var peer: PeerAddress? {
        if let address = channel.remoteAddress { return PeerAddress(address) }
        let listening = isStream ? channel.parent?.parent : channel.parent
        return listening?.localAddress?.ipAddress == nil ? nil : .unknown
    }

    /// Files that are removed once the response has been sent.
    let files = TemporaryFiles()

    /// Waits until the response written so far is in the client's socket. If the client reads nothing, it waits until
    /// the connection is closed.
    func flushed() async throws {
        do {
            try await channel.triggerUserOutboundEvent(ResponseFlush())
        } catch ChannelError.operationUnsupported {
            // Other servers have their own way of waiting.
        }
    }

    /// Asks the client to send its body (RFC 9110 §10.1.1).
    func askForBody() async throws {
        try await inform(HTTPResponse(status: .continue))
    }

    /// Sends an informational response (RFC 9110 §15.2).
    func inform(_ head: HTTPResponse) async throws {
        try await channel.writeAndFlush(HTTPResponsePart.head(head))
    }
}

/// The client that a connection counts for: an IPv4 address, or an IPv6 network of 64 bits, which usually belongs to a
/// single client (RFC 6177).
package struct PeerAddress: Hashable, Sendable {
    private let network: [UInt8]

    /// All clients whose addresses are no longer known because their connections are closed. If they did not count for
    /// any address, a client could exceed its share by closing its connections right after its requests.
    static let unknown = PeerAddress()

    private init() {
        network = []
    }

    /// Identifies the client in text.
    var name: String { network.map { String($0, radix: 16) }.joined(separator: ":") }

    /// - Returns: `nil` for an address that does not identify a client, such as a Unix socket's.
    init?(_ address: SocketAddress?) {
        guard let address else { return nil }
        let bytes = address.withSockAddr { pointer, count in Array(UnsafeRawBufferPointer(start: pointer, count: count))
        }
        switch address {
        case .v4: network = Array(bytes.dropFirst(4).prefix(4))
        case .v6:
            let full = bytes.dropFirst(8).prefix(16)
            // An IPv4 client of a dual-stack socket (RFC 4291 §2.5.5.2).
            let isMapped = full.prefix(10).allSatisfy { $0 == 0 } && full.dropFirst(10).prefix(2) == [255, 255]
            network = Array(isMapped ? full.suffix(4) : full.prefix(8))
        case .unixDomainSocket: return nil
        }
    }

    /// How much of a maximum one address may use.
    package static func share(_ share: Double, of maximum: Int) -> Int {
        guard share < 1 else { return maximum }
        return max(Int(Double(maximum) * share), 1)
    }
}

/// How many of something, such as connections, each address has.
struct PeerCounts {
    private var counts: [PeerAddress: Int] = [:]

    /// Whether an address has as many as it may have. `nil`, a client without an address, is never limited.
    func hasReached(_ share: Int, for peer: PeerAddress?) -> Bool {
        guard let peer else { return false }
        return counts[peer, default: 0] >= share
    }

    mutating func add(_ peer: PeerAddress?) {
        if let peer { counts[peer, default: 0] += 1 }
    }

    mutating func remove(_ peer: PeerAddress?) {
        if let peer, let rest = counts[peer] { counts[peer] = rest > 1 ? rest - 1 : nil }
    }
}
