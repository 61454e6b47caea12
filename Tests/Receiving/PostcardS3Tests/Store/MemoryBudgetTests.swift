import NIOCore
import Synchronization
import Testing

@testable import PostcardS3

/// The memory that uploads share.
@Suite(.timeLimit(.minutes(10)))
struct MemoryBudgetTests {
    /// An upload that gives its block back when it is asked.
    private final class Upload: Sendable {
        private let state = Mutex<(block: MemoryBudget.Block?, wasAsked: Bool)>((nil, false))

        var wasAsked: Bool { state.withLock { $0.wasAsked } }

        func take(from budget: MemoryBudget, isSending: Bool = false) async throws {
            let block = try await budget.take { [self] in
                let block = state.withLock { state in
                    defer { state = (nil, true) }
                    return state.block
                }
                withExtendedLifetime(block) {}
            }
            if isSending { block.isSending() }
            state.withLock { $0.block = block }
        }

        func end() {
            let block = state.withLock { state in
                defer { state.block = nil }
                return state.block
            }
            withExtendedLifetime(block) {}
        }
    }

    @Test func `the block of a slow client goes to an upload that waits`() async throws {
        let budget = MemoryBudget(blocks: 2, patience: .milliseconds(1))
        let (sending, slow, waiting) = (Upload(), Upload(), Upload())
        try await sending.take(from: budget, isSending: true)
        try await slow.take(from: budget)
        try await waiting.take(from: budget)
        #expect(slow.wasAsked)
        // That depends on the store alone.
        #expect(!sending.wasAsked)
    }

    @Test func `no more clients are asked than uploads wait`() async throws {
        let budget = MemoryBudget(blocks: 3, patience: .milliseconds(1))
        let slow = [Upload(), Upload(), Upload()]
        for upload in slow { try await upload.take(from: budget) }
        let waiting = Upload()
        try await waiting.take(from: budget)
        // The one that has had its block for longest.
        #expect(slow.map(\.wasAsked) == [true, false, false])
    }

    @Test func `an upload that is cancelled while it waits takes no block`() async throws {
        let budget = MemoryBudget(blocks: 1, patience: .seconds(3600))
        let first = Upload()
        try await first.take(from: budget)
        let waiting = Task { try await Upload().take(from: budget) }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        first.end()
        try await Upload().take(from: budget)
    }

    private func address(_ bytes: ByteBuffer) -> UInt? {
        bytes.withUnsafeReadableBytes { $0.baseAddress.map { UInt(bitPattern: $0) } }
    }

    @Test func `the memory of a block is used again`() async throws {
        let budget = MemoryBudget(blocks: 1, surroundings: Surroundings(partBytes: 1000))
        var first: MemoryBudget.Block? = try await budget.take {}
        first?.write(ByteBuffer(string: "first"))
        let memory = first.flatMap { address($0.bytes) }
        first = nil
        let second = try await budget.take {}
        second.write(ByteBuffer(string: "the "))
        second.write(ByteBuffer(string: "second"))
        #expect(address(second.bytes) == memory)
        #expect(second.bytes == ByteBuffer(string: "the second"))
    }

    @Test func `bytes that outlive their block do not change`() async throws {
        let budget = MemoryBudget(blocks: 1)
        var first: MemoryBudget.Block? = try await budget.take {}
        first?.write(ByteBuffer(string: "first"))
        let bytes = first?.bytes
        first = nil
        let second = try await budget.take {}
        second.write(ByteBuffer(string: "other"))
        #expect(bytes == ByteBuffer(string: "first"))
        #expect(second.bytes == ByteBuffer(string: "other"))
    }

    @Test func `only some files are read ahead at once`() {
        let all = ReadingAhead()
        var places = (0..<16).compactMap { _ in all.place() }
        #expect(places.count == 16)
        #expect(all.place() == nil)
        places.removeLast()
        #expect(all.place() != nil)
        withExtendedLifetime(places) {}
    }
}
