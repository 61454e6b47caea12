package import PostcardFoundation

/// The parts of the system that an app's queues use, for tests that replace them with a simulated phone.
package struct QueueSystem: Sendable {
    /// The replacement for queues that this task makes. Defaults to `nil`: queues use the system itself.
    @TaskLocal package static var replacement: QueueSystem?

    let service: @Sendable (BackgroundSession) -> any TransferService
    let time: QueueTime
    let activity: SystemActivity
    let networkPath: @Sendable () -> NetworkPath?
    let freeBytes: @Sendable (URL) -> Int64?
    /// The senders of the app's process, by the identifiers of their sessions. Each test has its own registry, because
    /// other tests may use the same identifiers.
    let registry = BackgroundSessionRegistry()
    /// Called with each queue that is made.
    let made: @Sendable (UploadQueue) -> Void

    package init(
        service: @escaping @Sendable (BackgroundSession) -> any TransferService, time: QueueTime,
        activity: SystemActivity, networkPath: @escaping @Sendable () -> NetworkPath?,
        freeBytes: @escaping @Sendable (URL) -> Int64?, made: @escaping @Sendable (UploadQueue) -> Void
    ) {
        self.service = service
        self.time = time
        self.activity = activity
        self.networkPath = networkPath
        self.freeBytes = freeBytes
        self.made = made
    }
}

extension BackgroundSessionRegistry {
    /// The registry for queues that this task makes.
    static var current: BackgroundSessionRegistry { QueueSystem.replacement?.registry ?? .shared }
}
