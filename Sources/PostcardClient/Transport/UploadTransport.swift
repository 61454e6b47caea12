public import HTTPTypes

/// What carries one request to a server and its response back.
///
/// A transport is small: it sends the body that it is given, if any, once, and knows nothing of retries, progress per
/// part, statuses or time. ``UploadClient`` has those, once for all transports.
///
/// A transport promises:
/// - The body is read from the layout while it is sent, never held whole.
/// - A body that cannot be read to its end is never ended as if it were whole; the connection is closed.
/// - A response that comes while the body is still going out is given back as that response, once all that was sent of
///   the body has been reported. Of a transport that reports nothing the body counts as sent.
/// - Redirects are not followed; a 3xx is a response like any other.
/// - Where the task is cancelled, the connection is closed and ``send(_:reporting:)`` soon returns.
public protocol UploadTransport: Sendable {
    /// The header fields that ``UploadClient`` adds to every upload which has none of that name. Defaults to none.
    ///
    /// They are the upload's own from then on: a redirect to another origin takes no credentials along.
    var defaultHeaderFields: HTTPFields { get }

    /// Sends a request, and gives back whatever the server answers, refusals included.
    ///
    /// - Parameters:
    ///   - request: What to send, and where.
    ///   - report: Told of every step, and returns at once. Steps of one kind come one after the other; a body
    ///     that goes out and a response that comes in may be reported at the same time.
    /// - Returns: The response with its whole body.
    /// - Throws: ``UploadError`` for what happens on the way; the errors of the form's reader unchanged, which
    ///   are `FormError` and those of the form's own streams; `CancellationError`.
    func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse
}

extension UploadTransport {
    public var defaultHeaderFields: HTTPFields { HTTPFields() }
}

/// A step of a request under way.
public enum TransportEvent: Sendable {
    /// There is no network; the request waits until there is one.
    case waitingForNetwork
    /// Bytes of the body were handed to the connection.
    case sent(BodyProgress)
    /// Bytes of the response came; how many so far, the head not counted. 0 means the head alone.
    case received(bytes: Int)
}

/// How far the body has been handed to the connection.
public struct BodyProgress: Sendable, Hashable {
    /// The number of the body's bytes that the connection has taken.
    public var bytesSent: Int64

    /// Where the content of each part begun so far lies in the body, as the form's reader tells it.
    public var contentRanges: [Range<Int64>]

    /// Whether these are all of the body's bytes. Only of a body whose length is not known beforehand must a transport
    /// say so.
    public var isWhole: Bool

    /// - Parameters:
    ///   - bytesSent: The number of the body's bytes that the connection has taken.
    ///   - contentRanges: `FormReader.contentRanges` of a reader that is at least as far.
    ///   - isWhole: Whether these are all of the body's bytes.
    public init(bytesSent: Int64, contentRanges: [Range<Int64>], isWhole: Bool = false) {
        self.bytesSent = bytesSent
        self.contentRanges = contentRanges
        self.isWhole = isWhole
    }
}
