#if os(Linux)
import Foundation
import PostcardTestSupport
import Testing

/// Queues with random changes: rows, tables, pages, logs, journals and links.
@Suite(.timeLimit(.minutes(180))) struct MutatedQueueTests {
    /// For a long run, set POSTCARD_MUTATED_QUEUES=10000. To repeat a run, set POSTCARD_MUTATION_SEED.
    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment["POSTCARD_\(name)"].flatMap(Int.init)
    }

    /// `mutate.py` checks a directory next to the queues, what is sent, and every path that an unprivileged process
    /// passes to the system.
    @Test func `no change to a queue's directory makes it read, send, change or remove other files`() async throws {
        let script = Repository.url("Tests/QueueVictim/mutate.py")
        let victim = Program.url.deletingLastPathComponent().appending(path: "PostcardQueueVictim")
        let seed = Self.number("MUTATION_SEED") ?? Int.random(in: 0..<1_000_000_000)
        let ending = try await Program.run(
            "python3",
            ["-B", script.path, Program.url.path, victim.path, "\(Self.number("MUTATED_QUEUES") ?? 100)", "\(seed)"])
        #expect(ending.status == 0, "\(ending.messages)\n\(ending.text)")
        // The output lists checks that are not possible here, such as a trace of system calls.
        print(ending.text)
    }
}
#endif
