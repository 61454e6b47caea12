import Foundation
import PostcardDoctor
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("Fixed requests, sent to servers that others wrote", .timeLimit(.minutes(10)))
struct ReceiverTests {
    private static let receivers = Repository.url("Tests/Receivers")

    /// What a server says it received.
    private struct Received: Decodable {
        let fields: [Field]
        let files: [File]

        struct Field: Decodable {
            let name: String
            let value: String
        }

        struct File: Decodable {
            let name: String
            let size: Int64?
            let sha256: String?
        }
    }

    private struct Posted: Decodable {
        let file: String
        let status: Int?
        let response: Received?

        private enum CodingKeys: CodingKey { case file, status, response }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            file = try container.decode(String.self, forKey: .file)
            status = try container.decodeIfPresent(Int.self, forKey: .status)
            response = try? container.decode(Received.self, forKey: .response)
        }
    }

    @Test(arguments: ["go", "php", "python"])
    func `every body whose fix is certain is accepted, and read as it was meant`(receiver: String) async throws {
        let folder = try TemporaryFolder()
        let requests = folder.url.appending(path: "requests")
        try FileManager.default.createDirectory(at: requests, withIntermediateDirectories: true)
        let cases = RequestFixerTests.certain
        for (index, request) in cases.enumerated() {
            try Data(RequestFixerTests.fixed(request.request.bytes)).write(
                to: requests.appending(path: String(1000 + index)))
        }
        let server = try await RunningServer(
            [receiver, folder.path + "/server"], of: Self.receivers.appending(path: "start"))
        let port = try #require(server.address.split(separator: ":").last.map(String.init))
        let posted = try await Program.run(Self.receivers.appending(path: "post").path, [port, requests.path])
        #expect(posted.status == 0, "\(posted.messages)")
        let lines = posted.text.split(separator: "\n")
        #expect(lines.count == cases.count)
        for line in lines {
            let entry = try JSONDecoder().decode(Posted.self, from: Data(line.utf8))
            let request = cases[(Int(entry.file) ?? 1000) - 1000]
            #expect(entry.status == 200, "\(request.name): \(line)")
            guard let received = entry.response else { continue }
            expect(received, from: receiver, of: request)
        }
        server.kill()
    }

    /// Fields and files by themselves, because PHP does not tell their common order.
    private func expect(_ received: Received, from receiver: String, of request: BrokenRequest) {
        let explanation = BrokenRequestTests.explanation(of: RequestFixerTests.fixed(request.request.bytes))
        let files = explanation.parts.filter { $0.filename != nil && $0.filename != "" }
        #expect(received.files.map(\.size) == files.map(\.size), "\(request.name)")
        #expect(received.files.map(\.sha256) == files.map(\.sha256), "\(request.name)")
        #expect(
            received.files.map { Self.plain($0.name) } == files.map { Self.plain($0.name) }, "\(request.name)")
        let fields = explanation.parts.filter { $0.filename == nil }
        #expect(received.fields.map { Int64($0.value.utf8.count) } == fields.map(\.size), "\(request.name)")
        #expect(
            received.fields.map { Self.plain($0.name) } == fields.map { Self.plain($0.name) }, "\(request.name)")
    }

    /// A name without what servers write in their own ways: escaped quotes and backslashes, and PHP's underscores.
    private static func plain(_ name: String) -> String {
        name.replacing("%22", with: "\"").replacing(#"\\"#, with: #"\"#).replacing(" ", with: "_")
            .replacing(".", with: "_")
    }
}
