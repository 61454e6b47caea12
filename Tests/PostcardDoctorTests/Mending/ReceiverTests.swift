import Foundation
import PostcardDoctor
import PostcardForm
import Testing

@Suite("Mended requests, to servers that others wrote")
struct ReceiverTests {
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
        let answer: Received?

        private enum CodingKeys: CodingKey { case file, status, answer }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            file = try container.decode(String.self, forKey: .file)
            status = try container.decodeIfPresent(Int.self, forKey: .status)
            answer = try? container.decode(Received.self, forKey: .answer)
        }
    }

    @Test("Every body whose mend is certain is accepted, and read as it was meant", arguments: ["go", "php", "python"])
    func accepted(receiver: String) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "postcard-mended-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let requests = folder.appending(path: "requests")
        try FileManager.default.createDirectory(at: requests, withIntermediateDirectories: true)
        let cases = MenderTests.certain
        for (index, request) in cases.enumerated() {
            try Data(MenderTests.mended(request.request.bytes)).write(
                to: requests.appending(path: String(1000 + index)))
        }
        let server = try RunningReceiver(receiver, folder: folder.appending(path: "server"))
        defer { server.stop() }
        let posted = try server.post(requests)
        #expect(posted.count == cases.count)
        for line in posted {
            let answer = try JSONDecoder().decode(Posted.self, from: Data(line.utf8))
            let request = cases[(Int(answer.file) ?? 1000) - 1000]
            #expect(answer.status == 200, "\(request.name): \(line)")
            guard let received = answer.answer else { continue }
            expect(received, from: receiver, of: request)
        }
    }

    /// Fields and files by themselves, because PHP does not tell their common order.
    private func expect(_ received: Received, from receiver: String, of request: BrokenRequest) {
        let explanation = BrokenRequestTests.explanation(of: MenderTests.mended(request.request.bytes))
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

    /// A name without what servers write in their own ways: escaped quotes, and PHP's underscores.
    private static func plain(_ name: String) -> String {
        name.replacing("%22", with: "\"").replacing(" ", with: "_").replacing(".", with: "_")
    }
}

/// A receiver of `Tests/Receivers`, running.
private struct RunningReceiver {
    private let process: Process
    private let port: String
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Receivers").standardized

    struct NotStarted: Error {}

    init(_ name: String, folder: URL) throws {
        process = Process()
        process.executableURL = Self.folder.appending(path: "start")
        process.arguments = [name, folder.path]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        var line: [UInt8] = []
        while let byte = try output.fileHandleForReading.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") {
            line.append(byte)
        }
        guard let colon = line.lastIndex(of: UInt8(ascii: ":")) else { throw NotStarted() }
        port = String(decoding: line[(colon + 1)...], as: UTF8.self)
    }

    /// Posts every file of a folder. Gives the answers, one line each.
    func post(_ requests: URL) throws -> [String] {
        let post = Process()
        post.executableURL = Self.folder.appending(path: "post")
        post.arguments = [port, requests.path]
        let output = Pipe()
        post.standardOutput = output
        try post.run()
        let answers = try output.fileHandleForReading.readToEnd() ?? Data()
        post.waitUntilExit()
        return String(decoding: answers, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
    }
}
