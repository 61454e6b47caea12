#if os(Linux)
import Foundation
import PostcardTestSupport
import Testing

/// `postcard serve --screen` as a process of its own, whose descriptors no one else opens.
@Suite("postcard serve --screen", .timeLimit(.minutes(20)))
struct ServeScreeningTests {
    /// Set `POSTCARD_SCREENED_FILES` to 10000 for the same at scale.
    private static let files = ProcessInfo.processInfo.environment["POSTCARD_SCREENED_FILES"].flatMap { Int($0) } ?? 200

    /// Does what the file's content asks for. What it leaves behind holds its output open; `strays` end by themselves.
    private static let screening = #"""
        case "$(head -c 6 "$1")" in
        refuse) echo "It has to be refused."; exit 1 ;;
        sleeps) exec sleep 600 ;;
        floods) yes | head -c 20000000; exec sleep 600 ;;
        leaves) sleep 600 & exit 0 ;;
        strays) setsid sleep 20 & exit 0 ;;
        esac
        """#

    /// Mostly kinds whose verdict comes soon: of a hundred files one sleeps, and one floods its output.
    private static func kind(_ index: Int) -> String {
        switch index % 100 {
        case 0: "sleeps"
        case 1: "floods"
        default: ["passes", "refuse", "leaves", "strays"][index % 4]
        }
    }

    private static let statuses = [
        "sleeps": 503, "floods": 503, "passes": 201, "refuse": 422, "leaves": 201, "strays": 201,
    ]

    @Test func `screening leaves no descriptor open, whatever the commands do`() async throws {
        let folder = try TemporaryFolder()
        let script = try folder.file("screen", Self.screening.utf8)
        // No file waits for its turn: the ones that sleep would use up the time of those behind them.
        let server = try await ReceivingServer(
            "--screen", "sh '\(script.path)'", "--screen-timeout", "20", "--max-screenings", "100")
        for kind in Self.statuses.keys { _ = try folder.file(kind, kind.utf8) }

        // Some descriptors are opened with the first file that is screened, and kept.
        let soon = Self.statuses.keys.filter { $0 != "sleeps" && $0 != "floods" }
        _ = try await Self.send(soon, in: folder, to: server.uploads)
        let before = try OpenDescriptors.filesAndPipes(of: server.processIdentifier)
        let kinds = (0..<Self.files).map(Self.kind)
        let answered = try await Self.send(kinds, in: folder, to: server.uploads)
        #expect(answered == kinds.map { Self.statuses[$0] ?? 0 }.sorted())
        // Files that were fetched or received may be closed a moment after the response.
        try await eventually { try OpenDescriptors.filesAndPipes(of: server.processIdentifier) <= before }
        #expect(try await server.end().exitStatus == 0)
    }

    @Test(
        .enabled("This machine cannot make a server process 1.") {
            try await Program.run("unshare", ["--pid", "--fork", "true"]).status == 0
        })
    func `a server that is process 1 reaps what commands leave behind`() async throws {
        let folder = try TemporaryFolder()
        let script = try folder.file("screen", Self.screening.utf8)
        _ = try folder.file("leaves", "leaves".utf8)
        let server = try await RunningServer(
            ["unshare", "--pid", "--fork", "--kill-child", Program.url.path]
                + Self.serving(in: folder, screening: "sh '\(script.path)'"),
            of: URL(filePath: "/usr/bin/env"))
        let process = try #require(try Self.children(of: server.processIdentifier).first?.process)
        let kinds = [String](repeating: "leaves", count: 20)
        let uploads = try #require(URL(string: server.address)).appending(path: "uploads")
        #expect(try await Self.send(kinds, in: folder, to: uploads) == kinds.map { _ in 201 })
        func zombies() throws -> Int { try Self.children(of: process).count { $0.isZombie } }
        // They are reaped a moment after the responses.
        try await eventually { try zombies() == 0 }
        server.kill()
    }

    @Test func `a command gets no options of the receiver, which may be secrets`() async throws {
        let folder = try TemporaryFolder()
        let list = folder.path + "/variables"
        let server = try await RunningServer(
            Self.serving(in: folder, screening: "sh -c 'env > \"\(list)\"'"),
            environment: [
                "POSTCARD_READ_TOKEN": "hidden", "POSTCARD_MAX_BODY": "1MB", "SCANNER_KEY": "shown",
                "AWS_REGION": "shown",
            ])
        _ = try folder.file("kind", "passes".utf8)
        let uploads = try #require(URL(string: server.address)).appending(path: "uploads")
        #expect(try await Self.send(["kind"], in: folder, to: uploads) == [201])
        let lines = try String(contentsOfFile: list, encoding: .utf8).split(separator: "\n")
        #expect(!lines.contains { $0.hasPrefix("POSTCARD_") })
        #expect(lines.contains("SCANNER_KEY=shown") && lines.contains("AWS_REGION=shown"))
        #expect(lines.contains { $0.hasPrefix("PATH=") })
        #expect(await server.terminate() == 0)
    }

    private static func serving(in folder: TemporaryFolder, screening: String) -> [String] {
        ["serve", "--port", "0", "--directory", folder.path + "/received", "--screen", screening]
    }

    /// The children of a process; see proc_pid_stat(5).
    private static func children(of parent: Int32) throws -> [(process: Int32, isZombie: Bool)] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { name in
            guard let process = Int32(name),
                let text = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
                // The name before the last parenthesis may hold anything.
                let fields = text.split(separator: ")").last?.split(separator: " "), fields.count > 1,
                Int32(fields[1]) == parent
            else { return nil }
            return (process, fields[0] == "Z")
        }
    }

    /// Sends files, sixteen at a time, and gives the statuses of the responses in ascending order.
    private static func send(
        _ kinds: [String], in folder: TemporaryFolder, to server: URL
    ) async throws -> [Int] {
        let requests = kinds.map { kind in
            """
            url = "\(server.absoluteString)"
            form = "f=@\(folder.path)/\(kind)"
            output = "/dev/null"
            write-out = "%{http_code}\\n"
            """
        }
        let list = try folder.file("requests", requests.joined(separator: "\nnext\n").utf8)
        let ending = try await Program.run(
            "curl", ["-sS", "--parallel", "--parallel-max", "16", "--config", list.path])
        #expect(ending.status == 0, "\(ending.messages)")
        return ending.text.split(separator: "\n").compactMap { Int($0) }.sorted()
    }
}
#endif
