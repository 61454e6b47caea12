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
        floods) exec yes ;;
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
        let server = try await ReceivingServer("--screen", "sh '\(script.path)'", "--screen-timeout", "20")
        for kind in Self.statuses.keys { _ = try folder.file(kind, kind.utf8) }

        // Some descriptors are opened with the first file that is screened, and kept.
        _ = try await Self.send(Self.statuses.keys.filter { $0 != "sleeps" && $0 != "floods" }, in: folder, to: server)
        let before = try OpenDescriptors.filesAndPipes(of: server.processIdentifier)
        let kinds = (0..<Self.files).map(Self.kind)
        let answered = try await Self.send(kinds, in: folder, to: server)
        #expect(answered == kinds.map { Self.statuses[$0] ?? 0 }.sorted())
        // Files that were fetched or received may be closed a moment after the answer.
        while try OpenDescriptors.filesAndPipes(of: server.processIdentifier) > before { await Task.yield() }
        #expect(try await server.end().exitStatus == 0)
    }

    /// Sends files, sixteen at a time, and gives the statuses of the answers in ascending order.
    private static func send(
        _ kinds: [String], in folder: TemporaryFolder, to server: ReceivingServer
    ) async throws -> [Int] {
        let requests = kinds.map { kind in
            """
            url = "\(server.uploads.absoluteString)"
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
