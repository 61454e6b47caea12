/// Adapts every upload of an app. It can add a credential or a signature, and decide what to do after a failure.
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
/// A resumable upload (``ResumptionPolicy``) makes several requests. Interceptors adapt only the caller's request, and
/// its header fields are sent with all the requests. So a signature of the method or path is valid only for that
/// request.
///
/// An interceptor has no time limit of its own. When the upload is cancelled or times out, the interceptor's task is
/// cancelled, and the interceptor must end soon.
///
/// ``BearerTokenInterceptor`` is an interceptor for tokens that expire. After a redirect to another origin,
/// interceptors are not called, so that the other origin gets no credentials.
public protocol UploadInterceptor: Sendable {
    /// Changes a request before it is sent. This method is called for every attempt with the caller's request, in the
    /// order of the client's interceptors.
    ///
    /// - Parameters:
    ///   - request: The request. To change the URL, make another request.
    ///   - attempt: The number of the attempt, from 1.
    /// - Throws: Any error, which the upload fails with. A queue tries the upload again (see
    ///   ``UploadError/Code/interceptorFailed``).
    func adapt(_ request: inout UploadRequest, attempt: Int) async throws

    /// Decides what to do after a failed attempt. The first decision other than ``UploadDecision/passOn`` counts. If
    /// there is none, the client's retry policy decides.
    ///
    /// This method is not called if the server has accepted the form, because an accepted form is never sent again.
    ///
    /// - Parameters:
    ///   - error: The error that the attempt failed with.
    ///   - attempt: The failed attempt, and the errors of earlier attempts.
    /// - Throws: Any error, which the upload fails with. A queue tries the upload again (see
    ///   ``UploadError/Code/interceptorFailed``).
    func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision
}

extension UploadInterceptor {
    /// The default implementation: leaves the request unchanged.
    public func adapt(_ request: inout UploadRequest, attempt: Int) async throws {}

    /// The default implementation: lets the next interceptor or the retry policy decide.
    public func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision { .passOn }
}

/// An error that an interceptor has thrown. The ``failure`` before it says what happened to the form.
package struct InterceptorError: Error {
    package let cause: any Error
    /// The failure of the latest attempt; `nil` if nothing was sent before.
    package let failure: UploadError?
}

/// A failed attempt that an interceptor decides about.
public struct UploadAttempt: Sendable {
    /// The request after the interceptors have adapted it.
    public let request: UploadRequest

    /// The number of the attempt, from 1.
    public let number: Int

    /// The errors of the attempts before this one, in order.
    public let earlierErrors: [UploadError]
}

/// The decision of an interceptor after a failure.
public enum UploadDecision: Sendable, Hashable {
    /// The next interceptor decides, or the retry policy after the last interceptor.
    case passOn
    /// The form is sent again after a delay, and ``UploadInterceptor/adapt(_:attempt:)`` is called for the new attempt.
    /// ``RetryPolicy/maximumInterceptorRetries`` limits the number of such retries. A form with a stream that can be
    /// read only once is not sent again.
    case retry(after: Duration)
    /// The upload fails with the error of the attempt.
    case giveUp
}
