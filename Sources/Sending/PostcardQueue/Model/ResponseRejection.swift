/// Why an app does not accept a server's response to a form: what ``BackgroundSession/accepts`` and
/// ``QueueOptions/accepts`` throw.
///
/// ```swift
/// session.accepts = { upload, response in
///     let answer = try response.decode(Answer.self)
///     if answer.isBusy { throw ResponseRejection("the server is busy", mayPass: true) }
///     guard answer.isStored else { throw ResponseRejection(answer.reason) }
/// }
/// ```
public struct ResponseRejection: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong with the response, for logs.
    public let reason: String

    /// Whether another attempt may succeed. It is made as after a connection that failed.
    public let mayPass: Bool

    /// Makes a rejection.
    ///
    /// - Parameters:
    ///   - reason: What is wrong with the response.
    ///   - mayPass: Whether another attempt may succeed. Defaults to `false`: the upload has failed.
    public init(_ reason: String, mayPass: Bool = false) {
        self.reason = reason
        self.mayPass = mayPass
    }

    public var description: String { reason }
}
