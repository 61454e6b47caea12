#if AsyncHTTP
import NIOHTTP1
import Synchronization

/// The expectations of the requests under way, by which the handler of a connection finds the one of its request.
///
/// AsyncHTTPClient does not say which connection carries a request. A header field does, which the connection's
/// ``ExpectationHandler`` takes out again before the head is written.
final class Expectations: Sendable {
    private static let markName = "Postcard-Expectation"

    private let state = Mutex(State())

    private struct State {
        var lastNumber = 0
        var pending: [Int: Expectation] = [:]
    }

    /// Puts the mark of an expectation into a request's head.
    ///
    /// - Returns: What ``remove(_:)`` takes.
    func add(_ expectation: Expectation, marking headers: inout HTTPHeaders) -> Int {
        let number = state.withLock { state in
            state.lastNumber += 1
            state.pending[state.lastNumber] = expectation
            return state.lastNumber
        }
        headers.replaceOrAdd(name: Self.markName, value: "\(number)")
        return number
    }

    func remove(_ number: Int) {
        state.withLock { $0.pending[number] = nil }
    }

    /// Takes the mark out of a request's head, and finds the expectation that it is of.
    func takeExpectation(from headers: inout HTTPHeaders) -> Expectation? {
        guard let mark = headers.first(name: Self.markName) else { return nil }
        headers.remove(name: Self.markName)
        return Int(mark).flatMap { number in state.withLock { $0.pending[number] } }
    }
}
#endif
