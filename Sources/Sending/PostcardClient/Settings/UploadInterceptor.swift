/// Adapts every upload of an app: adds a credential or a signature, or decides what to do after a failure.
///
/// ```swift
/// struct APIKey: UploadInterceptor {
///     let key: String
///
///     func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
///         request.headerFields[.authorization] = "Key \(key)"
///     }
/// }
///
/// var client = UploadClient()
/// client.interceptors = [APIKey(key: key)]
/// ```
///
/// A resumable upload (``ResumptionPolicy``) makes several requests: interceptors adapt the one that the caller made,
/// and all of them have its header fields. A signature of the method or the path does not fit them.
///
/// An interceptor may take long, and must react to the cancellation of its task when the upload is cancelled or its
/// time is over.
///
/// ``BearerTokenInterceptor`` is one for tokens that expire. Interceptors are not called for another origin that a
/// server redirects to, so that credentials are not sent there.
public protocol UploadInterceptor: Sendable {
    /// Changes a request before it is sent. Called for every attempt, in the order of the client's interceptors, with
    /// the request that the caller made.
    ///
    /// - Parameters:
    ///   - request: The request. To change the URL, make another request.
    ///   - attempt: The number of the attempt, from 1.
    /// - Throws: Any error fails the upload with that error, unchanged. A queue tries such an upload again, see
    ///   ``UploadError/Code/interceptorFailed``.
    func adapt(_ request: inout UploadRequest, attempt: Int) async throws

    /// Decides what to do after a failed attempt. The first interceptor that does not pass on decides; if all pass on,
    /// the client's retry policy decides.
    ///
    /// Not called if the server has accepted the form: that is never sent again.
    ///
    /// - Parameters:
    ///   - error: The error that the attempt failed with.
    ///   - attempt: The attempt, and the errors before it.
    /// - Throws: Any error fails the upload with that error, unchanged. A queue tries such an upload again, see
    ///   ``UploadError/Code/interceptorFailed``.
    func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision
}

extension UploadInterceptor {
    /// Changes nothing.
    public func adapt(_ request: inout UploadRequest, attempt: Int) async throws {}

    /// Passes on.
    public func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision { .passOn }
}

/// An error of an interceptor. It says nothing about the form; the failure before it does.
package struct InterceptorError: Error {
    package let cause: any Error
    /// The failure of the last attempt; `nil` if nothing was sent before.
    package let failure: UploadError?
}

/// A failed attempt, as an interceptor sees it.
public struct UploadAttempt: Sendable {
    /// The request, as the interceptors adapted it.
    public let request: UploadRequest

    /// The number of the attempt, from 1.
    public let number: Int

    /// The errors of the attempts before it, in order.
    public let earlierErrors: [UploadError]
}

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
