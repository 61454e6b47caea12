#if os(Linux)
import Foundation
import PostcardTestSupport
import Testing

/// Queues that were changed in ways that chance decides: rows, tables, pages, logs, journals, links.
@Suite(.timeLimit(.minutes(180))) struct MutatedQueueTests {
    /// More on request: POSTCARD_MUTATED_QUEUES=10000, and POSTCARD_MUTATION_SEED to repeat a run.
    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment["POSTCARD_\(name)"].flatMap(Int.init)
    }

    /// `mutate.py` says what is looked at: a folder beside the queues, what is sent, and every name that a process with few
    /// rights passes to the system.
    @Test func `whatever a queue's folder holds, nothing outside is read, sent, changed or removed`() async throws {
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../QueueVictim/mutate.py").standardizedFileURL
        let victim = Program.url.deletingLastPathComponent().appending(path: "PostcardQueueVictim")
        let seed = Self.number("MUTATION_SEED") ?? Int.random(in: 0..<1_000_000_000)
        let ending = try await Program.run(
            "python3",
            ["-B", script.path, Program.url.path, victim.path, "\(Self.number("MUTATED_QUEUES") ?? 100)", "\(seed)"])
        #expect(ending.status == 0, "\(ending.messages)\n\(ending.text)")
        // What was not possible here, such as a trace of the system's calls, is in the output.
        print(ending.text)
    }
}
#endif
