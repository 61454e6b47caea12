import Foundation
import PostcardTestSupport
import Testing

@testable import postcard

/// The options of curl that say how a server is reached.
@Suite(.timeLimit(.minutes(10)))
struct TransportOptionsTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Makes a certificate that no one trusts.
    private func certificate(_ name: String) async throws -> (certificate: String, key: String) {
        let (certificate, key) = ("\(folder.path)/\(name).pem", "\(folder.path)/\(name).key")
        let ending = try await Program.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out",
                certificate,
            ])
        try #require(ending.status == 0, "\(ending.messages)")
        return (certificate, key)
    }

    @Test func `a certificate is accepted if its file is named, or any certificate is`() async throws {
        let (certificate, key) = try await certificate("server")
        let other = try await self.certificate("other")
        let server = try await RunningServer([
            "serve", "--port", "0", "--directory", folder.path, "--certificate", certificate, "--private-key", key,
        ])
        let url = server.address.replacing("127.0.0.1", with: "localhost") + "/uploads"
        let rows: [(options: [String], environment: [String], status: Int32)] = [
            ([], [], 69), (["--cacert", certificate], [], 0), (["--cacert", other.certificate], [], 69),
            (["-k"], [], 0), (["--insecure", "--http1.1"], [], 0), ([], ["SSL_CERT_FILE=\(certificate)"], 0),
            (["--cacert", "/no/such/file"], [], 66), (["--cacert", key], [], 66),
            (["-k", "--cert", other.certificate, "--key", other.key], [], 0),
            (["-k", "--cert", other.certificate], [], 66),
        ]
        let plain = try await RunningServer(["serve", "--port", "0", "--directory", folder.path + "/plain"])
        let ending = try await Program.run(
            ["send", plain.address + "/uploads", "-F", "a=b"], environment: ["SSL_CERT_FILE": "/no/such/file"])
        #expect(ending.status == 0, "\(ending.messages)")
        let missing = try await Program.run(
            ["send", url, "-F", "a=b"], environment: ["SSL_CERT_FILE": "/no/such/file"])
        #expect(missing.status == 66, "\(missing.messages)")
        for row in rows {
            let ending = try await Program.run(
                "env", row.environment + [Program.url.path, "send", url, "-F", "a=b"] + row.options)
            #expect(ending.status == row.status, "\(row): \(ending.messages)")
        }
    }

    @Test func `a name and a password become the authorization`() async throws {
        let ending = try await Program.run([
            "send", "http://example.com/", "-F", "a=b", "--dry-run", "-u", "me:secret:1",
        ])
        #expect(ending.text.contains("Authorization: Basic bWU6c2VjcmV0OjE=\r\n"), "\(ending.messages)")
    }

    @Test func `a host is looked up where the option says`() async throws {
        let server = try await RunningServer([
            "serve", "--port", "0", "--directory", folder.path, "--allow-host", "uploads.test",
        ])
        let port = try #require(URL(string: server.address)?.port)
        let arguments = ["send", "http://uploads.test:\(port)/uploads", "-F", "a=b", "--resolve"]
        let ending = try await Program.run(arguments + ["uploads.test:\(port):127.0.0.1"])
        #expect(ending.status == 0, "\(ending.messages)")
        let other = try await Program.run(arguments + ["uploads.test:1:127.0.0.1"])
        #expect(other.status == 69, "\(other.messages)")
    }

    /// Redirects each form to the URL of its first argument.
    private static let redirector = """
        import http.server, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.wfile.write(b"HTTP/1.1 307 -\\r\\nLocation: %s\\r\\nContent-Length: 0\\r\\n\\r\\n" % sys.argv[1].encode())
            def log_message(self, *_): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print("http://127.0.0.1:%d" % server.server_address[1], flush=True)
        server.serve_forever()
        """

    @Test func `a host that a redirect leads to is looked up there too`() async throws {
        let server = try await RunningServer([
            "serve", "--port", "0", "--directory", folder.path, "--allow-host", "uploads.test",
        ])
        let port = try #require(URL(string: server.address)?.port)
        let target = "http://uploads.test:\(port)/uploads"
        let redirector = try await RunningServer(
            ["python3", "-c", Self.redirector, target], of: URL(filePath: "/usr/bin/env"))
        let ending = try await Program.run([
            "send", redirector.address, "-F", "a=b", "--resolve", "uploads.test:\(port):127.0.0.1",
        ])
        #expect(ending.status == 0, "\(ending.messages)")
    }

    /// A proxy that prints what it is asked to connect to.
    private static let proxy = """
        import socket, threading
        def copy(source, target):
            try:
                while bytes := source.recv(65536): target.sendall(bytes)
                target.shutdown(socket.SHUT_WR)
            except OSError: pass
        listener = socket.create_server(("127.0.0.1", 0))
        print("http://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
        while True:
            client = listener.accept()[0]
            head = b""
            while not head.endswith(b"\\r\\n\\r\\n"): head += client.recv(1)
            method, target, _ = head.split(b"\\r\\n")[0].decode().split(" ")
            if method != "CONNECT" or b"Basic dTpw" not in head:
                client.sendall(b"HTTP/1.1 407 No\\r\\nContent-Length: 0\\r\\n\\r\\n")
                continue
            server = socket.create_connection(("127.0.0.1", int(target.rsplit(":", 1)[1])))
            client.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
            for pair in ((client, server), (server, client)): threading.Thread(target=copy, args=pair, daemon=True).start()
        """

    @Test func `a proxy is used if it is named or in the environment`() async throws {
        let proxy = try await RunningServer(["python3", "-c", Self.proxy], of: URL(filePath: "/usr/bin/env"))
        let server = try await RunningServer([
            "serve", "--port", "0", "--directory", folder.path, "--allow-host", "uploads.test",
        ])
        let port = try #require(URL(string: server.address)?.port)
        let address = proxy.address.replacing("http://", with: "http://u:p@")
        let rows: [(options: [String], environment: [String], status: Int32)] = [
            (["--proxy", address], [], 0), (["-x", address.replacing("http://", with: "")], [], 0),
            ([], ["http_proxy=\(address)"], 0), ([], ["ALL_PROXY=\(address)"], 0), ([], [], 69),
            ([], ["http_proxy=\(address)", "no_proxy=localhost,test"], 69), ([], ["HTTP_PROXY=\(address)"], 69),
            (["--proxy", ""], ["http_proxy=\(address)"], 69), (["--proxy", proxy.address], [], 69),
        ]
        for row in rows {
            // Only the proxy can find the host.
            let ending = try await Program.run(
                "env",
                row.environment + [Program.url.path, "send", "http://uploads.test:\(port)/uploads", "-F", "a=b"]
                    + row.options)
            #expect(ending.status == row.status, "\(row): \(ending.messages)")
        }
    }

    @Test(
        arguments: [
            ("http://a.example/", ["http_proxy": "p:1"], "p:1"), ("https://a.example/", ["http_proxy": "p:1"], nil),
            ("https://a.example/", ["HTTPS_PROXY": "p:1", "no_proxy": ".example"], nil),
            ("https://a.example/", ["https_proxy": "", "ALL_PROXY": "q:1"], nil),
            ("https://a.example/", ["ALL_PROXY": "q:1", "NO_PROXY": "b.example, other"], "q:1"),
            ("https://ba.example/", ["ALL_PROXY": "q:1", "NO_PROXY": "a.example"], "q:1"),
            ("https://a.example/", ["ALL_PROXY": "q:1", "NO_PROXY": "*"], nil),
        ] as [(String, [String: String], String?)])
    func `the environment's proxies are read as curl reads them`(
        url: String, variables: [String: String], proxy: String?
    ) throws {
        #expect(ProxyEnvironment(variables).proxy(for: try #require(URL(string: url))) == proxy)
    }

    @Test(arguments: [
        (["--resolve", "a"], "host:port:address"), (["--resolve", "a:80:[]"], "no address"),
        (["--proxy", "http://127.0.0.1:70000"], "http://host:port"), (["--connect-timeout", "0"], "thousandth"),
        (["--key", "a"], "--cert FILE"), (["--proxy", "ftp://a"], "http or socks5"),
        (["-u", "me"], "-u name:password"),
        (["-u", "a:b", "-H", "Authorization: c"], "two authorizations"),
        (["--transport", "urlsession", "-k"], "URLSession has no --insecure"), (["--http1.1", "--http2"], "--http"),
    ])
    func `a wrong value is explained`(options: [String], word: String) async throws {
        let ending = try await Program.run(["send", "http://127.0.0.1:1/", "-F", "a=b"] + options)
        #expect(ending.status == 64)
        #expect(ending.messages.contains(word), "\(ending.messages)")
    }
}
