package import PostcardFoundation

/// What a store takes from its surroundings. The simulator replaces all of it, and the clock of ``S3Bucket``.
package final class Surroundings: Sendable {
    /// Makes a request that is signed at a time, within a limit; `nil` if it is made over the network.
    let exchange: (@Sendable (S3Request, _ signed: Date, _ limit: Duration) async throws -> S3Response)?
    /// Measures time, also while the process is stopped.
    let now: @Sendable () -> ContinuousClock.Instant
    let sleep: @Sendable (Duration) async throws -> Void
    /// Makes random bits for names and pauses.
    let random: @Sendable () -> UInt64
    /// Runs the tasks that are not part of a caller's; `nil` for the threads that all tasks share.
    let executor: (any TaskExecutor)?
    /// The size of parts and chunks.
    let partBytes: Int
    /// The bytes that an upload gathers before it takes a block of the budget. Most forms have no more.
    let freeBytes: Int

    package init(
        exchange: (@Sendable (S3Request, _ signed: Date, _ limit: Duration) async throws -> S3Response)? = nil,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        random: @escaping @Sendable () -> UInt64 = {
            var generator = SystemRandomNumberGenerator()
            return generator.next()
        },
        executor: (any TaskExecutor)? = nil, partBytes: Int = 8 << 20, freeBytes: Int = 64 << 10
    ) {
        self.exchange = exchange
        self.now = now
        self.sleep = sleep
        self.random = random
        self.executor = executor
        self.partBytes = partBytes
        self.freeBytes = freeBytes
    }

    /// The network, the clock and the threads of this process.
    package static let real = Surroundings()

    /// Does something also if the caller's task is cancelled, whose own requests would fail.
    func evenIfCancelled(_ work: @escaping @Sendable () async -> Void) async {
        await Task(executorPreference: executor, operation: work).value
    }

    var generator: some RandomNumberGenerator { Generator(random: random) }

    private struct Generator: RandomNumberGenerator {
        let random: @Sendable () -> UInt64
        mutating func next() -> UInt64 { random() }
    }
}
