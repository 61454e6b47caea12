import Crypto
import Foundation
import PostcardForm
import PostcardSamples
import PostcardTestSupport
import Testing

@Suite("postcard send, to servers that others wrote", .timeLimit(.minutes(10)))
struct ReceiverTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Starts a receiver of `Tests/Receivers`.
    private func start(_ receiver: String) async throws -> RunningServer {
        let python = Repository.url(".build/receivers/bin/python").path
        try Tool.require(receiver == "python" ? python : receiver)
        return try await RunningServer(
            [receiver, folder.path], of: Repository.url("Tests/Receivers/start"))
    }

    private static let transports = ["async-http", "urlsession"]

    private func arguments(for pictures: [URL], to address: String, transport: String) -> [String] {
        ["send", address, "--transport", transport, "-F", "이름=초코", "-F", "message=안녕하세요,\r\n\"제주\"에서"]
            + pictures.enumerated().flatMap { ["-F", "picture\($0)=@\($1.path)"] }
    }

    @Test(  // This little server of Python's knows no chunked bodies.
        arguments: ["php", "python"], transports)
    func `every byte and every name arrives`(receiver: String, transport: String) async throws {
        let server = try await start(receiver)
        let pictures = try SamplePictures.all()
        let ending = try await Program.run(arguments(for: pictures, to: server.address, transport: transport))
        #expect(ending.status == 0, "\(ending.messages) \(ending.text)")
        let fields = try #require(try ending.json()["fields"] as? [[String: String]])
        #expect(
            fields == [
                ["name": "이름", "value": "초코"], ["name": "message", "value": "안녕하세요,\r\n\"제주\"에서"],
            ])
        let files = try #require(try ending.json()["files"] as? [[String: Any]])
        #expect(files.map { $0["name"] as? String } == pictures.indices.map { "picture\($0)" })
        #expect(files.map { $0["filename"] as? String } == pictures.map(\.lastPathComponent))
        #expect(files.map { $0["contentType"] as? String } == ["image/jpeg", "image/png", "image/jpeg"])
        #expect(
            try files.map { $0["sha256"] as? String }
                == pictures.map { SHA256.hash(data: try Data(contentsOf: $0)).hexadecimal })
    }

    @Test(arguments: transports)
    func `nginx keeps a body whose every part is what was sent`(transport: String) async throws {
        let server = try await start("nginx")
        let ending = try await Program.run(
            arguments(for: try SamplePictures.all(), to: server.address, transport: transport) + ["--json"])
        #expect(ending.status == 0, "\(ending.messages)")
        let headers = try #require(try ending.json()["headers"] as? [String: String])
        let path = try #require(try ending.json()["body"] as? String)
        let contentType = try #require(headers["received-content-type"])
        #expect(try Data(contentsOf: URL(filePath: path)).count == (try ending.json()["bytesSent"] as? Int))
        let explained = try await Program.run(["explain", "--json", "--content-type", contentType, path])
        #expect(explained.status == 0)
        let parts = try #require(try explained.json()["parts"] as? [[String: Any]])
        #expect(
            try parts.compactMap { $0["sha256"] as? String }.suffix(3)
                == SamplePictures.all().map { SHA256.hash(data: try Data(contentsOf: $0)).hexadecimal })
    }
}
