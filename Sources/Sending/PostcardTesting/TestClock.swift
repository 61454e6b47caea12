import PostcardClient
import Synchronization

/// A clock on which time passes only when the test advances it.
///
/// ```swift
/// let clock = TestClock()
/// let server = TestServer(.created(["id": "7"]).slowly(bytesPerSecond: 10_000), clock: clock)
/// let model = PetModel(client: UploadClient(transport: server))
/// let sending = Task { await model.send() }
/// await clock.advance(by: .seconds(1))
/// #expect(model.fraction > 0.4)
/// ```
///
/// The clock sets the delays before retries, the timeouts and the progress of clients that send to the server. The
/// app's own code can use it as a `Clock` too.
public final class TestClock: Clock, Sendable {
    /// A time on the clock.
    public struct Instant: InstantProtocol, Sendable {
        /// The time since the clock was made.
        public let sinceStart: Duration

        /// The time after a further duration.
        public func advanced(by duration: Duration) -> Instant { Instant(sinceStart: sinceStart + duration) }
        /// The duration from this time to another time.
        public func duration(to other: Instant) -> Duration { other.sinceStart - sinceStart }
        public static func < (left: Instant, right: Instant) -> Bool { left.sinceStart < right.sinceStart }
    }

    /// The kind of task that sleeps.
    private enum Kind {
        case upload, timer
        /// A task of the app. The clock does not know when such a task has finished its work.
        case other
    }

    private struct Sleeper {
        let end: Duration
        let kind: Kind
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var elapsed = Duration.zero
        var sleepers: [Int: Sleeper] = [:]
        var lastNumber = 0
        /// The number of pieces of work that uploads have left before they wait for the clock or end.
        var work = 0
        var advances = 0
        var isAdvancing = false
        /// Whether time passes by itself, without calls of the test.
        var isAutomatic: Bool
        /// The tasks that wait for a condition.
        var watchers: [Int: (condition: @Sendable (State) -> Bool, continuation: CheckedContinuation<Bool, Never>)] =
            [:]

        mutating func number() -> Int {
            lastNumber += 1
            return lastNumber
        }

        /// Removes a sleeper, whose task then continues its work.
        mutating func wake(_ number: Int) -> Sleeper? {
            guard let sleeper = sleepers.removeValue(forKey: number) else { return nil }
            if sleeper.kind != .other { work += 1 }
            return sleeper
        }

        /// Whether an upload waits for the clock, and no task of the app waits for the clock.
        var isUploadAsleep: Bool {
            sleepers.values.contains { $0.kind == .upload } && !sleepers.values.contains { $0.kind == .other }
        }

        /// The sleeper that is due first, at the given time or earlier.
        func due(at end: Duration) -> Int? {
            sleepers.filter { $0.value.end <= end }.min { ($0.value.end, $0.key) < ($1.value.end, $1.key) }?.key
        }
    }

    private let start = ContinuousClock.now
    private let state: Mutex<State>
    private let reporter = TestReporter()
    private let location: TestLocation

    /// Waits as long as a test may hang before the clock reports the cause: 10 seconds, or longer on a machine that is
    /// busy with other tests.
    private static func patience() async throws {
        for _ in 0..<100 {
            try await Task.sleep(for: .milliseconds(100))
            await MainActor.run {}
        }
    }

    /// Makes a clock that the test advances.
    public convenience init(
        fileID: String = #fileID, filePath: StaticString = #filePath, line: UInt = #line
    ) {
        self.init(isAutomatic: false, at: TestLocation(fileID: fileID, filePath: filePath, line: line))
    }

    init(isAutomatic: Bool, at location: TestLocation) {
        state = Mutex(State(isAutomatic: isAutomatic))
        self.location = location
    }

    /// The time that has passed.
    public var now: Instant { Instant(sinceStart: state.withLock { $0.elapsed }) }

    /// A nanosecond, the smallest step of the clock.
    public var minimumResolution: Duration { .nanoseconds(1) }

    var isAutomatic: Bool { state.withLock { $0.isAutomatic } }

