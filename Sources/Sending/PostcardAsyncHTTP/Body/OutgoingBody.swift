import NIOHTTP1
import PostcardClient

/// A body for the handler of a connection to send.
struct OutgoingBody: Sendable {
    let blocks: BodyBlocks
    /// The number of bytes; `nil` if it is known only at the end.
    let length: Int64?
    /// Whether the request has `Expect: 100-continue`, so that the body waits for the server.
    let expectsContinue: Bool
    let report: @Sendable (TransportEvent) -> Void

    /// The maximum number of bytes given to the connection and not yet in the socket.
    static let maximumBytesInFlight = 512 << 10

    /// Sets the header fields that say how the body is framed (RFC 9112 §6).
    func frame(_ headers: inout HTTPHeaders) {
        if let length {
            headers.replaceOrAdd(name: "Content-Length", value: "\(length)")
            headers.remove(name: "Transfer-Encoding")
        } else {
            headers.replaceOrAdd(name: "Transfer-Encoding", value: "chunked")
            headers.remove(name: "Content-Length")
        }
    }
}
