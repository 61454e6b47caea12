/// Does some work. If it takes longer than the limit, cancels it, and evaluates and throws `error`.
package func within<Value: Sendable>(
    _ limit: Duration, or error: @autoclosure @escaping @Sendable () -> any Error,
    _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await until({ try await Task.sleep(for: limit) }, or: error(), work)
}

/// Does some work. If `end` returns first, cancels the work, and evaluates and throws `error`.
package func until<Value: Sendable>(
    _ end: @escaping @Sendable () async throws -> Void, or error: @autoclosure @escaping @Sendable () -> any Error,
    _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask { try await work() }
        group.addTask {
            try await end()
            throw error()
        }
        // Leaving the group cancels the other task.
        defer { group.cancelAll() }
        guard let value = try await group.next() else { throw CancellationError() }
        return value
    }
}

extension Duration {
    /// The delay after a number of consecutive failures: `first` after one failure, multiplied by `factor` for each
    /// further one, but at most `longest`.
    package static func growing(
        after failures: Int, from first: Duration, upTo longest: Duration, by factor: Int = 2
    ) -> Duration {
        var wait = first
        // After 64 failures, the delay exceeds any maximum.
        for _ in 1..<min(max(failures, 1), 64) where wait < longest { wait *= factor }
        return min(wait, longest)
    }
}
