import Foundation
import NIOCore
import PostcardServer
import Synchronization
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct ScreeningTests {
    private static let twoFiles =
        "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"clean.bin\"\r\n\r\nclean\r\n"
        + "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"../$(x) 'evil'.bin\"\r\n\r\nEICAR\r\n--b--\r\n"

    /// What of the files the hook saw, and what of the store it saw then.
    private final class Seen: Sendable {
        let names = Mutex<[String]>([])
    }

    @Test func `a hook sees each whole file before the record appears, and lets it pass`() async throws {
        let seen = Seen()
        try await withReceiver {
            $0.uploads.screen = { file in
                let content = try await file.content.read(at: 0, count: 100)
                seen.names.withLock { $0.append("\(file.filename)=\(String(buffer: content))") }
                return .accepted
            }
        } _: { receiver in
            let answer = try await receiver.exchange(Form.request(body: Self.twoFiles))
            #expect(answer.status == 201)
            #expect(seen.names.withLock { $0 } == ["clean.bin=clean", "$(x) 'evil'.bin=EICAR"])
            #expect(try receiver.records.count == 1)
        }
    }

    @Test func `a file that a hook refuses is refused with its reason, and leaves nothing behind`() async throws {
        try await withReceiver {
            let directory = $0.directory
            $0.uploads.screen = { file in
                let names = try FileManager.default.contentsOfDirectory(atPath: directory.string)
                #expect(names.allSatisfy { $0.hasPrefix(".") }, "the record is there before it was screened")
                return file.filename.contains("evil") ? .refused(reason: "Looks \"evil\".") : .accepted
            }
        } _: { receiver in
            let answer = try await receiver.exchange(Form.request(body: Self.twoFiles))
            #expect(answer.status == 422)
            #expect(answer.problem?.code == "file-refused")
            #expect(answer.problem?.detail.hasSuffix("Looks \"evil\".") == true)
            #expect(try receiver.records.isEmpty)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test func `a hook that fails refuses the form for now`() async throws {
        try await withReceiver {
            $0.uploads.screen = { _ in throw CocoaError(.fileNoSuchFile) }
        } _: { receiver in
            let answer = try await receiver.exchange(Form.request(body: Self.twoFiles))
            #expect(answer.status == 503)
            #expect(answer.problem?.code == "screening-failed")
            #expect(answer.headers["retry-after"] == "30")
            #expect(try receiver.records.isEmpty)
        }
    }

    #if os(Linux) || os(macOS)
    @Test(arguments: [
        ("grep -qv EICAR", 422, "file-refused"), ("false", 422, "file-refused"), ("true", 201, nil),
        ("test -s", 201, nil), ("sh -c 'exit 2'", 503, "screening-failed"),
        ("/no/such/program", 503, "screening-failed"), ("rm", 503, "screening-failed"),
        ("sh -c 'echo more >> \"$0\"'", 503, "screening-failed"),
    ])
    func `a command's exit status is the verdict`(command: String, status: Int, code: String?) async throws {
        try await withReceiver {
            let screening = CommandScreening(command)
            $0.uploads.screen = { try await screening.screen($0) }
        } _: { receiver in
            let answer = try await receiver.exchange(Form.request(body: Self.twoFiles))
            #expect(answer.status == status)
            #expect(answer.problem?.code == code)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test func `a command sees empty files and says why it refuses one`() async throws {
        try await withReceiver {
            let screening = CommandScreening("sh -c 'test -s \"$0\" || { echo It is empty.; exit 1; }'")
            $0.uploads.screen = { try await screening.screen($0) }
        } _: { receiver in
            let answer = try await receiver.exchange(Form.request(body: Form.fileHeader + Form.end))
            #expect(answer.problem?.detail.hasSuffix("It is empty.") == true)
        }
    }

    @Test(arguments: [false, true])
    func `a command that takes too long, or that nobody waits for, is killed`(isCancelled: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let pidFile = directory.appending("pid").string
            // Were it left behind, it would hold the tests' standard error open.
            var screening = CommandScreening(
                "sh -c 'exec 2>/dev/null; echo $$ > \(pidFile); while :; do sleep 1; done'")
            screening.timeLimit = isCancelled ? .seconds(600) : .milliseconds(300)
            let file = FinishedFile(
                name: "f", filename: "f", contentType: "a/b", sha256: "", content: MemoryStore.File(content: .init()),
                path: nil)
            let task = Task { [screening] in try await screening.screen(file) }
            try await eventually { (try? String(contentsOfFile: pidFile, encoding: .utf8))?.hasSuffix("\n") == true }
            if isCancelled { task.cancel() }
            await #expect(throws: (any Error).self) { try await task.value }
            let text = try String(contentsOfFile: pidFile, encoding: .utf8)
            let pid = try #require(Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)))
            try await eventually { kill(pid, 0) != 0 }
        }
    }
    #endif
}
