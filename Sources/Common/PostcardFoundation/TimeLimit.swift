/// Does some work, and cancels it after a time limit.
///
/// - Parameters:
///   - limit: How long the work may take.
///   - error: The error to throw after the limit. It is made at that moment.
package func within<Value: Sendable>(
    _ limit: Duration, or error: @autoclosure @escaping @Sendable () -> any Error,
    _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await until({ try await Task.sleep(for: limit) }, or: error(), work)
}

/// Does some work, and cancels it when something else ends first.
///
/// - Parameters:
///   - end: Returns when the time for the work is over.
///   - error: The error to throw when `end` returns first. It is made at that moment.
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
    /// A wait that grows with each failure in a row, up to the longest one.
    ///
    /// - Parameters:
    ///   - failures: The number of failures in a row, with the latest.
    ///   - first: The wait after one failure.
    ///   - longest: The longest wait.
    ///   - factor: By how much the wait grows with each further failure. Defaults to 2.
    package static func growing(
        after failures: Int, from first: Duration, upTo longest: Duration, by factor: Int = 2
    ) -> Duration {
        var wait = first
        // More failures would make it longer than any limit.
        for _ in 1..<min(max(failures, 1), 64) where wait < longest { wait *= factor }
        return min(wait, longest)
    }
}
