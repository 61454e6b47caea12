import Foundation
import NIOCore
import PostcardForm
import PostcardS3
import PostcardServer

/// Receivers that share a bucket, and clients that use them, in one process. All that happens follows from the seed.
final class Simulation: @unchecked Sendable {
    /// What became of a seed.
    struct Result {
        let seed: UInt64
        let steps: Int
        /// The hash of all that happened, if the trace is for that.
        let hash: UInt64
        let broken: (promise: Promise, what: String)?
    }

    let seed: UInt64
    let scheduler: Scheduler
    let store: SimulatedStore
    let network: SimulatedNetwork
    let promises: Promises
    let trace: Trace
    let receivers: [SimulatedReceiver]
    /// The clients' process, which is never killed.
    let clients: SimulatedProcess
    let leastSteps: Int
    /// Whether some things take hours.
    let isPatient: Bool
    var running = 0
    var isEnding = false
    var lastForm = 0
    var lastCall = 0
    var formsOfKeys: [String: [Form]] = [:]
    var resumables: [Promises.Resumable] = []

    init(seed: UInt64, plant: Plant?, leastSteps: Int, trace purpose: Trace.Purpose) {
        self.seed = seed
        self.leastSteps = leastSteps
        scheduler = Scheduler(seed: seed)
        trace = Trace(purpose)
        store = SimulatedStore(scheduler, pageSize: [2, 3, 10, 1000].randomElement(using: &scheduler.random) ?? 2)
        network = SimulatedNetwork(scheduler, store, .random(&scheduler.random), trace)
        promises = Promises(scheduler, store)
        clients = SimulatedProcess(scheduler)
        isPatient = scheduler.random.isTrue(0.5)
        let partBytes = scheduler.random.number(12...40)
        receivers = (0..<scheduler.random.number(2...3)).map { [network] _ in
            SimulatedReceiver(network, plant, partBytes: partBytes)
        }
        for receiver in receivers { receiver.skew = skew() }
    }

    /// How far the clock of a receiver may be wrong, in seconds.
    static let maximumSkew = 280.0

    func skew() -> Double { (scheduler.random.fraction() - 0.5) * (2 * Self.maximumSkew) }
    var isOver: Bool { isEnding || network.steps >= leastSteps || promises.broken != nil }

    func say(_ text: @autoclosure () -> String) { trace.add(scheduler.now, text()) }

    func begin(_ body: @escaping @Sendable () async -> Void) {
        running += 1
        Task(executorPreference: clients) {
            await body()
            self.running -= 1
        }
    }

    func wait() {
        guard scheduler.run(until: { running == 0 }) else { return promises.breaks(.progress, "Nothing goes on") }
    }

    func run() -> Result {
        for receiver in receivers { receiver.start() }
        for _ in 0..<scheduler.random.number(3...6) { begin { await self.client() } }
        begin { await self.sweeper() }
        begin { await self.chaos() }
        if isPatient {
            scheduler.interruption = { process in
                if let receiver = self.receivers.first(where: { $0.process === process }) { self.stop(receiver) }
            }
            scheduler.interruptionShare = scheduler.random.time(0.0001...0.005)
        }
        wait()
        (scheduler.interruption, scheduler.interruptionShare) = ({ _ in }, 0)
        if promises.broken == nil { outlast() }
        if promises.broken == nil { end() }
        for receiver in receivers { receiver.kill() }
        // Tasks of killed processes end without effect. What they wait for is over in time.
        let end = scheduler.now + 200_000
        scheduler.schedule(after: 200_000) {}
        _ = scheduler.run { scheduler.now >= end }
        return Result(seed: seed, steps: network.steps, hash: trace.hash, broken: promises.broken)
    }

    // MARK: - Calls

