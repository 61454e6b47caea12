import PostcardClient
import Synchronization

/// URLSession with a clock that a test sets forward.
struct JumpingTransport: TimedTransport {
    final class Clock: UploadClock {
        private let jumped = Mutex(Duration.zero)
        private var ahead: Duration { jumped.withLock { $0 } }

        var instant: ContinuousClock.Instant { .now + ahead }

        func jump(_ duration: Duration) {
            jumped.withLock { $0 += duration }
        }

        func sleep(until end: ContinuousClock.Instant) async throws {
            try await ContinuousClock().sleep(until: end - ahead)
        }

        func wait(until end: ContinuousClock.Instant, then call: @Sendable () -> Void) async throws {
            try await sleep(until: end)
            call()
        }

        func note(_ change: Int) {}

        func cancel(_ cancel: @escaping @Sendable () -> Void) { Task { cancel() } }
    }

    let clock: Clock
    let time: UploadTime
    private let transport = URLSessionTransport()

    init() {
        clock = Clock()
        time = UploadTime(clock)
    }

    func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        try await transport.send(request, reporting: report)
    }
}
