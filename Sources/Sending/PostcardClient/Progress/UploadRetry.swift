public import PostcardFoundation

/// Why an upload is tried again, and when.
public struct UploadRetry: Sendable {
    /// The error that the last attempt failed with.
    public let error: UploadError

    /// The number of the next attempt, from 2.
    public let nextAttempt: Int

    /// The delay before it.
    public let delay: Duration

    /// When it starts, by this machine's clock.
    public let date: Date

    init(after error: UploadError, nextAttempt: Int, delay: Duration) {
        self.error = error
        self.nextAttempt = nextAttempt
        self.delay = delay
        date = Date().addingTimeInterval(delay / .seconds(1))
    }
}
