import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Testing

/// How the receiver ends, and what it has then.
extension ServeTests {
    @Test func `a shutdown waits for a slow sender only for as long as --shutdown-timeout says`() async throws {
        try Tool.require("curl")
        let server = try await serve("--shutdown-timeout", "0.3", "--minimum-rate", "0", "--idle-timeout", "600")
        let picture = try folder.file(".picture", Data(count: 20_000_000))
        async let sent = Program.run(
            "curl",
            [
                "-sS", "--max-time", "300", "--limit-rate", "20k", "-F", "f=@\(picture.path)",
                "\(server.address)/uploads",
            ])
        try await eventually { try !temporaryFiles().isEmpty }
        #expect(await server.terminate() == 0)
        #expect(try await sent.status != 0)
        #expect(try records().isEmpty)
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `a second signal ends it at once, and a screening command that runs with it`(signal: Int32) async throws {
        try Tool.require("curl")
        let pidFile = folder.path + "/.pid"
        let server = try await serve(
            "--shutdown-timeout", "600", "--screen", "sh -c 'exec 2>/dev/null; echo $$ > \(pidFile); exec sleep 600'")
        async let sent = Program.run(
            "curl", ["-sS", "--max-time", "300", "-F", "f=x;filename=x", "\(server.address)/uploads"])
        func process() -> Int32? {
            let text = try? String(contentsOfFile: pidFile, encoding: .utf8)
            return text?.hasSuffix("\n") == true ? text.flatMap { Int32($0.dropLast()) } : nil
        }
        try await eventually { process() != nil }
        server.signal(signal)
        // Once no connection is accepted any more, the first signal has started the shutdown.
        try await eventually { try await Program.run("curl", ["-s", "\(server.address)/health"]).status != 0 }
        server.signal(signal)
        #expect(await server.exitStatus() == 128 + signal)
        #expect(try await sent.status != 0)
        let screening = try #require(process())
        // Its parent is gone, and it may be that no one asks for its end.
        try await eventually {
            if Foundation.kill(screening, 0) != 0 { return true }
            return try await Program.run("ps", ["-o", "stat=", "-p", "\(screening)"]).text.hasPrefix("Z")
        }
    }

    @Test
    func `it ends with 0 when it is told to end`() async throws {
        let server = try await serve()
        #expect(await server.terminate() == 0)
    }

    @Test
    func `killed in the middle of uploads, it has every answered one whole and nothing half`() async throws {
        let content = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let picture = try folder.file(".picture", content)
        // A busy machine may hold senders and the receiver up for longer than either usually waits.
        let server = try await serve("--minimum-rate", "0", "--idle-timeout", "300")
        let (answered, failures) = try await Self.upload(picture, times: 100, to: server) { _ in }
        #expect(answered.count == 100, "\(failures)")
        let (answeredBeforeKill, _) = try await Self.upload(picture, times: 16, to: server) {
            if $0 == 4 { server.kill() }
        }

        let revived = try await serve()
        let stored = try records()
        #expect(Set(answered + answeredBeforeKill).subtracting(stored).isEmpty)
        #expect(try temporaryFiles().isEmpty)
        for id in stored {
            let ending = try await Program.run("curl", ["-sS", "\(revived.address)/uploads/\(id)/files/0"])
            #expect(ending.output == content)
        }
        #expect(try await Program.run(["send", "\(revived.address)/uploads", "-F", "a=b"]).status == 0)
    }

    /// Sends a picture many times, sixteen at a time, and gives the identifiers that were answered, and why others were
    /// not.
    private static func upload(
        _ picture: URL, times: Int, to server: RunningServer, onResponse: @Sendable (Int) -> Void
    ) async throws -> (answered: [String], failures: [String]) {
        let url = try #require(URL(string: "\(server.address)/uploads"))
        var client = UploadClient(transport: AsyncHTTPTransport(), timeouts: UploadTimeouts(idle: .seconds(300)))
        client.timeouts.connect = .seconds(300)
        return await withTaskGroup(of: Result<String?, any Error>.self) { [client] group in
            func add() {
                group.addTask {
                    var form = MultipartForm()
                    form.append("초코", named: "name")
                    form.append(fileAt: picture, named: "picture")
                    do {
                        let response = try await client.upload(form, to: url)
                        return .success(response.headerFields[.location]?.split(separator: "/").last.map(String.init))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            for _ in 0..<min(times, 16) { add() }
            var begun = min(times, 16)
            var (answered, failures): ([String], [String]) = ([], [])
            for await result in group {
                switch result {
                case .success(let id?):
                    answered.append(id)
                    onResponse(answered.count)
                case .success(nil): failures.append("a response without a Location")
                case .failure(let error): failures.append("\(error)")
                }
                if begun < times {
                    begun += 1
                    add()
                }
            }
            return (answered, failures)
        }
    }
}
