public import HTTPTypes

/// An event of a request in progress.
public enum TransportEvent: Sendable, Hashable {
    /// There is no network; the request waits until there is one.
    case waitingForNetwork
    /// Bytes of the body were handed to the connection: this many so far. 0 means that the connection was made.
    case sent(bytes: Int64)
    /// An interim response (RFC 9110 §15.2) was received, such as 104 (Upload Resumption Supported), which says where
    /// an interrupted upload resumes. A transport whose HTTP library hides interim responses reports none.
    case informed(status: HTTPResponse.Status, headerFields: HTTPFields)
    /// Bytes of the response body were received: this many so far. 0 means that the head was received.
    case received(bytes: Int)
}
