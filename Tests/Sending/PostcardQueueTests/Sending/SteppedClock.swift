import Foundation
import Synchronization

@testable import PostcardQueue

/// A clock that does not move until the test advances it. It starts a year from now, so that nothing is due by other
/// clocks.
final class SteppedClock: Sendable {
    private struct State {
        var elapsed = Duration.zero
        var sleepers: [(end: ContinuousClock.Instant, continuation: AsyncStream<Never>.Continuation)] = []
    }

    private let start = (date: Date(timeIntervalSinceNow: 31_536_000), instant: ContinuousClock.now)
    private let state = Mutex(State())
    private let sleeper = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    private var elapsed: Duration { state.withLock { $0.elapsed } }

    var date: Date { start.date.addingTimeInterval(elapsed / .seconds(1)) }

    var time: QueueTime {
        QueueTime(
            date: { self.date }, instant: { self.start.instant + self.elapsed },
            sleep: {
                await self.sleep(until: $0)
                try Task.checkCancellation()
            })
    }

    private func sleep(until end: ContinuousClock.Instant) async {
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        state.withLock { $0.sleepers.append((end, continuation)) }
        wake()
        sleeper.continuation.yield()
        for await _ in stream {}
    }

    /// Waits until something sleeps, or has slept.
    func waitForSleeper() async {
        for await _ in sleeper.stream { return }
    }

    /// Waits until something sleeps until a later time.
    ///
    /// - Parameter longest: How long it sleeps at most. Defaults to no limit.
    func waitForSleep(ofAtMost longest: Duration? = nil) async {
        if isAsleep(ofAtMost: longest) { return }
        for await _ in sleeper.stream where isAsleep(ofAtMost: longest) { return }
    }

    private func isAsleep(ofAtMost longest: Duration?) -> Bool {
        state.withLock { state in
            let latest = longest.map { start.instant + state.elapsed + $0 }
            return state.sleepers.contains { sleeper in latest.map { sleeper.end <= $0 } ?? true }
        }
    }

    func advance(by duration: Duration) {
        state.withLock { $0.elapsed += duration }
        wake()
    }

    private func wake() {
        let due = state.withLock { state in
            let now = start.instant + state.elapsed
            defer { state.sleepers.removeAll { $0.end <= now } }
            return state.sleepers.filter { $0.end <= now }
        }
        for sleeper in due { sleeper.continuation.finish() }
    }
}
