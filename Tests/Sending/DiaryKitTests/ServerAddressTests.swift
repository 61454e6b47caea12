import DiaryKit
import Foundation
import Testing

struct ServerAddressTests {
    @Test(arguments: [
        "http://192.168.1.7:8080/uploads", " https://pets.test-server.de/uploads\n", "HTTP://macbook.local/uploads",
        "https://myexample.com/", "https://example.pets.org/",
    ])
    func `an address of a server is accepted`(text: String) throws {
        #expect(try ServerAddress.url(text).host() != nil)
    }

    @Test(
        arguments: [
            ("", .missing), ("  ", .missing), ("macbook.local/uploads", .invalid("macbook.local/uploads")),
            ("file:///etc/passwd", .invalid("file:///etc/passwd")), ("http://", .invalid("http://")),
            ("ftp://a.de/", .invalid("ftp://a.de/")),
            (ServerAddress.example, .placeholder(ServerAddress.example)),
            ("http://YOUR-MAC.local/", .placeholder("http://YOUR-MAC.local/")),
            ("https://example.com/uploads", .placeholder("https://example.com/uploads")),
            ("https://pets.example.org/", .placeholder("https://pets.example.org/")),
            ("https://pets.example", .placeholder("https://pets.example")),
        ] as [(String, ServerAddress.Problem)])
    func `an example is not an address`(text: String, problem: ServerAddress.Problem) {
        #expect(throws: problem) { try ServerAddress.url(text) }
        #expect(problem.errorDescription?.contains("%") == false)
    }
}
