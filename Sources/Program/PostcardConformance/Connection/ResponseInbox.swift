import NIOCore
import Synchronization

/// The responses of a connection, from its event loop to the task that waits for them.
final class ResponseInbox: Sendable {
    private struct State {
        var reader = ResponseReader()
        var responses: [RawResponse] = []
        /// Why there are no more; `nil` while the connection is open.
        var failure: ConnectionFailure?
        var count = 0
        /// About how much memory the unread responses take, in bytes.
        var bytes = 0
        var waiter: (number: Int, continuation: CheckedContinuation<Void, Never>)?
        var waits = 0
    }

    private let state = Mutex(State())

    /// The maximum number of responses on a connection. A hostile server sends interim responses for ever.
    static let maximumResponses = 10_000
    /// The maximum memory of unread responses, in bytes. A hostile server also responds to requests that were not made.
    static let maximumBytes = 16 << 20

    /// Whether the connection may have further responses.
    var isOpen: Bool { state.withLock { $0.failure == nil } }

    func beginRequest(isHead: Bool) {
        state.withLock { $0.reader.answersHead = isHead }
    }

    // MARK: - From the event loop

    func receive(_ bytes: some Sequence<UInt8>) {
        change { state in
            guard state.failure == nil else { return }
            do throws(ConnectionFailure) {
                let responses = try state.reader.read(bytes)
                state.count += responses.count
                guard state.count <= Self.maximumResponses else { throw ConnectionFailure.tooMany }
                state.bytes += responses.reduce(0) { $0 + $1.memoryBytes }
                guard state.bytes <= Self.maximumBytes else { throw ConnectionFailure.tooManyBytes }
                state.responses += responses
            } catch {
                state.failure = error
            }
        }
    }

    /// The connection has ended, because of a failure or not.
    func end(_ failure: ConnectionFailure = .closed) {
        change { state in
            guard state.failure == nil else { return }
            do throws(ConnectionFailure) {
                if let last = try state.reader.readEnd() {
                    state.bytes += last.memoryBytes
                    state.responses.append(last)
                }
                state.failure = failure
            } catch {
                state.failure = error
            }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiter = state.withLock { state in
            body(&state)
            return state.waiter.take()
        }
        waiter?.continuation.resume()
    }

    // MARK: - To a task

    /// The next response.
    ///
    /// - Returns: `nil` at the deadline, or if the task is cancelled.
    /// - Throws: `ConnectionFailure` if there are no more.
    func next(
        before deadline: ContinuousClock.Instant, on loop: any EventLoop
    ) async throws(ConnectionFailure) -> RawResponse? {
        while true {
            let result: Result<RawResponse, ConnectionFailure>? = state.withLock { state in
                guard !state.responses.isEmpty else { return state.failure.map { .failure($0) } }
                let response = state.responses.removeFirst()
                state.bytes -= response.memoryBytes
                return .success(response)
            }
            if let result { return try result.get() }
            guard ContinuousClock.now < deadline, !Task.isCancelled else { return nil }
            await wait(until: deadline, on: loop)
        }
    }

    /// Waits for the end of the connection, and drops the responses until then.
    ///
    /// - Returns: Whether it came before the deadline.
    func waitForEnd(before deadline: ContinuousClock.Instant, on loop: any EventLoop) async -> Bool {
        do {
            while try await next(before: deadline, on: loop) != nil {}
            return false
        } catch {
            return true
        }
    }

    private func wait(until deadline: ContinuousClock.Instant, on loop: any EventLoop) async {
        let number = state.withLock { state in
            state.waits += 1
            return state.waits
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if !state.responses.isEmpty || state.failure != nil || Task.isCancelled { return true }
                    state.waiter = (number, continuation)
                    return false
                }
                if isOver { return continuation.resume() }
                loop.scheduleTask(in: TimeAmount(deadline - .now)) { self.endWait(number) }
            }
        } onCancel: {
            endWait(number)
        }
    }

    private func endWait(_ number: Int) {
        let waiter = state.withLock { state in
            state.waiter?.number == number ? state.waiter.take() : nil
        }
        waiter?.continuation.resume()
    }
}
