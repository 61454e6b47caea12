import NIOHTTP1
import PostcardClient

/// A body as the handler of a connection sends it.
struct OutgoingBody: Sendable {
    let blocks: BodyBlocks
    /// In bytes; `nil` where it is known only at the end.
    let length: Int64?
    /// Whether the server is asked first whether it wants it.
    let expectsContinue: Bool
    let report: @Sendable (TransportEvent) -> Void

    /// Says in a request's head how the body is framed (RFC 9112 §6).
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
