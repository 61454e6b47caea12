import NIOHTTP1
import PostcardClient
import Synchronization

/// A request in progress, for the handler of its connection.
struct OutgoingRequest: Sendable {
    /// The body that the handler sends; `nil` for a request without a body.
    let body: OutgoingBody?
    let report: @Sendable (TransportEvent) -> Void
    let beginning: RequestBeginning
}

/// Whether any bytes of a request were passed to the system. Before that, no server can have any of the request.
final class RequestBeginning: Sendable {
    private let state = Mutex(false)

    var isSent: Bool { state.withLock { $0 } }

    func noteSent() {
        state.withLock { $0 = true }
    }
}

/// The requests in progress. The handler of each connection finds its own request here.
///
/// AsyncHTTPClient does not say which connection a request uses. So a header field identifies the request. The
/// connection's ``BodyHandler`` removes that field before the head is written.
final class OutgoingRequests: Sendable {
    private static let markName = "Postcard-Request"

    private let state = Mutex(State())

    private struct State {
        var lastNumber = 0
        var requests: [Int: OutgoingRequest] = [:]
    }

    /// Adds a request to the registry, and a field that identifies the request to its header.
    ///
    /// - Returns: The number to pass to ``remove(_:)``.
    func add(_ request: OutgoingRequest, marking headers: inout HTTPHeaders) -> Int {
        let number = state.withLock { state in
            state.lastNumber += 1
            state.requests[state.lastNumber] = request
            return state.lastNumber
        }
        headers.replaceOrAdd(name: Self.markName, value: "\(number)")
        return number
    }

    func remove(_ number: Int) {
        state.withLock { $0.requests[number] = nil }
    }

    /// The result of looking for the request that a header belongs to.
    enum Marking {
        /// The header has no identifying field: the request was not made by this transport.
        case none
        case request(OutgoingRequest)
        /// The request has ended and was removed.
        case removed
    }

    /// Removes the identifying field from a request's header, and returns the request that it identifies.
    func takeRequest(from headers: inout HTTPHeaders) -> Marking {
        guard let mark = headers.first(name: Self.markName) else { return .none }
        headers.remove(name: Self.markName)
        let request = Int(mark).flatMap { number in state.withLock { $0.requests[number] } }
        return request.map(Marking.request) ?? .removed
    }
}

/// The body of a request, which the handler of the connection sends.
struct OutgoingBody: Sendable {
    let blocks: BodyBlocks
    /// The number of bytes of the body; `nil` if it is known only at the end.
    let length: Int64?
    /// Whether the request has `Expect: 100-continue`, so that the body waits for the server's response.
    let expectsContinue: Bool
    let report: @Sendable (TransportEvent) -> Void

    /// The maximum number of bytes passed to the connection that the socket has not accepted yet.
    static let maximumBytesInFlight = 512 << 10

    /// Sets the header fields that mark the end of the body for the server (RFC 9112 §6).
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
