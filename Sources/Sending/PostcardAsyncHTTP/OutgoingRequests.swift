import NIOHTTP1
import PostcardClient
import Synchronization

/// A request for the handler of its connection.
struct OutgoingRequest: Sendable {
    /// The body, which the handler sends; `nil` for a request without one.
    let body: OutgoingBody?
    let report: @Sendable (TransportEvent) -> Void
    let beginning: RequestBeginning
}

/// Whether bytes of a request were given to the system. Before that, no server can have any of it.
final class RequestBeginning: Sendable {
    private let state = Mutex(false)

    var isSent: Bool { state.withLock { $0 } }

    func noteSent() {
        state.withLock { $0 = true }
    }
}

/// The requests in progress, where the handler of a connection finds its own.
///
/// AsyncHTTPClient does not say which connection a request uses. So a header field identifies the request, and the
/// connection's ``BodyHandler`` removes that field before the head is written.
final class OutgoingRequests: Sendable {
    private static let markName = "Postcard-Request"

    private let state = Mutex(State())

    private struct State {
        var lastNumber = 0
        var requests: [Int: OutgoingRequest] = [:]
    }

    /// Adds a request, and the field that identifies it to its header.
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

    /// What the header of a request says of it.
    enum Marking {
        /// The request is not one of the transport's.
        case none
        case request(OutgoingRequest)
        /// The request is over, and was removed.
        case removed
    }

    /// Removes the field from the header of a request, and returns the request that it identifies.
    func takeRequest(from headers: inout HTTPHeaders) -> Marking {
        guard let mark = headers.first(name: Self.markName) else { return .none }
        headers.remove(name: Self.markName)
        let request = Int(mark).flatMap { number in state.withLock { $0.requests[number] } }
        return request.map(Marking.request) ?? .removed
    }
}

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
