public import HTTPTypes

/// Sends one request to a server and returns the response.
///
/// A transport is small: it sends the body once, reports the bytes that it has sent, and knows nothing of retries,
/// progress for each part, statuses or timeouts. ``UploadClient`` does these for all transports.
///
/// A transport promises:
/// - The body is read while it is sent, and never held in memory as a whole.
/// - A body that cannot be read to its end is never ended as if it were complete; the connection is closed.
/// - A response that arrives while the body is still being sent is returned like any other, once all bytes sent so far
///   have been reported. If a transport reports nothing, the body counts as sent once there is a response.
/// - `.sent(bytes: 0)` is reported when the connection is made. An upload that times out before that counts as never sent.
/// - Redirects are not followed; a 3xx is a response like any other.
/// - If the task is cancelled, the connection is closed and ``send(_:reporting:)`` returns soon.
public protocol UploadTransport: Sendable {
    /// The header fields that ``UploadClient`` adds to each upload that has none of the same name. Defaults to none.
    ///
    /// The fields belong to the upload from then on: a redirect to another origin does not get credentials among them.
    var defaultHeaderFields: HTTPFields { get }

    /// Returns whether a body of known length is sent with its `Content-Length`, and not in chunks. Object stores accept
    /// no others. Defaults to `true`.
    ///
    /// - Parameter bytes: The length of the body.
    func sendsContentLength(of bytes: Int64) -> Bool

    /// Sends a request and returns the response, with any status.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - report: Called with each event; returns at once. Events of one kind must be reported one after the other;
    ///     bytes sent and bytes received may be reported at the same time.
    /// - Returns: The response with its whole body.
    /// - Throws: ``UploadError`` for failures of the connection; the errors of the body's reader unchanged, which are
    ///   `FormError` and the errors of the form's own streams; `CancellationError`.
    func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse
}

extension UploadTransport {
    public var defaultHeaderFields: HTTPFields { HTTPFields() }

    public func sendsContentLength(of bytes: Int64) -> Bool { true }
}
