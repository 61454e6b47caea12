import Testing

@testable import PostcardConformance

@Suite struct ServerAddressTests {
    @Test(arguments: [
        ("http://example.com", "example.com", 80, "/", "example.com"),
        ("https://example.com/a/b?c=d", "example.com", 443, "/a/b?c=d", "example.com"),
        ("http://[::1]:8080/uploads", "::1", 8080, "/uploads", "[::1]:8080"),
        ("http://127.0.0.1:9/a%20b", "127.0.0.1", 9, "/a%20b", "127.0.0.1:9"),
    ])
    func `a URL is taken apart`(text: String, host: String, port: Int, target: String, authority: String) throws {
        let address = try #require(ServerAddress(text))
        #expect(address.host == host)
        #expect(address.port == port)
        #expect(address.target == target)
        #expect(address.authority == authority)
    }

    @Test(arguments: ["", "example.com", "ftp://example.com/", "http://", "/uploads"])
    func `other texts are no addresses`(text: String) {
        #expect(ServerAddress(text) == nil)
    }

    @Test(arguments: [
        ("/uploads/abc", "http://example.com:8080/uploads/abc"),
        ("abc", "http://example.com:8080/files/abc"),
        ("https://other.example/abc", "https://other.example/abc"),
        ("//other.example/abc", "http://other.example/abc"),
    ])
    func `a Location may be relative`(reference: String, expected: String) throws {
        let address = try #require(ServerAddress("http://example.com:8080/files/new"))
        #expect(address.resolving(reference)?.description == expected)
    }

    @Test func `another resource is beside one`() throws {
        let address = try #require(ServerAddress("http://example.com/uploads/ab7?a"))
        #expect(address.changedAtEnd?.description == "http://example.com/uploads/ab7?7")
        #expect(ServerAddress("http://example.com/uploads/ab7")?.changedAtEnd?.target == "/uploads/ab8")
        // The last letter is that of the host, and the last digit that of the port.
        for text in ["http://example.com/", "http://example.com:8080/", "http://127.0.0.1/"] {
            let address = try #require(ServerAddress(text))
            #expect(address.changedAtEnd == nil)
        }
    }
}
