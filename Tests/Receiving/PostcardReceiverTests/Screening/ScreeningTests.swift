import Foundation
import NIOCore
import PostcardTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import PostcardReceiver
@testable import PostcardReceivingSupport
@testable import PostcardReception
@testable import PostcardServer

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
            let response = try await receiver.exchange(Form.request(body: Self.twoFiles))
            #expect(response.status == 201)
            #expect(seen.names.withLock { $0 } == ["clean.bin=clean", "$(x) 'evil'.bin=EICAR"])
            #expect(try receiver.records.count == 1)
        }
    }

    #if os(Linux)
    @Test func `the files of a form that waits for its screening are closed`() async throws {
        let open = Mutex<[Int?]>([])
        try await withReceiver {
            let directory = URL(filePath: $0.directory.string)
            $0.uploads.screen = { _ in
                let count = try? OpenDescriptors.files(in: directory.appending(path: ".incoming"))
                open.withLock { $0.append(count) }
                return .accepted
            }
        } _: { receiver in
            let response = try await receiver.exchange(Form.request(body: Self.twoFiles))
            #expect(response.status == 201)
            #expect(open.withLock(\.self) == [0, 0])
        }
    }
    #endif

    @Test func `a file that a hook refuses is refused with its reason, and leaves nothing behind`() async throws {
        try await withReceiver {
            let directory = $0.directory
            $0.uploads.screen = { file in
                let names = try FileManager.default.contentsOfDirectory(atPath: directory.string)
                #expect(names.allSatisfy { $0.hasPrefix(".") }, "the record is there before it was screened")
                return file.filename.contains("evil") ? .refused(reason: "Looks \"evil\".") : .accepted
            }
        } _: { receiver in
            let response = try await receiver.exchange(Form.request(body: Self.twoFiles))
            #expect(response.status == 422)
            #expect(response.problem?.code == "file-refused")
            #expect(response.problem?.detail.hasSuffix("Looks \"evil\".") == true)
            #expect(try receiver.records.isEmpty)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    /// A hook that waits until it is let through, and records the files that it sees.
    private final class Gate: Sendable {
        let seen = Mutex<[String]>([])
        let most = Mutex((now: 0, most: 0))
        private let (steps, step) = AsyncStream.makeStream(of: Void.self)

        func screen(_ file: FinishedFile) async -> ScreeningVerdict {
            seen.withLock { $0.append(file.filename) }
            most.withLock { ($0.now, $0.most) = ($0.now + 1, max($0.most, $0.now + 1)) }
            for await _ in steps { break }
            most.withLock { $0.now -= 1 }
            return .accepted
        }

        func letOneThrough() { step.yield() }
    }

    @Test(arguments: [1, 2, 16])
    func `as many files are screened at once as may be, in turns of their addresses`(limit: Int) async throws {
        let gate = Gate()
        var options = UploadOptions()
        options.screen = { await gate.screen($0) }
        options.maximumConcurrentScreenings = limit
        let shares = ShareAccount(ShareLimits(options, connections: 100))
        let screening = try #require(Screening(options, shares))
        func start(_ name: String, from peer: Int) async throws -> Task<ScreeningVerdict, any Error> {
            let file = FinishedFile(
                name: "f", filename: name, contentType: "a/b", sha256: "",
                content: MemoryStore.File(content: .init()), path: nil)
            let (waiting, seen) = (shares.waitingCount(for: .screenings), gate.seen.withLock(\.count))
            let task = Task { try await screening.screen(file, for: TestPeers.all[peer]) }
            try await eventually {
                shares.waitingCount(for: .screenings) > waiting || gate.seen.withLock(\.count) > seen
            }
            return task
        }
        var tasks: [Task<ScreeningVerdict, any Error>] = []
        let others = (1..<limit).map { ("c\($0)", 2) }
        for (name, peer) in [("a1", 0), ("a2", 0), ("a3", 0), ("b1", 1), ("b2", 1)] + others {
            tasks.append(try await start(name, from: peer))
        }
        #expect(gate.seen.withLock(\.count) == limit)
        for count in 1...tasks.count {
            try await eventually { gate.seen.withLock(\.count) >= count }
            gate.letOneThrough()
        }
        for task in tasks { #expect(try await task.value == .accepted) }
        if limit == 1 { #expect(gate.seen.withLock { $0 } == ["a1", "a2", "b1", "a3", "b2"]) }
        #expect(gate.most.withLock(\.most) == limit)
    }

    @Test func `a file that has no turn within the time limit is refused for now`() async throws {
        // A hook that does not honor its cancellation.
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let begun = Mutex(false)
        try await withReceiver {
            $0.uploads.screen = { _ in
                begun.withLock { $0 = true }
                await Task { for await _ in ends {} }.value
                return .accepted
            }
            $0.uploads.maximumConcurrentScreenings = 1
            $0.uploads.screeningTimeout = .milliseconds(300)
        } _: { receiver in
            let body = Form.request(body: Form.fileHeader + Form.end)
            async let first = receiver.exchange(body)
            try await eventually { begun.withLock { $0 } }
            let second = try await receiver.exchange(body)
            #expect(second.status == 503)
            #expect(second.problem?.code == "too-many-screenings")
            end.finish()
            // The one that had its turn took too long, too.
            #expect(try await first.problem?.code == "screening-failed")
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test func `a hook that fails refuses the form for now`() async throws {
        try await withReceiver {
            $0.uploads.screen = { _ in throw CocoaError(.fileNoSuchFile) }
        } _: { receiver in
            let response = try await receiver.exchange(Form.request(body: Self.twoFiles))
            #expect(response.status == 503)
            #expect(response.problem?.code == "screening-failed")
            #expect(response.headers["retry-after"] == "30")
            #expect(try receiver.records.isEmpty)
        }
    }

    #if os(Linux) || os(macOS)
    @Test func `a program gets no variables whose names begin with what is left out`() async throws {
        let all = try await ChildProcess.run(["/usr/bin/env"], without: [], maximumOutputBytes: 1 << 20)
        let some = try await ChildProcess.run(["/usr/bin/env"], without: ["PA", "X_"], maximumOutputBytes: 1 << 20)
        func names(_ ending: ChildProcess.Ending) -> Set<Substring> {
            let lines = String(decoding: ending.output, as: UTF8.self).split(separator: "\n")
            return Set(lines.compactMap { $0.split(separator: "=").first })
        }
        #expect(names(all).contains("PATH"))
        #expect(names(some) == names(all).filter { !$0.hasPrefix("PA") && !$0.hasPrefix("X_") })
    }

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
            let response = try await receiver.exchange(Form.request(body: Self.twoFiles))
            #expect(response.status == status)
            #expect(response.problem?.code == code)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test func `a command sees empty files and says why it refuses one`() async throws {
        try await withReceiver {
            let screening = CommandScreening("sh -c 'test -s \"$0\" || { echo It is empty.; exit 1; }'")
            $0.uploads.screen = { try await screening.screen($0) }
        } _: { receiver in
            let response = try await receiver.exchange(Form.request(body: Form.fileHeader + Form.end))
            #expect(response.problem?.detail.hasSuffix("It is empty.") == true)
        }
    }

    private static let file = FinishedFile(
        name: "f", filename: "f", contentType: "a/b", sha256: "", content: MemoryStore.File(content: .init()),
        path: nil)

    private static func screening(by command: CommandScreening, timeLimit: Duration) -> Screening? {
        var options = UploadOptions()
        options.screen = { try await command.screen($0) }
        options.screeningTimeout = timeLimit
        return Screening(options, ShareAccount(ShareLimits(options, connections: 100)))
    }

    /// The process whose number a command has written to a file.
    private static func process(in file: FilePath) async throws -> Int32 {
        try await eventually { (try? String(contentsOfFile: file.string, encoding: .utf8))?.hasSuffix("\n") == true }
        let text = try String(contentsOfFile: file.string, encoding: .utf8)
        return try #require(Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)))
    }

    @Test(arguments: [false, true])
    func `a command that takes too long, or that no one waits for, is killed`(isCancelled: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let pidFile = directory.appending("pid")
            // Were it left behind, it would hold the tests' standard error open.
            let screening = CommandScreening(
                "sh -c 'exec 2>/dev/null; echo $$ > \(pidFile); while :; do sleep 1; done'")
            let limited = Self.screening(by: screening, timeLimit: .seconds(isCancelled ? 600 : 10))
            let task = Task { try await limited?.screen(Self.file, for: nil) }
            let process = try await Self.process(in: pidFile)
            if isCancelled { task.cancel() }
            await #expect(throws: (any Error).self) { try await task.value }
            try await eventually { !isAlive(process) }
        }
    }

    #if os(Linux)
    private static let leaving: [(rest: String, verdict: ScreeningVerdict?)] = [
        ("exit 0", .accepted), ("echo No.; exit 1", .refused(reason: "No.")),
        ("exec >&-; exit 0", .accepted), ("kill -KILL $$", nil),
        ("yes No. | head -c 20000000; exit 1", .refused(reason: "No.")),
        // Ended by the time limit, or by its task.
        ("exec sleep 600", nil), ("trap : TERM; while :; do sleep 600; done", nil), ("exec yes", nil),
    ]

    @Test(arguments: leaving, ["", "setsid"])
    func `the end of the command decides, whatever it leaves behind that holds its output open`(
        command: (rest: String, verdict: ScreeningVerdict?), session: String
    ) async throws {
        try await withTemporaryDirectory { directory in
            let (pidFile, script) = (directory.appending("pid"), directory.appending("screen"))
            let lines = """
                exec 2>/dev/null
                \(session) sh -c 'echo $$ > \(pidFile); exec sleep 300' &
                until test -s \(pidFile); do sleep 0.01; done
                \(command.rest)
                """
            try Data(lines.utf8).write(to: URL(filePath: script.string))
            let limited = Self.screening(by: CommandScreening("sh \(script)"), timeLimit: .seconds(600))
            let task = Task { try await limited?.screen(Self.file, for: nil) }
            let left = try await Self.process(in: pidFile)
            if command.verdict == nil { task.cancel() }
            if let verdict = command.verdict {
                #expect(try await task.value == verdict)
            } else {
                await #expect(throws: (any Error).self) { try await task.value }
            }
            if session.isEmpty {
                try await eventually { !isAlive(left) }
            } else {
                // It was not waited for.
                #expect(isAlive(left))
                kill(left, SIGKILL)
            }
        }
    }

    @Test func `a command has the standard descriptors and no others, and no signal is ignored`() async throws {
        try await withReceiver {
            let screening = CommandScreening(
                "sh -c 'echo $(ls /proc/self/fd) $(grep -E \"Sig(Blk|Ign)\" /proc/self/status); exit 1'")
            $0.uploads.screen = { try await screening.screen($0) }
        } _: { receiver in
            let response = try await receiver.exchange(Form.request(body: Form.fileHeader + Form.end))
            let words = response.problem?.detail.split(separator: " ").suffix(8).map(String.init) ?? []
            try #require(words.count == 8, "\(response.body)")
            // The fourth is the folder that `ls` reads.
            #expect(Array(words[..<4]) == ["0", "1", "2", "3"])
            // Signals 32 and 33 are the C library's own.
            let ofTheLibrary: UInt64 = 0b11 << 31
            for index in [5, 7] {
                let signals = try #require(UInt64(words[index], radix: 16))
                #expect(signals & ~ofTheLibrary == 0, "\(response.body)")
            }
        }
    }
    #endif
    #endif
}

/// Whether a process runs. One that has ended may wait for a parent that never asks for it.
private func isAlive(_ process: Int32) -> Bool {
    guard kill(process, 0) == 0 else { return false }
    let state = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
    return state?.contains(") Z ") != true
}
