import Foundation
import PostcardSamples
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct SendVerificationTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// A server that answers 201 to any form, with a text of its own.
    private func server(respondingWith body: String) async throws -> RunningServer {
        let script = """
            import http.server, signal
            # Foundation starts it with SIGTERM blocked, by which it is to end.
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_POST(self):
                    self.rfile.read(int(self.headers["Content-Length"]))
                    self.send_response(201)
                    self.end_headers()
                    self.wfile.write('''\(body)'''.encode())
            server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
            print("http://127.0.0.1:%d" % server.server_port, flush=True)
            server.serve_forever()
            """
        return try await RunningServer(["python3", "-c", script], of: URL(filePath: "/usr/bin/env"))
    }

    @Test(arguments: ["async-http", "urlsession"])
    func `what the receiver has is compared with what was sent, at a limited rate too`(transport: String) async throws {
        let server = try await RunningServer(["serve", "--port", "0", "--directory", folder.path])
        let text = try folder.file("text.txt", "여러\n줄".utf8)
        var arguments = ["send", "\(server.address)/uploads", "--verify", "--limit-rate", "100M"]
        arguments += ["--transport", transport, "-F", "name=초코", "-F", "text=<\(text.path)", "-F", "log=@-"]
        for picture in try SamplePictures.all() { arguments += ["-F", "picture=@\(picture.path)"] }
        let ending = try await Program.run(arguments, input: Data("piped".utf8))
        #expect(ending.status == 0, "\(ending.messages)")
        #expect(ending.messages.isEmpty)
    }

    @Test func `a file that the server has otherwise is named, and the response is shown`() async throws {
        let response = #"{"fields":[],"files":[{"size":5,"sha256":"00"}]}"#
        let server = try await server(respondingWith: response)
        let file = try folder.file("a.txt", "12345".utf8)
        let ending = try await Program.run(["send", server.address, "--verify", "-F", "file=@\(file.path)"])
        #expect(ending.status == 1)
        #expect(ending.messages.contains("a.txt"), "\(ending.messages)")
        #expect(ending.text == response)
        let unverified = try await Program.run(["send", server.address, "-F", "file=@\(file.path)"])
        #expect(unverified.status == 0)
    }

    @Test func `a response that is no record cannot be verified`() async throws {
        let server = try await server(respondingWith: "thanks")
        let ending = try await Program.run(["send", server.address, "--verify", "-F", "a=b"])
        #expect(ending.status == 1)
        #expect(ending.messages.contains("has no digests of the fields and files"), "\(ending.messages)")
    }
}
