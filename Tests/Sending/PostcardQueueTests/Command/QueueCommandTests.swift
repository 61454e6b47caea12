import Foundation
import GRDB
import PostcardTestSupport
import Testing

/// The commands of `postcard queue`.
@Suite(.timeLimit(.minutes(10))) struct QueueCommandTests {
    private struct Item: Decodable {
        struct Response: Decodable {
            let status: Int
            let body: String
        }
        let id: Int64
        let url: String
        let state: String
        let sent: Int64
        let total: Int64
        let attempts: Int
        let error: String?
        let response: Response?
    }

    private static func list(_ directory: String) async throws -> [Item] {
        let ending = try await Program.run(["queue", "list", "--json", "--queue", directory])
        #expect(ending.status == 0)
        return try JSONDecoder().decode([Item].self, from: ending.output)
    }

    @Test func `an upload is added, sent, listed and cleared`() async throws {
        let folder = try TemporaryFolder()
        let directory = folder.url.appending(path: "queue").path
        let server = try await ReceivingServer()
        let file = try folder.file("초코.jpg", size: 5000)
        let added = try await Program.run([
            "queue", "add", server.uploads.absoluteString, "-F", "name=초코", "-F", "image=@\(file.path)", "--queue",
            directory,
        ])
        #expect(added.status == 0 && added.text == "1\n")
        var item = try #require(try await Self.list(directory).first)
        #expect(item.state == "waiting" && item.sent == 0 && item.attempts == 0 && item.error == nil)
        let run = try await Program.run(["queue", "run", "--drain", "--queue", directory])
        #expect(run.status == 0 && run.text.hasPrefix("1  done") && run.text.hasSuffix("  201\n"))
        item = try #require(try await Self.list(directory).first)
        #expect(item.state == "done" && item.sent == item.total && item.attempts == 1)
        #expect(item.response?.status == 201 && item.response?.body.contains("초코.jpg") == true)
        #expect(try await Program.run(["queue", "retry", "1", "--queue", directory]).status == 64)
        #expect(try await Program.run(["queue", "clear", "--queue", directory]).status == 0)
        #expect(try await Self.list(directory).isEmpty)
        #expect(try await server.end().records.count == 1)
    }

    @Test(arguments: [
        (["add", "http://127.0.0.1:1/", "-F", "a=@/nowhere/a.jpg"], 66, "/nowhere/a.jpg"),
        (["add", "ftp://127.0.0.1/", "-F", "a=b"], 64, "ftp"),
        (["add", "http://127.0.0.1:1/", "-F", "a=b", "--not-before", "tomorrow"], 64, "tomorrow"),
        (["add", "http://127.0.0.1:1/", "-F", "a=b", "--unmetered"], 64, "Leave out --unmetered"),
        (["run", "--limit-rate", "0"], 64, "such as 500K"), (["run", "--concurrency", "0"], 64, "from 1 to 1000"),
        (["cancel", "7"], 64, "7"), (["pause", "7"], 64, "7"), (["resume", "7"], 64, "7"),
    ])
    func `commands that fail say why`(arguments: [String], status: Int32, message: String) async throws {
        let folder = try TemporaryFolder()
        let ending = try await Program.run(["queue"] + arguments + ["--queue", folder.path])
        #expect(ending.status == status)
        #expect(ending.messages.contains(message))
        #expect(try await Self.list(folder.path).isEmpty)
    }

    @Test func `paused uploads are not sent until they are resumed`() async throws {
        let folder = try TemporaryFolder()
        let location = ["--queue", folder.url.appending(path: "queue").path]
        let server = try await ReceivingServer()
        for name in ["first", "second"] {
            let options = ["queue", "add", server.uploads.absoluteString, "-F", "name=\(name)"]
            #expect(try await Program.run(options + location).status == 0)
        }
        #expect(try await Program.run(["queue", "pause", "1"] + location).status == 0)
        #expect(try await Program.run(["queue", "pause"] + location).status == 0)
        let run = try await Program.run(["queue", "run", "--drain"] + location)
        #expect(run.status == 0 && run.output.isEmpty && run.messages.contains("postcard queue resume"))
        #expect(try await Self.list(location[1]).map(\.state) == ["paused", "waiting"])
        #expect(try await Program.run(["queue", "list"] + location).messages.contains("postcard queue resume"))
        #expect(try await Program.run(["queue", "resume"] + location).status == 0)
        #expect(try await Program.run(["queue", "run", "--drain"] + location).status == 0)
        #expect(try await Self.list(location[1]).map(\.state) == ["paused", "done"])
        #expect(try await Program.run(["queue", "resume", "1"] + location).status == 0)
        #expect(try await Program.run(["queue", "run", "--drain"] + location).status == 0)
        #expect(try await Self.list(location[1]).map(\.state) == ["done", "done"])
        #expect(try await server.end().records.count == 2)
    }

    @Test func `a drained queue says what failed, and what waits for a date`() async throws {
        let folder = try TemporaryFolder()
        let location = ["--queue", folder.url.appending(path: "queue").path]
        let server = try await ReceivingServer()
        let nowhere = server.url.absoluteString + "/nowhere"
        let date = "2999-12-24T18:00:00Z"
        for arguments in [
            [server.uploads.absoluteString], [nowhere], [server.uploads.absoluteString, "--not-before", date],
        ] {
            #expect(try await Program.run(["queue", "add", "-F", "a=b"] + arguments + location).status == 0)
        }
        let run = try await Program.run(["queue", "run", "--drain", "--limit-rate", "1M"] + location)
        #expect(run.status == 1)
        let lines = run.text.split(separator: "\n").sorted()
        #expect(lines.count == 2 && lines[0].hasPrefix("1  done") && lines[1].hasPrefix("2  failed"))
        #expect(lines.last?.contains("404") == true)
        #expect(run.messages.hasPrefix("3  waiting") && run.messages.contains("not before \(date)"))
        let failed = try #require(try await Self.list(location[1]).first { $0.state == "failed" })
        #expect(failed.response?.status == 404 && failed.response?.body.contains("not-found") == true)
        #expect(try await Program.run(["queue", "run", "--drain"] + location).status == 0)
    }

    @Test func `a drained queue ends when all that is left waits, and says for what`() async throws {
        let folder = try TemporaryFolder()
        let location = ["--queue", folder.url.appending(path: "queue").path]
        for url in ["http://127.0.0.1:1/", "http://no-such.invalid/"] {
            #expect(try await Program.run(["queue", "add", "-F", "a=b", url] + location).status == 0)
        }
        let run = try await Program.run(["queue", "run", "--drain"] + location)
        #expect(run.status == 1 && run.output.isEmpty, "\(run.messages)")
        let lines = run.messages.split(separator: "\n")
        #expect(lines.count == 2 && lines.allSatisfy { $0.contains("retrying  ") && $0.contains("next attempt at ") })
        // With a number of attempts they are all made.
        let all = try await Program.run(
            ["queue", "run", "--drain", "--retries", "2", "--max-delay", "0.05"] + location)
        #expect(all.status == 1 && all.text.split(separator: "\n").allSatisfy { $0.contains("failed") }, "\(all.text)")
        #expect(try await Self.list(location[1]).allSatisfy { $0.state == "failed" })
    }

    @Test(arguments: [false, true])
    func `a cancelled upload leaves nothing on disk and on the server`(isSending: Bool) async throws {
        let folder = try TemporaryFolder()
        let directory = folder.url.appending(path: "queue")
        let location = ["--queue", directory.path]
        let received = folder.url.appending(path: "received")
        let server = try await RunningServer([
            "serve", "--port", "0", "--directory", received.path, "--idle-timeout", "600", "--minimum-rate", "0",
        ])
        let file = try folder.file("a.jpg", size: 6_000_000)
        let added = try await Program.run(
            ["queue", "add", server.address + "/uploads", "-F", "a=@\(file.path)"] + location)
        #expect(added.status == 0)
        let sender = try RunningProgram(["queue", "run", "--limit-rate", "200k"] + location)
        let unfinished = received.appending(path: ".unfinished").path
        func unfinishedCount() -> Int {
            (try? FileManager.default.contentsOfDirectory(atPath: unfinished).filter { !$0.hasPrefix(".") }.count) ?? 0
        }
        try await eventually { unfinishedCount() == 1 }
        // What the sender has not learned, no later command can know.
        let database = try DatabaseQueue(path: directory.appending(path: "queue.sqlite").path)
        try await eventually {
            try await database.read { try String.fetchOne($0, sql: "SELECT resource FROM upload") } != nil
        }
        try database.close()
        if !isSending { sender.kill() }
        #expect(try await Program.run(["queue", "cancel", "1"] + location).status == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.appending(path: "bodies").path).isEmpty)
        try await eventually { unfinishedCount() == 0 }
        let retry = try await Program.run(["queue", "retry", "1"] + location)
        #expect(retry.status == 64 && retry.messages.contains("no longer on disk"))
        sender.kill()
        _ = await server.terminate()
    }

    @Test func `a damaged database is reported and not changed`() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("queue.sqlite", Data("no database".utf8))
        let ending = try await Program.run(["queue", "list", "--queue", folder.path])
        #expect(ending.status == 66)
        #expect(ending.messages.contains(file.path))
        #expect(try Data(contentsOf: file) == Data("no database".utf8))
    }

    /// Kills the sender and the receiver at random moments.
    @Test func `every form arrives once, even if the sender and the receiver are killed`() async throws {
        let environment = ProcessInfo.processInfo.environment
        let scale = environment["POSTCARD_KILLS"].flatMap(Int.init) ?? 10
        // From 1,100,000 bytes, interrupted uploads resume.
        let size = environment["POSTCARD_QUEUED_BYTES"].flatMap(Int.init) ?? 200_000
        let folder = try TemporaryFolder()
        let directory = folder.url.appending(path: "queue").path
        let received = folder.url.appending(path: "received")
        let file = try folder.file("a.jpg", size: size)
        let port = try ReservedPort()
        let serving = ["serve", "--port", "\(port.number)", "--directory", received.path]
        var receiver = try await RunningServer(serving)
        for index in 0..<(scale * 5) {
            let added = try await Program.run([
                "queue", "add", "\(receiver.address)/uploads", "-F", "index=\(index)", "-F",
                "image=@\(file.path)", "--queue", directory,
            ])
            #expect(added.status == 0)
        }
        let options =
            ["queue", "run", "--drain", "--queue", directory, "--max-delay", "0.05", "--concurrency", "4"]
            + ["--retries", "1000"]
        for round in 0..<scale {
            let sender = try RunningProgram(options)
            // A random moment. The test does not depend on what has happened by then.
            try await Task.sleep(for: .milliseconds(Int.random(in: 0..<120)))
            sender.kill()
            if round % 2 == 0 {
                receiver.kill()
                receiver = try await RunningServer(serving)
            }
        }
        let last = try await Program.run(options)
        #expect(last.status == 0)
        let items = try await Self.list(directory)
        #expect(items.count == scale * 5)
        #expect(items.allSatisfy { $0.state == "done" })
        _ = await receiver.terminate()
        withExtendedLifetime(port) {}
        let folders = try FileManager.default.contentsOfDirectory(atPath: received.path).filter { !$0.hasPrefix(".") }
        #expect(folders.count == scale * 5)
        let sent = try Data(contentsOf: file)
        for name in folders {
            #expect(try Data(contentsOf: received.appending(path: "\(name)/0")) == sent)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: received.appending(path: ".incoming").path).isEmpty)
    }
}
