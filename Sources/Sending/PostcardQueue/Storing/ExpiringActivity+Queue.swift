import PostcardFoundation

extension ExpiringActivity {
    /// Begins an activity, which the caller must end.
    ///
    /// - Throws: ``UploadQueueError`` with code ``UploadQueueError/Code/suspended`` if the system is about to suspend
    ///   the app.
    func granted() throws(UploadQueueError) -> Grant {
        guard let grant = begin() else { throw .suspended(nil) }
        return grant
    }

    /// Runs blocking work within an activity, so that the system does not suspend the app.
    ///
    /// - Parameter interrupt: Called if the system is about to suspend the app, so that the work ends soon.
    func perform<Value>(
        _ work: () throws(UploadQueueError) -> Value, onExpiry interrupt: @escaping @Sendable () -> Void
    ) throws(UploadQueueError) -> Value {
        let grant = try granted()
        let forget = grant.onExpiry(interrupt)
        defer {
            forget()
            grant.end()
        }
        return try work()
    }

    /// Runs work within an activity. Cancels the work if the system is about to suspend the app.
    ///
    /// - Throws: ``UploadQueueError`` with code ``UploadQueueError/Code/suspended`` if the work was cancelled in this
    ///   way; errors of the work.
    func perform<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let grant = try granted()
        let task = Task { @concurrent in try await work() }
        let forget = grant.onExpiry { task.cancel() }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        forget()
        let isExpired = grant.isExpired
        grant.end()
        switch result {
        case .success(let value): return value
        case .failure(let error as UploadQueueError): throw error
        case .failure(let error):
            throw isExpired && !Task.isCancelled ? UploadQueueError.suspended(error) : error
        }
    }
}
