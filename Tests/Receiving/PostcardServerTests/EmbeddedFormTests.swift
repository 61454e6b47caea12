import Foundation
import Hummingbird
import NIOCore
import PostcardForm
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10)))
struct EmbeddedFormTests {
    private struct Pet: Decodable, Sendable {
        var name: String
        var pictures: [FormFile]
    }

    private static func body(_ name: String?, _ sizes: Int...) -> String {
        var body = ""
        if let name { body += "--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\n\(name)\r\n" }
        for size in sizes {
            body += "--b\r\nContent-Disposition: form-data; name=\"pictures\"; filename=\"\(size)\"\r\n\r\n"
            body += String(repeating: "x", count: size) + "\r\n"
        }
        return body + "--b--\r\n"
    }

    private func withRouter(
        _ add: (Router<BasicRequestContext>) -> Void, _ body: (RunningReceiver) async throws -> Void
    ) async throws {
        let router = Router()
        router.add(middleware: ProblemMiddleware())
        add(router)
        try await withApplication(router: router, body)
    }

    /// Where files of a form lay while its request was handled.
    private final class Spooled: Sendable {
        let urls = Mutex<[URL]>([])

        func note(_ pet: Pet) {
            for picture in pet.pictures {
                if case .file(let url) = picture.content { urls.withLock { $0.append(url) } }
            }
        }

        func areGone() -> Bool {
            urls.withLock { urls in
                urls.allSatisfy { !FileManager.default.fileExists(atPath: $0.deletingLastPathComponent().path) }
            }
        }
    }

    @Test func `a handler reads parts as they arrive`() async throws {
        try await withRouter {
            $0.post("uploads") { request, _ in
                var lines: [String] = []
                for try await part in try request.form() {
                    var bytes = 0
                    for try await piece in part { bytes += piece.readableBytes }
                    lines.append("\(part.header.name) \(bytes)")
                }
                return lines.joined(separator: ", ")
            }
        } _: { receiver in
            let response = try await receiver.exchange(Form.request(body: Self.body("초코", 0, 3_000_000)))
            #expect(response.status == 200)
            #expect(response.body == "name 6, pictures 0, pictures 3000000")
            let broken = try await receiver.exchange(Form.request(body: Form.fileHeader + "cut"))
            #expect(broken.status == 400)
            #expect(broken.problem?.code == "truncated")
            let other = try await receiver.exchange(Form.request(body: "{}", contentType: "Content-Type: text/plain"))
            #expect(other.problem?.code == "not-form-data")
        }
    }

    @Test func `rules are checked while a handler reads`() async throws {
        let rules = try FormRules(json: Data(#"{"fields":{"name":{"atLeast":1}}}"#.utf8))
        try await withRouter {
            $0.post("uploads") { request, _ in
                for try await _ in try request.form(rules: rules) {}
                return "ok"
            }
        } _: { receiver in
            #expect(try await receiver.exchange(Form.request(body: Self.body("a"))).body == "ok")
            let unexpected = try await receiver.exchange(Form.request(body: Self.body("a", 3)))
            #expect(unexpected.problem?.code == "unexpected-file")
            let missing = try await receiver.exchange(Form.request(body: Self.body(nil)))
            #expect(missing.status == 422)
        }
    }

    @Test func `a client that waits for 100 Continue is asked when the handler reads`() async throws {
        try await withRouter {
            $0.post("uploads") { request, _ in try await request.decodeForm(Pet.self).name }
        } _: { receiver in
            let port = receiver.port
            let body = Self.body("초코")
            let response = try await onThread {
                let socket = try RawSocket(port: port)
                let fields = ["Expect: 100-continue", "Connection: close"]
                try socket.send(Form.head(contentLength: body.utf8.count, fields: fields))
                let asked = try socket.receive(until: "\r\n\r\n")
                try socket.send(body)
                return try RawResponse(Array(asked.utf8) + socket.receiveAll())
            }
            #expect(response.text.hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"), "\(response.text)")
            #expect(response.body == "초코")
        }
    }

    @Test func `large files lie on disk while the request lasts, and small ones in memory`() async throws {
        let spooled = Spooled()
        try await withRouter {
            $0.post("uploads") { request, _ in
                let pet = try await request.decodeForm(Pet.self)
                spooled.note(pet)
                #expect(!spooled.areGone())
                let sizes = try pet.pictures.map { try $0.data().count }
                return "\(pet.name) \(sizes)"
            }
        } _: { receiver in
            let response = try await receiver.exchange(Form.request(body: Self.body("초코", 10, 1_500_000, 0, 1_048_576)))
            #expect(response.body == "초코 [10, 1500000, 0, 1048576]")
            #expect(spooled.urls.withLock { $0.count } == 2)
            try await eventually { spooled.areGone() }
        }
    }

    @Test func `files are gone when the form breaks, the handler fails, or the client vanishes`() async throws {
        let spooled = Spooled()
        try await withRouter {
            $0.post("uploads") { request, _ -> String in
                spooled.note(try await request.decodeForm(Pet.self))
                throw CocoaError(.featureUnsupported)
            }
        } _: { receiver in
            let before = try Self.temporaryFolders()
            let failed = try await receiver.exchange(Form.request(body: Self.body("a", 2_000_000)))
            #expect(failed.status == 500)
            #expect(spooled.urls.withLock { $0.count } == 1)
            let broken = try await receiver.exchange(
                Form.request(body: String(Self.body("a", 2_000_000).dropLast(20))))
            #expect(broken.problem?.code == "truncated")
            let socket = try RawSocket(port: receiver.port)
            try await socket.send(
                Form.head(contentLength: 9_000_000) + Form.fileHeader + String(repeating: "x", count: 3_000_000))
            try await eventually { try Self.temporaryFolders() != before }
            socket.abort()
            try await eventually { try Self.temporaryFolders().subtracting(before).isEmpty }
            #expect(spooled.areGone())
        }
    }

    /// The folders of spooled files. Other tests have some too, but none that outlive this test's time limit.
    private static func temporaryFolders() throws -> Set<String> {
        let folder = FileManager.default.temporaryDirectory.path
        return Set(
            try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix("postcard-form-") })
    }

    @Test(arguments: [
        (nil, "missing"), (String(repeating: "n", count: 2000), "record-too-large"),
    ])
    func `a form that is not the value's is refused`(name: String?, code: String) async throws {
        var options = FormReadingOptions()
        options.maximumTextBytes = 1000
        try await withRouter { [options] in
            $0.post("uploads") { request, _ in try await request.decodeForm(Pet.self, options: options).name }
        } _: { receiver in
            let response = try await receiver.exchange(Form.request(body: Self.body(name, 1)))
            #expect((400..<500).contains(response.status))
            #expect(response.problem?.code == code)
        }
    }
}
