import NIOCore
import PostcardStore

/// Ends a request because another one wants the lock of its upload.
extension UploadConnection {
    /// The time without bytes after which an ended request is cut off, and the time after which it is in any case: a
    /// client may send on, byte by byte, and the request that ended it waits.
    private static let (quietTime, longestTime) = (Duration.milliseconds(50), Duration.milliseconds(200))

    package func closeWhenQuiet(while isEnded: @escaping @Sendable () -> Bool) {
        let interval = TimeAmount(Self.quietTime)
        let end = channel.eventLoop.now + TimeAmount(Self.longestTime)
        channel.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { [channel] task in
            guard isEnded() else { return task.cancel() }
            let handler = try? channel.pipeline.syncOperations.handler(type: ConnectionHandler.self)
            let now = channel.eventLoop.now
            if let handler, !handler.isQuiet(for: Self.quietTime, at: now), now < end { return }
            channel.close(promise: nil)
            task.cancel()
        }
    }

    package func close() { channel.close(promise: nil) }
}
