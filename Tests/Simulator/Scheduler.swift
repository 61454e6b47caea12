import Foundation

/// Random numbers that a seed determines: SplitMix64.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }

    mutating func isTrue(_ probability: Double) -> Bool { fraction() < probability }
    mutating func fraction() -> Double { Double(next() >> 11) / Double(1 << 53) }
    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

    /// Short times are as likely as long ones.
    mutating func time(_ range: ClosedRange<Double>) -> Double {
        range.lowerBound * pow(range.upperBound / range.lowerBound, fraction())
    }
}

/// The time and the processes of a simulated world, all on one thread. Which of the jobs that are ready runs next is
/// random, and time only passes while none is.
final class Scheduler: @unchecked Sendable {
    private struct Timer {
        let time: Double
        let number: Int
        let action: () -> Void

        static func < (left: Timer, right: Timer) -> Bool {
            left.time == right.time ? left.number < right.number : left.time < right.time
        }
    }

    /// Seconds since the beginning.
    private(set) var now = 0.0
    var random: SeededRandom
    /// Called before some jobs with their process, so that it can be stopped anywhere.
    var interruption: (SimulatedProcess) -> Void = { _ in }
    var interruptionShare = 0.0
    private var ready: [(process: SimulatedProcess, job: UnownedJob)] = []
    /// A binary heap.
    private var timers: [Timer] = []
    private var lastTimer = 0
    private let thread = pthread_self()

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    func enqueue(_ job: UnownedJob, of process: SimulatedProcess) {
        // A job of another thread would come at another time in each run.
        precondition(pthread_self() == thread, "A task has left the simulation.")
        ready.append((process, job))
    }

    /// Takes the jobs of a process that is stopped.
    func removeJobs(of process: SimulatedProcess) -> [UnownedJob] {
        defer { ready.removeAll { $0.process === process } }
        return ready.filter { $0.process === process }.map(\.job)
    }

    func schedule(after seconds: Double, _ action: @escaping () -> Void) {
        lastTimer += 1
        timers.append(Timer(time: now + max(seconds, 0), number: lastTimer, action: action))
        var index = timers.count - 1
        while index > 0, timers[index] < timers[(index - 1) / 2] {
            timers.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private func popTimer() -> Timer? {
        guard let first = timers.first else { return nil }
        let last = timers.removeLast()
        guard !timers.isEmpty else { return first }
        timers[0] = last
        var index = 0
        while true {
            var smallest = index
            for child in [2 * index + 1, 2 * index + 2] where child < timers.count && timers[child] < timers[smallest] {
                smallest = child
            }
            guard smallest != index else { return first }
            timers.swapAt(index, smallest)
            index = smallest
        }
    }

    /// Runs until the condition holds.
    ///
    /// - Returns: `false` if nothing is left to run before it does, or it takes more than a million jobs.
    func run(until isDone: () -> Bool) -> Bool {
        var jobs = 0
        while !isDone() {
            if ready.isEmpty {
                guard let timer = popTimer() else { return false }
                now = timer.time
                timer.action()
            } else {
                let index = ready.count == 1 ? 0 : random.number(0...ready.count - 1)
                let (process, job) = ready[index]
                if interruptionShare > 0, random.isTrue(interruptionShare) {
                    interruption(process)
                    continue
                }
                ready.swapAt(index, ready.count - 1)
                ready.removeLast()
                job.runSynchronously(on: process.asUnownedTaskExecutor())
                jobs += 1
                if jobs > 1_000_000 { return false }
            }
        }
        return true
    }
}

/// What a task of a killed process gets from all that it waits for. So it ends without effect.
struct Killed: Error {}

/// A process of the simulation. Its tasks run on it alone.
final class SimulatedProcess: TaskExecutor, @unchecked Sendable {
    let scheduler: Scheduler
    private(set) var isDead = false
    private var parked: [UnownedJob]?
    private var stopped = 0.0
    /// What a planted bug remembers.
    let memory = PlantedMemory()
    private var stoppedSeconds = 0.0

    init(_ scheduler: Scheduler) { self.scheduler = scheduler }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if parked == nil { scheduler.enqueue(job, of: self) } else { parked?.append(job) }
    }

    var isStopped: Bool { parked != nil }

    /// As by SIGSTOP.
    func stop() {
        guard parked == nil else { return }
        parked = scheduler.removeJobs(of: self)
        stopped = scheduler.now
    }

    /// How long the process was not stopped.
    var runningTime: Double { scheduler.now - stoppedSeconds - (isStopped ? scheduler.now - stopped : 0) }

    /// As by SIGCONT.
    func resume() {
        guard let jobs = parked else { return }
        parked = nil
        stoppedSeconds += scheduler.now - stopped
        for job in jobs { scheduler.enqueue(job, of: self) }
    }

    /// As by SIGKILL.
    func kill() {
        isDead = true
        resume()
    }

    func sleep(_ seconds: Double) async throws {
        guard !isDead else { throw Killed() }
        await withUnsafeContinuation { continuation in
            scheduler.schedule(after: seconds) { continuation.resume() }
        }
        guard !isDead else { throw Killed() }
        try Task.checkCancellation()
    }

    /// Waits, in a process that is not killed.
    func pause(_ seconds: Double) async {
        await withUnsafeContinuation { continuation in
            scheduler.schedule(after: seconds) { continuation.resume() }
        }
    }
}
