import NIOCore
package import PostcardStore

/// The clients of numbered addresses.
package enum TestPeers {
    package static let all = (0..<200).compactMap { number in
        PeerAddress(try? SocketAddress(ipAddress: "192.0.2.\(number)", port: 1))
    }
}
