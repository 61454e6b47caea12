#if os(Linux)
import Foundation
import PostcardTestSupport
import Testing

/// Receivers that share a bucket, on a simulated clock, network and object store.
@Suite(.timeLimit(.minutes(30))) struct SimulatorTests {
    private static func simulate(_ options: String...) async throws -> Program.Ending {
        let program = Program.url.deletingLastPathComponent().appending(path: "PostcardSimulator")
        return try await Program.run(program.path, options)
    }

    /// For a long run, use `make simulate`.
    @Test func `no promise is broken by what happens in 300 seeds`() async throws {
        let ending = try await Self.simulate("--seeds", "1-300")
        #expect(ending.status == 0, "\(ending.text)\n\(ending.messages)")
    }

    @Test func `a seed does the same again`() async throws {
        let first = try await Self.simulate("--seeds", "1-5", "--trace", "--hash")
        let second = try await Self.simulate("--seeds", "1-5", "--trace", "--hash")
        #expect(first.text == second.text)
        #expect(first.text.split(separator: "\n").count > 1000)
    }

    /// `make simulate` plants all others too.
    @Test(arguments: ["no-condition-on-key", "no-mark", "sweep-without-margin", "error-in-200-ignored"])
    func `a planted bug is found, and found again by its seed`(name: String) async throws {
        let ending = try await Self.simulate("--plant", name, "--seeds", "1-1000")
        #expect(ending.status == 0, "\(ending.text)\n\(ending.messages)")
        let line = try #require(ending.text.split(separator: "\n").last)
        let seed = try #require(line.firstMatch(of: /^seed (\d+):/)?.1)
        #expect(try await Self.simulate("--plant", name, "--seeds", String(seed)).text == "\(line)\n")
    }
}
#endif
