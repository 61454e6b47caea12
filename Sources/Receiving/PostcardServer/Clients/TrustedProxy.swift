import PostcardStore

/// Proxies that may name the client of a request: a range of addresses, or all peers of a Unix socket.
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
    ///   4291 §2.3) such as `10.0.0.0/8` or `2001:db8::/32`. The result is `nil` for any other text.
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
        // In IPv6 notation, an IPv4 address follows a fixed prefix of 96 bits.
        let isMapped = address.family == .v4 && halves[0].contains(":")
        let length = isMapped ? written - 96 : written
        guard (0...address.family.width).contains(length) else { return nil }
        self.init(.range(address, prefixLength: length))
    }

    /// All peers of a Unix socket. The permissions of the socket's file decide who may connect.
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
