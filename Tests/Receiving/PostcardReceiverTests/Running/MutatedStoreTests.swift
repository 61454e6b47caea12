import Foundation
import NIOCore
import PostcardReceiver
import PostcardReceivingSupport
import PostcardTestSupport
import SystemPackage
import Testing

@testable import PostcardReception
@testable import PostcardServer

/// Whatever others do to the files of a store, the receiver starts, serves what they left alone, and goes on.
@Suite(.timeLimit(.minutes(60)))
struct MutatedStoreTests {
    private static let count =
        ProcessInfo.processInfo.environment["POSTCARD_STORE_MUTATIONS"].flatMap(UInt64.init) ?? 60
    /// So that several processes can share a large number of mutations.
    private static let firstSeed = ProcessInfo.processInfo.environment["POSTCARD_STORE_SEED"].flatMap(UInt64.init) ?? 1

    @Test func `a receiver goes on whatever happens to its files, and serves those that nobody has touched`()
        async throws
    {
        try await withTemporaryDirectory { directory in
            let original = try await StoreOriginal(in: directory)
            for seed in Self.firstSeed..<Self.firstSeed + Self.count {
                let copy = directory.appending("copy")
                // Folders of a store may be closed to their owner, and get their permissions last.
                let copying = try await Program.run("cp", ["-a", original.directory.string, copy.string])
                try #require(copying.status == 0, "\(copying.messages)")
                var vandal = Vandal(directory: copy, canary: directory.appending("canary"), seed: seed)
                for _ in 0..<Int.random(in: 1...4, using: &vandal.random) { vandal.act() }
                do {
                    try await original.check(copy, except: vandal.touched)
                } catch {
                    Issue.record("seed \(seed), \(vandal.actions): \(error)")
                }
                // What cannot be removed otherwise.
                try? FileManager.default.removeItem(atPath: copy.string)
                if FileManager.default.fileExists(atPath: copy.string) {
                    _ = try await Program.run("chmod", ["-R", "u+rwx", copy.string])
                    _ = try await Program.run("rm", ["-rf", copy.string])
                }
                try #require(!FileManager.default.fileExists(atPath: copy.string))
            }
        }
    }
}

/// A store with every kind of file, and what a client sees of it.
private struct StoreOriginal {
    let directory: FilePath
    /// What is served of each upload, by the paths.
    private var served: [String: [String: String]] = [:]
    private var unfinished: [ResumptionID] = []

    private static let secret = "a secret of another user"
    private static let form = UnfinishedForm(
        contentType: "multipart/form-data; boundary=b", key: UploadKey("text", scope: ""), length: nil)

    init(in directory: FilePath) async throws {
        let store = directory.appending("store")
        self.directory = store
        try Data(Self.secret.utf8).write(to: URL(filePath: directory.appending("canary").string))
        var served: [String: [String: String]] = [:]
        try await withReceiver(in: store) { receiver in
            let file = Form.fileHeader + "content" + "\r\n"
            let text =
                "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n" + String(repeating: "x", count: 70_000)
            let bodies = [
                Form.small, file + "--b--\r\n", file + file + "--b--\r\n", Form.fileHeader + Form.end,
                text + "\r\n" + file + file + "--b--\r\n",
            ]
            for (index, body) in bodies.enumerated() {
                let fields = index % 2 == 0 ? ["Idempotency-Key: \(index)"] : []
                let response = try await receiver.exchange(Form.request(body: body, fields: fields))
                let record = try UploadRecord(json: Data(response.body.utf8))
                for path in [record.url] + record.files.map(\.url) {
                    served[record.id.text, default: [:]][path] = try await Self.get(path, receiver).body
                }
            }
        }
        self.served = served
        let opened = try LocalUploadStore(directory: store)
        for index in 0..<4 {
            let id = ResumptionID.random()
            unfinished.append(id)
            let upload = try await opened.createUnfinishedUpload(
                id, of: Self.form, expires: Date(timeIntervalSinceNow: 86400))
            var appender = try await upload.makeAppender(isRevertible: false)
            try await appender.append(ByteBuffer(string: "--b\r\nContent-Dis"))
            try await appender.finish()
            _ = try await upload.durableProgress()
            if index > 1 {
                let response = FinalResponse(UploadProblem.malformedKey, length: appender.offset)
                try await upload.finish(with: response, options: UnfinishedUploadOptions())
            }
        }
    }

    private static func get(
        _ path: String, _ receiver: RunningReceiver, method: String = "GET", fields: [String] = []
    ) async throws -> RawResponse {
        let lines = ["\(method) \(path) HTTP/1.1", "Host: a", "Connection: close"] + fields
        return try await receiver.exchange(lines.joined(separator: "\r\n") + "\r\n\r\n")
    }

