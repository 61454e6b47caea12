/// What an app adds to every upload: a credential, a signature, a decision on what to do after a failure.
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
/// An upload that goes on after a cut (``ResumptionPolicy``) takes several requests: interceptors adapt the one that the
/// caller asked for, and all of them carry its header fields. A signature of the method or the path does not fit them.
///
/// An interceptor may take its time and has to heed the cancellation of its task, by which an upload ends that is
/// cancelled or whose time is over.
///
/// ``BearerTokenInterceptor`` is one for tokens that expire. Of a place on another origin to which a server redirects,
/// interceptors are not asked, so that what they add stays with those for whom it is meant.
public protocol UploadInterceptor: Sendable {
    /// Changes a request before it is sent; called for every attempt, in the order of the client's interceptors, and
    /// always with what the caller asked for.
    ///
    /// - Parameters:
    ///   - request: The request. Another URL is set by making another request.
    ///   - attempt: Which attempt it is, from 1.
    /// - Throws: Whatever ends the upload; it is passed on unchanged.
    func adapt(_ request: inout UploadRequest, attempt: Int) async throws

    /// Says what to do after a failed attempt. The first interceptor that does not pass on decides; where all do, the
    /// client's retry policy does.
    ///
    /// Nobody is asked where the server has accepted the form: that is never sent again.
    ///
    /// - Parameters:
    ///   - error: What ended the attempt.
    ///   - attempt: What was sent, and what happened before.
    /// - Throws: Whatever is to end the upload instead of the error; it is passed on unchanged.
    func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision
}

extension UploadInterceptor {
    /// Changes nothing.
    public func adapt(_ request: inout UploadRequest, attempt: Int) async throws {}

    /// Passes on.
    public func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision { .passOn }
}

/// What an interceptor wants done after a failure.
public enum UploadDecision: Sendable, Hashable {
    /// Whoever comes next decides.
    case passOn
    /// The form is sent again after a while, with ``UploadInterceptor/adapt(_:attempt:)`` called anew. How often is
    /// limited by ``UploadClient/maximumInterceptorRetries``, and a form that holds a stream which can be read only
    /// once is not sent again.
    case retry(after: Duration)
    /// The error is thrown; nothing is tried again.
    case giveUp
}

/// A failed attempt, as an interceptor sees it.
public struct UploadAttempt: Sendable {
    /// What was sent: the request as the interceptors adapted it.
    public let request: UploadRequest

    /// Which attempt of the upload it is, from 1.
    public let number: Int

    /// What ended the attempts before, in order.
    public let earlierErrors: [UploadError]
}
