package import PostcardFoundation

/// What the queues of an app use of the system. A test puts a phone of its own in its place.
package struct QueueSystem: Sendable {
    /// What the queues use that are made in this task. Defaults to `nil`: the system itself.
    @TaskLocal package static var replacement: QueueSystem?

    let service: @Sendable (BackgroundSession) -> any TransferService
    let time: QueueTime
    let activity: SystemActivity
    let networkPath: @Sendable () -> NetworkPath?
    let freeBytes: @Sendable (URL) -> Int64?
    /// The senders of the app's process by their sessions. Other tests of this process may use the same identifiers.
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
    /// The senders of the app's process.
    static var current: BackgroundSessionRegistry { QueueSystem.replacement?.registry ?? .shared }
}
