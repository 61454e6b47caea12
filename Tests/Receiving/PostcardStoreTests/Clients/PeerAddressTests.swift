import NIOCore
import Testing

@testable import PostcardStore

struct PeerAddressTests {
    static let pairs: [(first: String, second: String, isSame: Bool)] = [
        ("192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.2", false),
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true), ("2001:db8::1", "2001:db8:0:1::1", false),
        ("::ffff:192.0.2.1", "192.0.2.1", true), ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
        ("::1", "::ffff:0.0.0.1", false), ("0.0.0.0", "::", false),
    ]

    @Test(arguments: pairs)
    func `a client is an IPv4 address or an IPv6 network of 64 bits`(
        first: String, second: String, isSame: Bool
    ) throws {
        let addresses = try [first, second].map { text in
            try #require(PeerAddress(try SocketAddress(ipAddress: text, port: 1)))
        }
        #expect((addresses[0] == addresses[1]) == isSame)
        #expect(!addresses.contains(.unknown))
    }

    @Test func `a Unix socket identifies no client`() throws {
        #expect(PeerAddress(try SocketAddress(unixDomainSocketPath: "/tmp/socket")) == nil)
        #expect(PeerAddress(nil) == nil)
    }
}
