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
/// A resumable upload (``ResumptionPolicy``) makes several requests: interceptors adapt the request that the caller
/// made, and its header fields are sent with all of them. A signature of the method or the path is not valid for the
/// other requests.
///
/// An interceptor may take as long as it needs. When the upload is cancelled or times out, the interceptor's task is
/// cancelled, and it must react to that.
///
/// ``BearerTokenInterceptor`` is an interceptor for tokens that expire. If a server redirects to another origin,
/// interceptors are not called for that request, so that no credentials are sent there.
public protocol UploadInterceptor: Sendable {
    /// Changes a request before it is sent. This method is called for every attempt, in the order of the client's
    /// interceptors, with the request that the caller made.
    ///
    /// - Parameters:
    ///   - request: The request. To change the URL, make another request.
    ///   - attempt: The number of the attempt, from 1.
    /// - Throws: Any error fails the upload with that error, unchanged. A queue tries such an upload again, see
    ///   ``UploadError/Code/interceptorFailed``.
    func adapt(_ request: inout UploadRequest, attempt: Int) async throws

    /// Decides what to do after a failed attempt. The first interceptor that returns another decision than
    /// ``UploadDecision/passOn`` decides. If there is none, the client's retry policy decides.
    ///
    /// This method is not called if the server has accepted the form, because an accepted form is never sent again.
    ///
    /// - Parameters:
    ///   - error: The error that the attempt failed with.
    ///   - attempt: The failed attempt, and the errors of earlier attempts.
    /// - Throws: Any error fails the upload with that error, unchanged. A queue tries such an upload again, see
    ///   ``UploadError/Code/interceptorFailed``.
    func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision
}

extension UploadInterceptor {
    /// The default implementation: leaves the request unchanged.
    public func adapt(_ request: inout UploadRequest, attempt: Int) async throws {}

    /// The default implementation: lets the next interceptor or the retry policy decide.
    public func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision { .passOn }
}

/// An error that an interceptor has thrown. What happened to the form is in ``failure``.
package struct InterceptorError: Error {
    package let cause: any Error
    /// The failure of the latest attempt; `nil` if nothing was sent before.
    package let failure: UploadError?
}

/// A failed attempt, as an interceptor gets it.
public struct UploadAttempt: Sendable {
    /// The request, as the interceptors adapted it.
    public let request: UploadRequest

    /// The number of the attempt, from 1.
    public let number: Int

    /// The errors of the attempts before this one, in order.
    public let earlierErrors: [UploadError]
}

/// What to do after a failure.
public enum UploadDecision: Sendable, Hashable {
    /// The next interceptor decides, or the retry policy after the last interceptor.
    case passOn
    /// The form is sent again after a delay. ``UploadInterceptor/adapt(_:attempt:)`` is then called for the new
    /// attempt. The number of such retries is limited by ``RetryPolicy/maximumInterceptorRetries``, and a form with a
    /// stream that can be read only once is not sent again.
    case retry(after: Duration)
    /// The upload fails with the error of the attempt.
    case giveUp
}
