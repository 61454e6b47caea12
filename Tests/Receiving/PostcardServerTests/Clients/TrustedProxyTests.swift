import NIOCore
import Testing

@testable import PostcardReception
@testable import PostcardServer

struct TrustedProxyTests {
    static let ranges: [(range: String, address: String, isInside: Bool)] = [
        ("127.0.0.1", "127.0.0.1", true), ("127.0.0.1", "127.0.0.2", false), ("127.0.0.1/32", "127.0.0.1", true),
        ("10.0.0.0/8", "10.255.255.255", true), ("10.0.0.0/8", "11.0.0.0", false),
        ("10.1.2.3/8", "10.9.9.9", true), ("192.0.2.128/25", "192.0.2.128", true),
        ("192.0.2.128/25", "192.0.2.127", false), ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "::1", false),
        ("::1", "::1", true), ("::1", "::2", false), ("2001:db8::/32", "2001:db8:ffff::1", true),
        ("2001:db8::/32", "2001:db9::1", false), ("2001:db8::/127", "2001:db8::1", true),
        ("2001:db8::/127", "2001:db8::2", false), ("::/0", "2001:db8::1", true), ("::/0", "192.0.2.1", false),
        // An IPv4 address is the same however it is written.
        ("10.0.0.0/8", "::ffff:10.0.0.1", true), ("::ffff:10.0.0.0/104", "10.0.0.1", true),
        ("::ffff:10.0.0.0/104", "11.0.0.1", false), ("::ffff:10.0.0.1", "10.0.0.1", true),
    ]

    @Test(arguments: ranges)
    func `a range has the addresses with the same first bits`(range: String, address: String, isInside: Bool) throws {
        let proxy = try #require(TrustedProxy(range))
        #expect(proxy.contains(.address(try #require(IPAddress(text: address)))) == isInside)
        #expect(!proxy.contains(.unixSocket) && !proxy.contains(.gone))
    }

    @Test(arguments: [
        "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "10.0.0.0/0008", "10.0.0",
        "10.0.0.0.0", "10.0.0.256", "::/129", "::1%lo", "[::1]", "localhost", "unix:", " 10.0.0.1", "10.0.0.1 ",
        "::ffff:10.0.0.0/95", "10.0.0.1:80", "1",
    ])
    func `a text that is no address and no range is refused`(text: String) {
        #expect(TrustedProxy(text) == nil)
    }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:DB8:0:0::1", "2001:db8::1"),
        ("::", "::"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"), ("::1", "::1"),
    ])
    func `an address is written as people know it`(text: String, expected: String) {
        #expect(IPAddress(text: text)?.description == expected)
    }

    @Test func `the peers of a Unix socket are trusted if they are named`() throws {
        #expect(TrustedProxy.unixSocket.contains(.unixSocket))
        #expect(!TrustedProxy.unixSocket.contains(.address(try #require(IPAddress(text: "127.0.0.1")))))
        #expect(!TrustedProxy.unixSocket.contains(.gone))
    }
}