    /// Makes a request to a receiver, which may be gone.
    func call<Value: Sendable>(
        _ receiver: SimulatedReceiver, timeout: Double, on connection: ClientConnection? = nil,
        _ body: @escaping @Sendable (S3UploadStore, SimulatedProcess) async throws -> Value
    ) async -> Swift.Result<Value, any Error> {
        await clients.pause(scheduler.random.time(0.001...0.1))
        guard let store = receiver.store, receiver.isRunning else { return .failure(Killed()) }
        let process = receiver.process
        lastCall += 1
        let id = lastCall
        do {
            return .success(
                try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Value, any Error>) in
                    let answer = Answer(continuation)
                    Task(executorPreference: process) {
                        let result: Swift.Result<Value, any Error>
                        do {
                            result = .success(try await Call.$id.withValue(id) { try await body(store, process) })
                        } catch {
                            result = .failure(error)
                        }
                        let delay = self.scheduler.random.time(0.001...0.1)
                        let isLost = process.isDead || self.scheduler.random.isTrue(self.isEnding ? 0 : 0.03)
                        self.scheduler.schedule(after: delay) {
                            answer.give(isLost || process.isDead ? .failure(Killed()) : result)
                        }
                    }
                    self.scheduler.schedule(after: timeout) {
                        if answer.give(.failure(Killed())) { connection?.close() }
                    }
                })
        } catch {
            return .failure(error)
        }
    }

    func anyReceiver() -> SimulatedReceiver { receivers[scheduler.random.number(0...receivers.count - 1)] }

    func pace(_ connection: ClientConnection) -> SimulatedReceiver.Pace {
        let count = scheduler.random.isTrue(0.5) ? 0 : scheduler.random.number(1...4)
        let longest = isPatient && !isEnding && scheduler.random.isTrue(0.2) ? 70_000.0 : 10
        let pauses = (0..<count).map { _ in scheduler.random.time(0.001...longest) }
        return SimulatedReceiver.Pace(
            connection: connection, pauses: pauses, pieceBytes: scheduler.random.number(4...50))
    }

    func timeout(_ pace: SimulatedReceiver.Pace) -> Double {
        scheduler.random.isTrue(0.1) && !isEnding
            ? scheduler.random.time(0.01...60) : pace.pauses.reduce(200, +)
    }

    // MARK: - What else happens

    func sweeper() async {
        while !isOver {
            await clients.pause(scheduler.random.time(1...(isPatient ? 30_000 : 600)))
            await sweep(anyReceiver())
        }
    }

    func sweep(_ receiver: SimulatedReceiver) async {
        let start = scheduler.now
        let result = await call(receiver, timeout: 7200) { store, _ in try await store.sweep() }
        if case .success = result { promises.swept(from: start) }
        say("sweep: \(Self.text(result.map { _ in "done" }))")
        if case .failure(let error) = result, isEnding { promises.breaks(.progress, "A sweep fails: \(error)") }
    }

    /// Kills and stops receivers, and sets their clocks.
    func chaos() async {
        while !isOver {
            await clients.pause(scheduler.random.time(0.01...(isPatient ? 40_000 : 60)))
            let receiver = anyReceiver()
            switch scheduler.random.number(0...9) {
            case ..<4:
                // Most that are stopped for long shall go on afterwards, and find that much has changed.
                if receiver.process.isStopped, scheduler.random.isTrue(0.9) { continue }
                say("kill")
                receiver.kill()
                await clients.pause(scheduler.random.time(0.01...60))
                if !receiver.isRunning { receiver.start() }
            case ..<8:
                stop(receiver)
            default: receiver.skew = skew()
            }
        }
    }

    func stop(_ receiver: SimulatedReceiver) {
        let process = receiver.process
        guard !process.isStopped else { return }
        // A day is longer than anything may take.
        let isLong = isPatient && scheduler.random.isTrue(0.3)
        let seconds = scheduler.random.time(isLong ? 90_000...160_000 : 0.01...(isPatient ? 60_000 : 300))
        say("stop for \(seconds)")
        process.stop()
        scheduler.schedule(after: seconds) { process.resume() }
    }

    // MARK: - End

    /// While some receivers are stopped for a day, the files of their uploads grow old, and the others sweep.
    func outlast() {
        guard isPatient, receivers.contains(where: \.process.isStopped) else { return }
        pass(scheduler.random.time(87_000...100_000))
        begin {
            for receiver in self.receivers where !receiver.process.isStopped { await self.sweep(receiver) }
        }
        wait()
    }

    /// When all is well again, uploads succeed, all records are there, and nothing else is left once it is old.
    func end() {
        isEnding = true
        network.weather = .fair
        for receiver in receivers { receiver.process.resume() }
        // Requests that were late arrive.
        pass(1500)
        // One receiver is enough.
        for receiver in receivers { receiver.kill() }
        begin { await self.useLastReceiver() }
        wait()
        guard promises.broken == nil else { return }
        for receiver in receivers where !receiver.isRunning { receiver.start() }
        pass(60)
        begin {
            for receiver in self.receivers {
                for _ in 0..<5 {
                    guard let id = self.promises.acknowledged.randomElement(using: &self.scheduler.random) else {
                        return
                    }
                    await self.read(id, receiver)
                }
            }
        }
        wait()
        begin { await self.commitWithoutListing() }
        wait()
        pass(100_000)
        // Longer than the lifetime of an unfinished upload. The last sweep has the pages of before: many of them take time.
        let pageSize = store.pageSize
        store.pageSize = 1000
        for _ in 0..<4 {
            begin { await self.sweep(self.anyReceiver()) }
            wait()
            pass(100_000)
        }
        store.pageSize = pageSize
        begin { await self.sweep(self.anyReceiver()) }
        wait()
        if promises.broken == nil { promises.checkRest() }
    }

    func pass(_ seconds: Double) {
        begin { await self.clients.pause(seconds) }
        wait()
    }

    /// A large file that takes minutes is stored in parts, which a sweep meanwhile must leave alone.
    func sendWhileSwept(_ receiver: SimulatedReceiver) async {
        lastForm += 1
        let form = Form(number: lastForm, files: [Array(repeating: UInt8(truncatingIfNeeded: lastForm), count: 100)])
        promises.add(form)
        let pauses = (0..<6).map { _ in scheduler.random.time(1...60) }
        let pace = SimulatedReceiver.Pace(connection: ClientConnection(), pauses: pauses, pieceBytes: 20)
        begin {
            // Sweeps make most of the requests of a history: not one for each pause.
            for (index, pause) in pauses.enumerated() {
                await self.clients.pause(pause)
                if index.isMultiple(of: 2) { await self.sweep(receiver) }
            }
        }
        let result = await call(receiver, timeout: 600) { store, process in
            try await SimulatedReceiver.receive(form, under: nil, pace, in: store, on: process)
        }
        say("post \(form.number) slowly: \(Self.text(result))")
        guard case .success(.created(let record)) = result else {
            return promises.breaks(.progress, "A slow upload fails while the bucket is swept: \(Self.text(result))")
        }
        promises.created(record, form)
    }

    /// Kills a receiver that has just committed a record and not listed it yet. No client asks for the record again, so its
    /// files grow as old as those that a sweep removes.
    func commitWithoutListing() async {
        let receiver = anyReceiver()
        let key = UploadKey("unlisted key", scope: "simulation")
        let form = newForm(key)
        let changes = store.changes
        store.changes = { key, old, new in
            changes(key, old, new)
            if key.hasPrefix("keys/"), new != nil { receiver.kill() }
        }
        _ = await send(form, under: key, tries: 1, to: receiver)
        store.changes = changes
        if !receiver.isRunning { receiver.start() }
        await clients.pause(60)
    }

    /// Enough tries to reach the one receiver that runs twice in a row, in each of millions of histories.
    private static let manyTries = 400

    func useLastReceiver() async {
        let receiver = anyReceiver()
        receiver.start()
        await clients.pause(60)
        guard receiver.store != nil else { return promises.breaks(.progress, "A receiver does not start") }
        let key = UploadKey("last key", scope: "simulation")
        let form = newForm(key)
        var isDone = false
        for _ in 0..<Self.manyTries where !isDone { isDone = await send(form, under: key, tries: 1) }
        guard isDone else { return promises.breaks(.progress, "An upload fails while one receiver runs") }
        await sendWhileSwept(receiver)
        for resumable in resumables where !resumable.isDiscarded && resumable.expires > scheduler.now + 100_000 {
            guard promises.broken == nil else { return }
            let isDone = await proceed(with: resumable, tries: Self.manyTries)
            if !isDone, !resumable.isGone {
                promises.breaks(.progress, "\(resumable.id.text) is not finished while one receiver runs")
            }
        }
    }
}
