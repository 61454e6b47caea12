import Foundation
import Synchronization
import Testing

@testable import PostcardClient

@Suite(.timeLimit(.minutes(10))) struct SharedTimerTests {
    /// Counts the calls of a callback.
    private final class Calls: Sendable {
        private let state = Mutex((running: 0, overlapping: 0))

        var overlapping: Int { state.withLock { $0.overlapping } }

        func run() {
            state.withLock { state in
                if state.running > 0 { state.overlapping += 1 }
                state.running += 1
            }
            Thread.sleep(forTimeInterval: 0.01)
            state.withLock { $0.running -= 1 }
        }
    }

    @Test func `the calls of one callback do not overlap, although others are added meanwhile`() async {
        let timer = SharedTimer()
        let calls = Calls()
        let (begun, continuation) = AsyncStream.makeStream(of: Void.self)
        let number = timer.add(at: .now) { now in
            continuation.yield()
            calls.run()
            return now
        }
        var turns = begun.makeAsyncIterator()
        for _ in 0..<50 {
            await turns.next()
            timer.remove(timer.add(at: .now) { _ in nil })
        }
        timer.remove(number)
        #expect(calls.overlapping == 0)
    }

    @Test func `a callback is called again when it says so, until it says never`() async throws {
        let timer = SharedTimer()
        let (times, continuation) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
        let start = ContinuousClock.now
        let due = [20, 40, 60].map { start.advanced(by: .milliseconds($0)) }
        _ = timer.add(at: due[0]) { now in
            continuation.yield(now)
            if let next = due.first(where: { $0 > now }) { return next }
            continuation.finish()
            return nil
        }
        var last: ContinuousClock.Instant?
        for await time in times { last = time }
        #expect(try #require(last) >= due[2])
    }

    @Test func `a callback is called in time, although another adds a later one meanwhile`() async throws {
        let timer = SharedTimer()
        let (calls, continuation) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
        let due = ContinuousClock.now.advanced(by: .milliseconds(50))
        let later = due.advanced(by: .seconds(3600))
        _ = timer.add(at: due) { now in
            continuation.yield(now)
            continuation.finish()
            return nil
        }
        _ = timer.add(at: .now) { _ in
            _ = timer.add(at: later) { _ in nil }
            return nil
        }
        var times: [ContinuousClock.Instant] = []
        for await time in calls { times.append(time) }
        #expect(times.count == 1 && times.allSatisfy { due <= $0 && $0 < later }, "\(times)")
    }
}
