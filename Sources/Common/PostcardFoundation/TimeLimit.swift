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
