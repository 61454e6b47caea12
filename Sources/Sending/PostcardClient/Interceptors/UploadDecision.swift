/// What to do after a failure.
public enum UploadDecision: Sendable, Hashable {
    /// The next interceptor decides, or the retry policy.
    case passOn
    /// The form is sent again after a delay, and ``UploadInterceptor/adapt(_:attempt:)`` is called again. The number of
    /// such retries is limited by ``RetryPolicy/maximumInterceptorRetries``, and a form with a stream that can be read
    /// only once is not sent again.
    case retry(after: Duration)
    /// The upload fails with the error.
    case giveUp
}
