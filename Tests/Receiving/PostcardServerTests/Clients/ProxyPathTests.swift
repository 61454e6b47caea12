import HTTPTypes
import PostcardTestSupport
import Testing

@testable import PostcardReception
@testable import PostcardServer

struct ProxyPathTests {
    /// The proxies of all cases. The request comes from the proxy 10.0.0.2.
    private static let proxies = ["10.0.0.0/8", "fd00::/8"].compactMap { TrustedProxy($0) }
    private static let peer = "10.0.0.2"

    private static func client(_ lines: [(name: String, value: String)], from peer: String = peer) throws -> String? {
        var fields = HTTPFields()
        for (name, value) in lines {
            fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        let address = ConnectionPeer.address(try #require(IPAddress(text: peer)))
        return RequestClient(of: fields, from: address, trusting: proxies).address?.description
    }

    static let listed: [(value: String, client: String)] = [
        ("203.0.113.9", "203.0.113.9"),
        // The client wrote the first address.
        ("192.0.2.1, 203.0.113.9", "203.0.113.9"), ("10.0.0.7, 203.0.113.9", "203.0.113.9"),
        ("garbage, 203.0.113.9", "203.0.113.9"), ("\",203.0.113.9", "203.0.113.9"),
        ("203.0.113.9, 10.0.0.3", "203.0.113.9"), ("203.0.113.9,10.0.0.4,10.0.0.3", "203.0.113.9"),
        ("203.0.113.9, fd00::1", "203.0.113.9"), ("10.0.0.9, 10.0.0.3", "10.0.0.9"),
        // An element without an address ends the walk at the last address that is true.
        ("garbage, 10.0.0.3", "10.0.0.3"), ("203.0.113.9, garbage", peer), ("unknown", peer),
        ("203.0.113.9, unknown, 10.0.0.3", "10.0.0.3"), ("203.0.113.9 10.0.0.3", peer), ("\"203.0.113.9\"", peer),
        ("", peer), (" ", peer), (",", peer), ("203.0.113.9,, ,", "203.0.113.9"), ("\t203.0.113.9 ", "203.0.113.9"),
        ("2001:db8::1", "2001:db8::1"), ("[2001:db8::1]", "2001:db8::1"), ("[2001:db8::1]:443", "2001:db8::1"),
        ("203.0.113.9:4711", "203.0.113.9"), ("203.0.113.9:", peer), ("203.0.113.9:471100", peer),
        ("203.0.113.9:a", peer), ("[2001:db8::1", peer), ("[203.0.113.9]", peer), ("[]", peer),
        ("[2001:db8::1]x", peer),
        ("2001:db8::1%eth0", peer), ("203.0.113.009", peer), ("203.0.113", peer), ("::ffff:203.0.113.9", "203.0.113.9"),
        ("한국", peer),
    ]

    @Test(arguments: listed)
    func `the last address in X-Forwarded-For that is no proxy's is the client`(value: String, client: String) throws {
        #expect(try Self.client([("X-Forwarded-For", value)]) == client)
    }

    static let standard: [(value: String, client: String)] = [
        ("for=203.0.113.9", "203.0.113.9"), ("For=\"203.0.113.9\"", "203.0.113.9"),
        ("for=192.0.2.1, for=203.0.113.9", "203.0.113.9"), ("for=203.0.113.9, for=10.0.0.3", "203.0.113.9"),
        ("for=203.0.113.9;proto=https;by=10.0.0.3", "203.0.113.9"), ("proto=https;for=203.0.113.9", "203.0.113.9"),
        ("for=203.0.113.9; proto=https", "203.0.113.9"), ("for=203.0.113.9;", "203.0.113.9"),
        ("host=\"a,b;for=1.2.3.4\";for=203.0.113.9", "203.0.113.9"),
        ("host=\"a\\\"b\\\\\";for=203.0.113.9", "203.0.113.9"),
        ("for=203.0.113.9;host=\"a,b\\\"c\"", "203.0.113.9"), ("for=203.0.113.9;host=\"a,b\\\\\"", "203.0.113.9"),
        ("for=\"203.0.113.\\9\"", "203.0.113.9"),
        ("for=\"[2001:db8::1]\"", "2001:db8::1"), ("for=\"[2001:db8::1]:4711\"", "2001:db8::1"),
        ("for=\"203.0.113.9:4711\"", "203.0.113.9"), ("for=\"203.0.113.9:_hidden\"", "203.0.113.9"),
        ("for=\"[2001:db8::1]:_x.y-z\"", "2001:db8::1"),
        ("for=unknown", peer), ("for=_hidden", peer), ("for=\"_SEVKISEK\", for=10.0.0.3", "10.0.0.3"),
        ("for=\"unknown:80\", for=10.0.0.3", "10.0.0.3"), ("proto=https", peer), ("by=203.0.113.9", peer),
        ("for=203.0.113.9, by=10.0.0.3", peer), ("for=203.0.113.9;for=203.0.113.9", peer), ("203.0.113.9", peer),
        ("for=\"2001:db8::1\"", peer), ("for=\"203.0.113.9", peer), ("for=203.0.113.9\"", peer),
        ("for=\"203.0.113.9\"x", peer), ("for=\"203.0.113.9\\\"", peer), ("for", peer), ("=203.0.113.9", peer),
        ("fo r=203.0.113.9", peer), ("for =203.0.113.9", "203.0.113.9"), ("for=", peer), ("", peer), (", ,", peer),
        ("for=203.0.113.9 x", peer), ("for=203.0.113.9, ,", "203.0.113.9"),
        // What the client wrote in front does not change what the proxies added.
        ("for=\", for=203.0.113.9", "203.0.113.9"), ("for=\"\\, for=\"203.0.113.9\"", "203.0.113.9"),
        ("for=\"a, for=\"[2001:db8::1]\"", "2001:db8::1"), ("\\, for=\"203.0.113.9\"", "203.0.113.9"),
        ("for=\"1.2.3.4\", for=10.0.0.9\", for=10.0.0.3", "10.0.0.3"),
    ]

    @Test(arguments: standard)
    func `the last address in Forwarded that is no proxy's is the client`(value: String, client: String) throws {
        #expect(try Self.client([("Forwarded", value)]) == client)
    }

    static let together: [(lines: [(name: String, value: String)], client: String)] = [
        ([], peer),
        ([("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-For", "10.0.0.3")], "203.0.113.9"),
        ([("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-For", "203.0.113.9")], "203.0.113.9"),
        ([("Forwarded", "for=\"a"), ("forwarded", "for=203.0.113.9")], "203.0.113.9"),
        // A client cannot choose its address by the field that the proxy passes on.
        ([("X-Forwarded-For", "203.0.113.9"), ("Forwarded", "for=192.0.2.1")], peer),
        ([("Forwarded", "for=203.0.113.9"), ("X-Forwarded-For", "192.0.2.1")], peer),
        ([("Forwarded", "for=unknown"), ("X-Forwarded-For", "192.0.2.1")], peer),
        ([("Forwarded", "for=203.0.113.9"), ("X-Forwarded-For", "")], peer),
        ([("Forwarded", "for=203.0.113.9"), ("X-Forwarded-For", "192.0.2.1, 203.0.113.9")], "203.0.113.9"),
        ([("Forwarded", "for=203.0.113.9"), ("X-Forwarded-For", "203.0.113.9, 10.0.0.3")], "203.0.113.9"),
    ]

    @Test(arguments: together)
    func `lines of a field are one list, and two fields count only if they agree`(
        lines: [(name: String, value: String)], client: String
    ) throws {
        #expect(try Self.client(lines) == client)
    }

    @Test(arguments: ["192.0.2.7", "11.0.0.1", "::1"])
    func `fields from a peer that is not trusted change nothing`(peer: String) throws {
        #expect(try Self.client([("X-Forwarded-For", "203.0.113.9")], from: peer) == peer)
        #expect(try Self.client([("Forwarded", "for=203.0.113.9")], from: peer) == peer)
    }

    @Test func `a client of a Unix socket is known only through a trusted proxy`() throws {
        var fields = HTTPFields()
        fields[try #require(HTTPField.Name("X-Forwarded-For"))] = "203.0.113.9"
        func client(_ fields: HTTPFields, _ proxies: [TrustedProxy]) -> RequestClient {
            RequestClient(of: fields, from: .unixSocket, trusting: proxies)
        }
        #expect(client(fields, [.unixSocket]).address?.description == "203.0.113.9")
        #expect(client(fields, [.unixSocket]).peer != nil)
        #expect(client([:], [.unixSocket]).peer == nil)
        #expect(client(fields, Self.proxies).peer == nil)
        #expect(RequestClient(of: fields, from: .gone, trusting: [.unixSocket]).peer == .unknown)
    }

    @Test func `no more than 32 proxies in a row are believed`() throws {
        for (count, client) in [(31, "203.0.113.9"), (32, "10.0.1.0")] {
            let addresses = ["203.0.113.9"] + (0..<count).map { "10.0.1.\($0)" }
            #expect(try Self.client([("X-Forwarded-For", addresses.joined(separator: ","))]) == client)
        }
    }

    @Test func `whatever a client writes in front, the address that the proxy adds counts`() throws {
        let pieces = [",", ";", "=", "\"", "\\", " ", "for=", "[", "]", ":", "10.0.0.3", "203.0.113.7", "::1", "한"]
        for seed in 0..<2000 {
            var random = SeededGenerator(seed: UInt64(seed))
            let prefix = (0..<Int.random(in: 0...30, using: &random)).map { _ in
                pieces[Int.random(in: pieces.indices, using: &random)]
            }.joined()
            for (name, element) in [
                ("X-Forwarded-For", "192.0.2.5"), ("Forwarded", "for=192.0.2.5"), ("Forwarded", "for=\"192.0.2.5:1\""),
            ] {
                #expect(try Self.client([(name, prefix + ", " + element)]) == "192.0.2.5", "\(seed): \(prefix)")
            }
        }
    }

    @Test func `a client of many addresses and quotes takes no time that grows with their square`() throws {
        for text in ["\\", "\"", "\\\"", "for=\"a\",", ";", "=", "10.0.0.3,", " ", ","] {
            let value = String(repeating: text, count: 80_000 / text.utf8.count)
            for name in ["Forwarded", "X-Forwarded-For"] { _ = try Self.client([(name, value)]) }
        }
    }
}