    /// Suspends the caller until the test has advanced the clock to a given time.
    ///
    /// - Throws: `CancellationError`.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try await suspend(until: deadline.sinceStart, as: .other)
    }

    /// Advances the clock. Returns when all uploads have ended or wait for the clock again, and have reported progress.
    ///
    /// If no task waits for the clock yet, the method first waits for an upload to begin. The test fails if no upload
    /// begins within about 10 seconds, or if an upload waits that long for something other than the clock.
    ///
    /// - Parameters:
    ///   - duration: How far to advance the clock.
    ///   - fileID: The location at which failures are reported. Defaults to the caller.
    ///   - filePath: See `fileID`.
    ///   - line: See `fileID`.
    public func advance(
        by duration: Duration, fileID: String = #fileID, filePath: StaticString = #filePath, line: UInt = #line
    ) async {
        let location = TestLocation(fileID: fileID, filePath: filePath, line: line)
        guard await wait(until: { $0.work > 0 || $0.sleepers.values.contains { $0.kind != .timer } }) else {
            return reporter.fail(
                "Nothing waits for the clock. Begin an upload to its server before, or advance it less often.",
                at: location)
        }
        let end = change { state in
            state.advances += 1
            state.isAdvancing = true
            return state.elapsed + duration
        }
        defer { change { $0.isAdvancing = false } }
        repeat {
            repeat {
                guard await wait(until: { $0.work == 0 }) else {
                    return reporter.fail(
                        "An upload waits for something else than the clock, so time cannot pass. Look at its form's "
                            + "streams and preparations, at its interceptors, and at what its progress closure calls.",
                        at: location)
                }
                // If only uploads sleep, the next wake-up follows. Otherwise the app may have work to do first, such as
                // beginning another upload. The clock does not know about this work. So it yields several times, which
                // is probably enough for the app to finish the work.
                guard state.withLock({ !$0.isUploadAsleep }) else { break }
                for _ in 0..<20 { await Task.yield() }
            } while state.withLock { $0.work > 0 }
        } while step(to: end)
    }

    /// Advances the clock until the next sleeper is due, and wakes that sleeper. Returns `false` if the clock has
    /// reached `end` first.
    private func step(to end: Duration) -> Bool {
        let sleeper = change { state -> Sleeper? in
            guard let number = state.due(at: end) else {
                state.elapsed = max(state.elapsed, end)
                return nil
            }
            let sleeper = state.wake(number)
            state.elapsed = max(state.elapsed, sleeper?.end ?? end)
            return sleeper
        }
        guard let sleeper else { return false }
        sleeper.continuation.resume()
        return true
    }

    /// Changes the state, and resumes the tasks whose conditions are now met.
    private func change<Value: Sendable>(_ change: (inout State) -> Value) -> Value {
        let (value, satisfied) = state.withLock { state in
            let value = change(&state)
            let numbers = state.watchers.filter { $0.value.condition(state) }.keys
            return (value, numbers.compactMap { state.watchers.removeValue(forKey: $0)?.continuation })
        }
        for continuation in satisfied { continuation.resume(returning: true) }
        return value
    }

    /// Waits until a condition is met. Returns `false` if the wait takes too long.
    private func wait(until condition: @escaping @Sendable (State) -> Bool) async -> Bool {
        if state.withLock({ condition($0) }) { return true }
        let number = change { $0.number() }
        let limit = Task { [weak self] in
            try await Self.patience()
            self?.state.withLock { $0.watchers.removeValue(forKey: number) }?.continuation.resume(returning: false)
        }
        defer { limit.cancel() }
        return await withCheckedContinuation { continuation in
            let holds = state.withLock { state in
                if condition(state) { return true }
                state.watchers[number] = (condition, continuation)
                return false
            }
            if holds { continuation.resume(returning: true) }
        }
    }

    private func suspend(until end: Duration, as kind: Kind) async throws {
        let number = change { $0.number() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = change { state -> Result<Void, any Error>? in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.isAutomatic, kind != .timer { state.elapsed = max(state.elapsed, end) }
                    if end <= state.elapsed { return .success(()) }
                    state.sleepers[number] = Sleeper(end: end, kind: kind, continuation: continuation)
                    if kind != .other { state.work -= 1 }
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            change { $0.wake(number) }?.continuation.resume(throwing: CancellationError())
        }
    }
}

// MARK: - The clock of a queue

extension TestClock {
    /// Suspends a task of a queue until a given time.
    package func rest(until end: ContinuousClock.Instant) async throws {
        try await suspend(until: end - start, as: .other)
    }

    /// Advances the clock while no task runs.
    package func pass(_ duration: Duration) { change { $0.elapsed += duration } }

    /// Wakes the sleepers that are due until a given time, one after the other.
    ///
    /// - Parameter settle: Called after each wake-up. It must return when the task has finished its work.
    package func wakeAll(until end: ContinuousClock.Instant, settle: () async -> Void) async {
        await settle()
        while step(to: end - start) { await settle() }
        await settle()
    }
}

// MARK: - The clock of uploads

extension TestClock: UploadClock {
    package var instant: ContinuousClock.Instant { start.advanced(by: state.withLock { $0.elapsed }) }

    package func sleep(until end: ContinuousClock.Instant) async throws {
        try await sleepUpload(until: end - start)
    }

    /// Suspends an upload until it is cancelled.
    func sleepForever() async throws { try await sleepUpload(until: .seconds(Int64.max)) }

    private func sleepUpload(until end: Duration) async throws {
        let watch = isAutomatic ? nil : watchForStandstill()
        defer { watch?.cancel() }
        try await suspend(until: end, as: .upload)
    }

    package func wait(until end: ContinuousClock.Instant, then call: @Sendable () -> Void) async throws {
        try await suspend(until: end - start, as: .timer)
        call()
    }

    package func note(_ change: Int) { self.change { $0.work += change } }

    package func cancel(_ cancel: @escaping @Sendable () -> Void) { cancel() }

    /// Fails the test if it does not advance the clock while an upload sleeps. From then on time passes by itself, so
    /// that the test ends.
    private func watchForStandstill() -> Task<Void, any Error> {
        Task { [weak self] in
            while let before = self?.state.withLock({ $0.advances }) {
                try await Self.patience()
                self?.endStandstill(since: before)
            }
        }
    }

    private func endStandstill(since advances: Int) {
        let sleepers = change { state -> [Sleeper] in
            guard state.advances == advances, !state.isAdvancing, !state.isAutomatic else { return [] }
            state.isAutomatic = true
            return state.sleepers.filter { $0.value.kind != .timer }.keys.compactMap { state.wake($0) }
        }
        guard !sleepers.isEmpty else { return }
        reporter.fail(
            "An upload waits for the clock, which the test does not advance: await clock.advance(by: .seconds(1)).",
            at: location)
        for sleeper in sleepers { sleeper.continuation.resume(throwing: CancellationError()) }
    }
}
