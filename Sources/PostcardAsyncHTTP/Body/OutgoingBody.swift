import NIOHTTP1
import PostcardClient
import Synchronization

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

/// The bodies of the requests in progress, where the handler of a connection finds that of its request.
///
/// AsyncHTTPClient does not say which connection a request uses. So a header field identifies the body, and the
/// connection's ``BodyHandler`` removes that field before the head is written.
final class OutgoingBodies: Sendable {
    private static let markName = "Postcard-Body"

    private let state = Mutex(State())

    private struct State {
        var lastNumber = 0
        var bodies: [Int: OutgoingBody] = [:]
    }

    /// Adds a body, and the field that identifies it to the header of its request.
    ///
    /// - Returns: The number to pass to ``remove(_:)``.
    func add(_ body: OutgoingBody, marking headers: inout HTTPHeaders) -> Int {
        let number = state.withLock { state in
            state.lastNumber += 1
            state.bodies[state.lastNumber] = body
            return state.lastNumber
        }
        headers.replaceOrAdd(name: Self.markName, value: "\(number)")
        return number
    }

    func remove(_ number: Int) {
        state.withLock { $0.bodies[number] = nil }
    }

    /// What the header of a request says of its body.
    enum Marking {
        /// The request has no body.
        case none
        case body(OutgoingBody)
        /// The request is over, and its body was removed.
        case removed
    }

    /// Removes the field from the header of a request, and returns the body that it identifies.
    func takeBody(from headers: inout HTTPHeaders) -> Marking {
        guard let mark = headers.first(name: Self.markName) else { return .none }
        headers.remove(name: Self.markName)
        let body = Int(mark).flatMap { number in state.withLock { $0.bodies[number] } }
        return body.map(Marking.body) ?? .removed
    }
}
