/// Does some work, and cancels it when its time is over.
///
/// - Parameters:
///   - limit: How long the work may take.
///   - error: What is thrown then. It is made at that moment.
package func within<Value: Sendable>(
    _ limit: Duration, or error: @autoclosure @escaping @Sendable () -> any Error,
    _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask { try await work() }
        group.addTask {
            try await Task.sleep(for: limit)
            throw error()
        }
        // Leaving the group cancels the other task.
        defer { group.cancelAll() }
        guard let value = try await group.next() else { throw CancellationError() }
        return value
    }
}