    /// Asks a receiver of a changed copy for everything.
    ///
    /// - Parameter touched: The uploads that were changed.
    func check(_ copy: FilePath, except touched: Set<String>) async throws {
        try await withReceiver(in: copy, { $0.keptFreeBytes = 0 }) { receiver in
            var failures: [String] = []
            func expect(_ isTrue: Bool, _ text: String) { if !isTrue { failures.append(text) } }

            let listing = try await Self.get("/uploads", receiver).body
            expect(try await Self.get("/health", receiver).status == 200, "/health")
            for (id, pages) in served {
                for (path, body) in pages {
                    let response = try await Self.get(path, receiver)
                    expect((200...599).contains(response.status), "no response at \(path)")
                    expect(!response.text.contains(Self.secret), "a secret at \(path)")
                    if !touched.contains(id) { expect(response.body == body, "another body at \(path)") }
                }
                if !touched.contains(id) { expect(listing.contains(id), "\(id) is not listed") }
            }
            for id in unfinished {
                let draft = "Upload-Draft-Interop-Version: 8"
                let patch = [
                    draft, "Upload-Offset: 16", "Upload-Complete: ?1", "Content-Type: application/partial-upload",
                    "Content-Length: 0",
                ]
                for (method, fields) in [("HEAD", [draft]), ("PATCH", patch), ("DELETE", [draft])] {
                    let response = try await Self.get(
                        "/uploads/resumable/\(id.text)", receiver, method: method, fields: fields)
                    expect((200...599).contains(response.status), "no response to \(method)")
                    expect(!response.text.contains(Self.secret), "a secret after \(method)")
                }
            }
            // A repetition of what may be damaged is an answer too.
            for fields in [["Idempotency-Key: 0"], []] {
                let response = try await receiver.exchange(Form.request(body: Form.small, fields: fields))
                expect(
                    response.status == 201 || !touched.isEmpty && response.status == 503, "\(response.status) to a form"
                )
            }
            expect(try await Self.get("/status", receiver).status == 200, "/status")
            if !failures.isEmpty { throw ProgramFailure(failures.joined(separator: ", ")) }
        }
    }
}

/// Changes files of a store at random.
private struct Vandal {
    let directory: FilePath
    let canary: FilePath
    var random: SeededGenerator
    /// The uploads whose files were changed.
    private(set) var touched: Set<String> = []
    private(set) var actions: [String] = []

    init(directory: FilePath, canary: FilePath, seed: UInt64) {
        self.directory = directory
        self.canary = canary
        random = SeededGenerator(seed: seed)
    }

    private static let contents = [
        "", "{}", "null", "[]", "\u{0}", #"{"fields":["#, String(repeating: "[", count: 100_000),
        String(repeating: "\u{0}", count: 100_000), #"{"fields":[],"files":[],"id":"","received":""}"#,
    ]
    private static let numbers = [
        "1e300", "-1e300", "-1", "99999", "9223372036854775807", "9223372036854775808", "1e-300", "0.5", "null",
        "\"x\"",
    ]

    mutating func act() {
        // Folders that the store itself makes anew are left.
        let names = (FileManager.default.enumerator(atPath: directory.string)?.allObjects as? [String] ?? []).sorted()
            .filter { ![".lock", ".incoming", ".unfinished", ".damaged"].contains($0) }
        guard let name = names.randomElement(using: &random) else { return }
        let path = directory.appending(name)
        let action = Int.random(in: 0..<14, using: &random)
        actions.append("\(action) \(name)")
        if let upload = name.split(separator: "/").first { touched.insert(String(upload)) }
        try? perform(action, path)
    }

    private mutating func perform(_ action: Int, _ path: FilePath) throws {
        let files = FileManager.default
        // An earlier action may have put a pipe there, and opening one waits for its other end.
        let type = try files.attributesOfItem(atPath: path.string)[.type] as? FileAttributeType
        if action < 7, type != .typeRegular { return }
        switch action {
        case 0, 1:
            let size = try path.stat().size
            let file = try FileDescriptor.open(path, .writeOnly)
            defer { try? file.close() }
            try file.resize(to: action == 0 ? Int64.random(in: 0...max(size, 1), using: &random) : 8 << 40)
        case 2, 3:
            var bytes = try Data(contentsOf: URL(filePath: path.string))
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                guard let index = bytes.indices.randomElement(using: &random) else { break }
                bytes[index] = UInt8.random(in: 0...255, using: &random)
            }
            try bytes.write(to: URL(filePath: path.string))
        case 4:
            try Data((Self.contents.randomElement(using: &random) ?? "").utf8).write(to: URL(filePath: path.string))
        case 5, 6:
            var text = try String(contentsOfFile: path.string, encoding: .utf8)
            let numbers = text.ranges(of: /:-?[0-9][0-9.e]*/)
            guard let range = numbers.randomElement(using: &random) else { return }
            text.replaceSubrange(range, with: ":" + (Self.numbers.randomElement(using: &random) ?? ""))
            try Data(text.utf8).write(to: URL(filePath: path.string))
        case 7:
            try files.removeItem(atPath: path.string)
        case 8:
            try files.removeItem(atPath: path.string)
            _ = mkfifo(path.string, 0o600)
        case 9:
            try files.removeItem(atPath: path.string)
            try files.createDirectory(atPath: path.appending("a").string, withIntermediateDirectories: true)
        case 10:
            try files.removeItem(atPath: path.string)
            try files.createSymbolicLink(atPath: path.string, withDestinationPath: canary.string)
        case 11:
            try files.removeItem(atPath: path.string)
            try files.linkItem(atPath: canary.string, toPath: path.string)
        case 12:
            try files.setAttributes([.posixPermissions: 0], ofItemAtPath: path.string)
        default:
            let names = [
                "zzzzzzzzzz0000000000000000", "7zzzzzzzzz0000000000000000", "0", "record.json", "key-", "answer.json",
            ]
            let name = names.randomElement(using: &random) ?? ""
            try files.moveItem(atPath: path.string, toPath: path.removingLastComponent().appending(name).string)
        }
    }
}
