/// A failed attempt, as an interceptor sees it.
public struct UploadAttempt: Sendable {
    /// The request, as the interceptors adapted it.
    public let request: UploadRequest

    /// The number of the attempt, from 1.
    public let number: Int

    /// The errors of the attempts before it, in order.
    public let earlierErrors: [UploadError]
}
