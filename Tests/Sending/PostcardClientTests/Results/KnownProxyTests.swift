import Foundation
import HTTPTypes
import Testing

@testable import PostcardClient

@Suite struct KnownProxyTests {
    /// A response in place of the server's.
    struct Page: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let status: Int
        var server: String?
        var type: String? = "text/html"
        let body: String
        /// What the error's message must say.
        let words: [String]
    }

    static let pages = [
        Page(
            testDescription: "nginx 1.22", status: 413, server: "nginx/1.22.1",
            body: "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n"
                + "<center><h1>413 Request Entity Too Large</h1></center>\r\n<hr><center>nginx/1.22.1</center>\r\n"
                + "</body>\r\n</html>\r\n",
            words: ["413 Content Too Large: Request Entity Too Large. ", "one of nginx,", "client_max_body_size"]),
        Page(
            testDescription: "nginx without its version", status: 502, server: "nginx",
            body: "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1>"
                + "</center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n",
            words: ["502 Bad Gateway. ", "one of nginx,"]),
        Page(
            testDescription: "Apache 2.4", status: 413, server: "Apache/2.4.66 (Debian)",
            body: #"<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">"#
                + "\n<html><head>\n<title>413 Request Entity Too Large</title>\n</head><body>\n"
                + "<h1>Request Entity Too Large</h1>\n<hr>\n<address>Apache/2.4.66 (Debian) Server at a.example Port 80"
                + "</address>\n</body></html>\n",
            words: ["one of Apache,", "LimitRequestBody"]),
        Page(
            testDescription: "HAProxy 2.6, which names itself nowhere", status: 503,
            body: "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n"
                + "</body></html>\n",
            words: ["503 Service Unavailable. ", "one of HAProxy,"]),
        Page(
            testDescription: "HAProxy with a rule on sizes", status: 413,
            body: "<html><body><h1>413 Payload Too Large</h1>\nThe request entity exceeds the maximum allowed.\n"
                + "</body></html>\n",
            words: ["one of HAProxy,", "req.body_size"]),
        Page(
            testDescription: "Varnish 7", status: 503, server: "Varnish",
            body: "<!DOCTYPE html>\n<html>\n  <head>\n    <title>503 Backend fetch failed</title>\n  </head>\n"
                + "  <body>\n"
                + "    <h1>Error 503 Backend fetch failed</h1>\n    <h3>Guru Meditation:</h3>\n    <p>XID: 5</p>\n"
                + "    <hr>\n    <p>Varnish cache server</p>\n  </body>\n</html>\n",
            words: ["503 Service Unavailable: Backend fetch failed. ", "one of Varnish,"]),
        Page(
            testDescription: "Caddy, whose responses are empty", status: 413, server: "Caddy", type: nil, body: "",
            words: ["one of Caddy,", "request_body { max_size }"]),
        Page(
            testDescription: "lighttpd 1.4", status: 413, server: "lighttpd/1.4.69",
            body: #"<?xml version="1.0" encoding="iso-8859-1"?>"#
                + "\n<html><head><title>413 Payload Too Large</title></head><body><h1>413 Payload Too Large</h1></body>"
                + "</html>\n",
            words: ["one of lighttpd,", "server.max-request-size"]),
    ]

    private static func error(
        _ status: Int, _ server: String?, _ type: String?, _ body: String
    ) throws -> UploadError {
        var fields = HTTPFields()
        fields[.server] = server
        fields[.contentType] = type
        let response = UploadResponse(
            status: .init(code: status), headerFields: fields, body: Data(body.utf8))
        return .refused(response, by: try #require(URL(string: "http://a.example/")))
    }

    @Test(arguments: pages)
    func `a proxy's page gives the status, the proxy and its setting`(page: Page) throws {
        let error = try Self.error(page.status, page.server, page.type, page.body)
        #expect(error.message.hasPrefix("a.example:80 responded with \(page.status) "))
        for words in page.words { #expect(error.message.contains(words), "\(error.message)") }
        if page.status == 413, let setting = page.words.last { #expect(error.advice?.contains(setting) == true) }
    }

    @Test(arguments: [
        ("nginx", "application/problem+json", #"{"detail": "At most 10 MB."}"#, "At most 10 MB."),
        ("nginx/1.22.1", "application/json", #"{"message": "too large"}"#, "too large"),
        ("nginx", "text/html; charset=utf-8", "<html><title>Too many pets</title></html>", "Too many pets"),
        ("nginx", "text/plain", "too many pets", "too many pets"), (nil, "text/html", "<title>413</title>", "413"),
    ])
    func `the server's own words are not those of a proxy, whatever the Server field`(
        server: String?, type: String, body: String, reason: String
    ) throws {
        let error = try Self.error(413, server, type, body)
        #expect(error.message == "a.example:80 responded with 413 Content Too Large: \(reason)")
    }

    @Test func `the marks in the table are in lower case, as they are compared`() {
        for proxy in KnownProxy.all {
            #expect(proxy.product == proxy.product.lowercased() && proxy.marks == proxy.marks.map { $0.lowercased() })
        }
    }
}
