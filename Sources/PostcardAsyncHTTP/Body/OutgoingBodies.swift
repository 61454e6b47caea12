import NIOHTTP1
import Synchronization

/// The bodies of the requests under way, by which the handler of a connection finds the one of its request.
///
/// AsyncHTTPClient does not say which connection carries a request. A header field does, which the connection's
/// ``BodyHandler`` takes out again before the head is written.
final class OutgoingBodies: Sendable {
    private static let markName = "Postcard-Body"

    private let state = Mutex(State())

    private struct State {
        var lastNumber = 0
        var bodies: [Int: OutgoingBody] = [:]
    }

    /// Puts the mark of a body into a request's head.
    ///
    /// - Returns: What ``remove(_:)`` takes.
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

    /// Takes the mark out of a request's head, and finds the body that it is of.
    func takeBody(from headers: inout HTTPHeaders) -> OutgoingBody? {
        guard let mark = headers.first(name: Self.markName) else { return nil }
        headers.remove(name: Self.markName)
        return Int(mark).flatMap { number in state.withLock { $0.bodies[number] } }
    }
}
