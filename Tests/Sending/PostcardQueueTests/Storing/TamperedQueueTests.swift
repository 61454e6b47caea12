import Foundation
import GRDB
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardTestSupport
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Queues whose directory someone has changed: damaged, restored from a backup, or with links to other places. Nothing
/// outside the directory may be read or removed.
@Suite(.timeLimit(.minutes(10))) struct TamperedQueueTests {
    private let folder: TemporaryFolder
    private let directory: URL
    /// A directory that represents everything outside the queue.
    private let canary: URL

    init() throws {
        folder = try TemporaryFolder()
        directory = folder.url.appending(path: "queue")
        canary = folder.url.appending(path: "canary")
        try FileManager.default.createDirectory(at: canary.appending(path: "inner"), withIntermediateDirectories: true)
        try Data("secret".utf8).write(to: canary.appending(path: "secret"))
        try Data("secret".utf8).write(to: canary.appending(path: "inner/0"))
    }

    private func expectCanaryUntouched() throws {
        for name in ["secret", "inner/0"] {
            #expect(try Data(contentsOf: canary.appending(path: name)) == Data("secret".utf8))
        }
    }

    private func execute(_ sql: String) throws {
        try DatabaseQueue(path: directory.appending(path: "queue.sqlite").path).write { try $0.execute(sql: sql) }
    }

    private func bodyFiles() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.appending(path: "bodies").path)
    }

    private func send(_ server: ReceivingServer) async throws -> [QueuedUpload] {
        let queue = UploadQueue(directory: directory)
        try await queue.run(UploadClient(transport: AsyncHTTPTransport()), options: QueueOptions.draining)
        let uploads = try await queue.uploads()
        // Uploads that cannot be read fail, and are cleared without being read.
        try await queue.cancelAll()
        try await queue.clear(.ended)
        return uploads
    }

    @Test(arguments: [
        "UPDATE upload SET uuid = '../../canary/secret' WHERE id = 1",
        "UPDATE upload SET uuid = '../canary' WHERE id = 1", "UPDATE upload SET uuid = '' WHERE id = 1",
        "UPDATE upload SET uuid = '/etc/passwd' WHERE id = 1", "UPDATE upload SET uuid = x'00ff' WHERE id = 1",
        "UPDATE upload SET url = 'file:///etc/passwd' WHERE id = 1", "UPDATE upload SET url = '' WHERE id = 1",
        "UPDATE upload SET state = 'strange', schedule = 0 WHERE id = 1",
        "UPDATE upload SET total = -1 WHERE id = 1", "UPDATE upload SET total = 'many' WHERE id = 1",
        "UPDATE upload SET attempts = 9223372036854775807 WHERE id = 1",
        "UPDATE upload SET due = 1e308, state = 'retrying', schedule = NULL WHERE id = 1",
        "UPDATE upload SET due = 'soon', schedule = 1, state = 'retrying' WHERE id = 1",
        "UPDATE upload SET method = 'P OST' WHERE id = 1", "UPDATE request SET headerFields = '{' WHERE id = 1",
        "UPDATE request SET parts = '[{\"name\":\"a\",\"offset\":-1,\"length\":9223372036854775807}]' WHERE id = 1",
        "UPDATE request SET parts = '[{\"name\":\"a\",\"offset\":5,\"length\":9223372036854775807}]' WHERE id = 1",
        "UPDATE request SET parts = '[{\"name\":\"a\",\"offset\":500,\"length\":5}]' WHERE id = 1",
        "UPDATE upload SET priority = 'high' WHERE id = 1", "UPDATE upload SET priority = x'ff' WHERE id = 1",
        "UPDATE upload SET total = 9223372036854775807, sent = -9223372036854775808 WHERE id = 1",
        "UPDATE request SET parts = zeroblob(80000000) WHERE id = 1",
        "UPDATE upload SET uuid = (SELECT lower(uuid) FROM upload WHERE id = 2) WHERE id = 1",
        "UPDATE upload SET uuid = (SELECT CAST(uuid AS BLOB) FROM upload WHERE id = 2) WHERE id = 1",
        "UPDATE queue SET isPaused = NULL IS NOT NULL", "UPDATE request SET headerFields = x'5bff' WHERE id = 1",
        "UPDATE request SET parts = '[]' WHERE id = 1", "DELETE FROM request WHERE id = 1", "DELETE FROM queue",
        "UPDATE queue SET done = 'x'", "UPDATE queue SET done = 9223372036854775807",
        "UPDATE upload SET finished = 'x'",
        "UPDATE upload SET expires = 'x', tag = 7 WHERE id = 1", "UPDATE upload SET expires = 1e308 WHERE id = 1",
        "INSERT INTO delivery VALUES (1, 'x')", "INSERT INTO delivery VALUES (1, -9223372036854775808)",
        "INSERT INTO delivery VALUES (1, 9223372036854775807)", "INSERT INTO delivery VALUES (1, x'00')",
        "INSERT INTO resumption VALUES (1, 'x', 7)", "INSERT INTO resumption VALUES (1, -9223372036854775808, x'00')",
        "INSERT INTO resumption VALUES (1, 0, zeroblob(70000000))",
    ])
    func `a changed row harms neither other files nor other uploads`(sql: String) async throws {
        let server = try await ReceivingServer()
        let queue = UploadQueue(directory: directory)
        for _ in 0..<2 { try await queue.enqueue(QueuedForms.form(), to: server.uploads) }
        try execute(sql)
        let uploads = try await send(server)
        #expect(uploads.last?.state.name == "done")
        try expectCanaryUntouched()
        #expect(try await !server.end().records.isEmpty)
    }

    @Test(arguments: [
        "total = 'many'", "priority = x'ff'", "notBefore = 'x'", "expires = 'x'", "tag = 7",
        "failures = x'00'", "started = 'x'", "enqueued = 'x'",
    ])
    func `a value of another type is damage, and is not taken for 0`(change: String) async throws {
        let server = try await ReceivingServer()
        let queue = UploadQueue(directory: directory)
        let id = try await queue.enqueue(QueuedForms.form(), to: server.uploads)
        try execute("UPDATE upload SET \(change) WHERE id = \(id)")
        try await queue.run(UploadClient(transport: AsyncHTTPTransport()), options: QueueOptions.draining)
        let state = try await DatabaseQueue(path: directory.appending(path: "queue.sqlite").path).read {
            try String.fetchOne($0, sql: "SELECT state || ' ' || reason FROM upload")
        }
        #expect(state?.hasPrefix("failed The queue's database is damaged") == true, "\(state ?? "")")
        #expect(try await server.end().records.isEmpty)
    }

    @Test(arguments: [1e308, Double.infinity, 1e19, -1e308])
    func `a sender survives a time that is no date`(expires: Double) async throws {
        let server = try await ReceivingServer()
        let queue = UploadQueue(directory: directory)
        let id = try await queue.enqueue(
            QueuedForms.form(), to: server.uploads,
            conditions: UploadConditions(expires: Date(timeIntervalSince1970: expires)))
        try await queue.pause(id)
        let other = try await queue.enqueue(QueuedForms.form(), to: server.uploads)
        let running = Task {
            try await queue.run(
                UploadClient(transport: AsyncHTTPTransport()), options: QueueOptions(pollInterval: nil))
        }
        for try await uploads in queue.updates() where uploads.contains(where: { $0.id == other && $0.state.isEnded }) {
            break
        }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        #expect(try await queue.upload(id)?.state.name == (expires < 0 ? "failed" : "paused"))
    }

    @Test(arguments: ["a link", "a link to a folder", "a second name", "a pipe", "a folder", "nothing"])
    func `a body that was replaced is not sent`(kind: String) async throws {
        let server = try await ReceivingServer()
        let queue = UploadQueue(directory: directory)
        for _ in 0..<2 { try await queue.enqueue(QueuedForms.form(), to: server.uploads) }
        // With the length of the body, so that it is not recognized by its length.
        let name = try #require(try bodyFiles().sorted().first)
        let body = directory.appending(path: "bodies/\(name)")
        let size = try Data(contentsOf: body).count
        let secret = canary.appending(path: "long")
        try Data(repeating: 65, count: size).write(to: secret)
        try FileManager.default.removeItem(at: body)
        switch kind {
        case "a link": try FileManager.default.createSymbolicLink(at: body, withDestinationURL: secret)
        case "a link to a folder": try FileManager.default.createSymbolicLink(at: body, withDestinationURL: canary)
        case "a second name": try FileManager.default.linkItem(at: secret, to: body)
        case "a pipe": #expect(mkfifo(body.path, 0o600) == 0)
        case "a folder": try FileManager.default.createDirectory(at: body, withIntermediateDirectories: false)
        default: break
        }
        // The upload is not retried: what is not a body now will not become one.
        try await queue.run(UploadClient(transport: AsyncHTTPTransport()), options: QueueOptions.draining)
        #expect(try await queue.uploads().map(\.state.name).sorted() == ["done", "failed"])
        #expect(try await queue.uploads().allSatisfy { $0.attempts == 1 })
        try await queue.cancelAll()
        try await queue.clear(.ended)
        #expect(try Data(contentsOf: secret).count == size)
        try expectCanaryUntouched()
        #expect(try await server.end().records.count == 1)
    }

    @Test func `only bodies that belong to no upload are removed, after a day`() async throws {
        let queue = UploadQueue(directory: directory)
        try await queue.open()
        let bodies = directory.appending(path: "bodies")
        let old = Date(timeIntervalSinceNow: -100_000)
        let names = [UUID().uuidString, "notes.txt", UUID().uuidString.lowercased(), "\(UUID().uuidString).jpg"]
        for name in names {
            let file = bodies.appending(path: name)
            try Data("x".utf8).write(to: file)
            try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: file.path)
        }
        let recent = UUID().uuidString
        try Data("x".utf8).write(to: bodies.appending(path: recent))
        let link = UUID().uuidString
        try FileManager.default.createSymbolicLink(at: bodies.appending(path: link), withDestinationURL: canary)
        try await queue.run(UploadClient(), options: QueueOptions.draining)
        #expect(try Set(bodyFiles()) == Set(names.dropFirst() + [recent, link]))
        try expectCanaryUntouched()
    }

    @Test func `other users cannot read a queue's files, even if they could before`() async throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        #expect(chmod(directory.path, 0o755) == 0)
        let address = try #require(URL(string: "http://127.0.0.1:1/"))
        do {
            let queue = UploadQueue(directory: directory)
            try await queue.enqueue(QueuedForms.form(), to: address)
            for name in ["queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm"] {
                #expect(chmod(directory.appending(path: name).path, 0o644) == 0)
            }
            let reopened = UploadQueue(directory: directory)
            try await reopened.enqueue(QueuedForms.form(), to: address)
            for path in try FileManager.default.subpathsOfDirectory(atPath: directory.path) {
                let attributes = try FileManager.default.attributesOfItem(atPath: directory.appending(path: path).path)
                let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
                #expect(attributes[.posixPermissions] as? Int == (isFolder ? 0o700 : 0o600), "\(path)")
            }
        }
        let attributes = try FileManager.default.attributesOfItem(atPath: directory.path)
        #expect(attributes[.posixPermissions] as? Int == 0o700)
    }

    @Test(arguments: [0o777, 0o770, 0o720, 0o702])
    func `a directory that other users can write to is refused`(permissions: Int) async throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        #expect(chmod(directory.path, mode_t(permissions)) == 0)
        let error = await #expect(throws: UploadQueueError.self) { try await UploadQueue(directory: directory).open() }
        #expect(error?.code == .unusableDirectory && error?.message.contains("chmod 700") == true)
    }

    @Test(arguments: ["queue.sqlite", "queue.sqlite-wal", "queue.lock", "bodies"])
    func `a link in the queue's directory is refused`(name: String) async throws {
        try await UploadQueue(directory: directory).open()
        let link = directory.appending(path: name)
        try? FileManager.default.removeItem(at: link)
        let target = name == "bodies" ? canary : canary.appending(path: "secret")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: target)
        await #expect(throws: UploadQueueError.self) {
            try await UploadQueue(directory: directory).run(UploadClient(), options: QueueOptions.draining)
        }
        try expectCanaryUntouched()
    }
}
