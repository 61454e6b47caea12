import Foundation
import PostcardClient
import PostcardFoundation
import PostcardQueue
import PostcardTestSupport
import PostcardTesting
import PostcardTransferDaemon
import Synchronization
import Testing

/// A phone whose system is the model of the transfer daemon, for what also happens to a ``TestPhone``. The test's own
/// process is the app's, and its time is a clock of the test.
final class DaemonPhone: Sendable {
    private enum Mode { case ended, foreground, background, suspended }

    private struct State {
        var mode = Mode.ended
        var process: DaemonProcess?
        var replacement: QueueSystem?
        var services: [DaemonTransferService] = []
        var queues: [UploadQueue] = []
        var network = NetworkPath()
        /// How many attempts have reached no server.
        var unseen = 0
        var isCutOff = false

        var isRunning: Bool { mode == .foreground || mode == .background }
    }

    let directory: URL
    let start = Date()
    let server: HeldServer
    private let folder: TemporaryFolder
    private let daemon: TransferDaemon
    private let clock = TestClock()
    private let state = Mutex(State())

    /// Starts a model, for one phone after the other.
    static func daemon(seed: UInt64 = 0) async throws -> TransferDaemon {
        var options = TransferDaemon.Options()
        options.manualTime = true
        options.connectionsPerHost = 1000
        options.requestTimeout = 300
        return try await TransferDaemon(options, seed: seed)
    }

    init(_ daemon: TransferDaemon, _ server: HeldServer) async throws {
        self.daemon = daemon
        self.server = server
        folder = try TemporaryFolder()
        directory = folder.url.appending(path: "queue")
        // Of phones before.
        let status = try await daemon.lose(.atOnce)
        state.withLock { $0.unseen = status[.started] }
    }

    private var elapsed: Duration { clock.now.sinceStart }
    private var date: Date { start.addingTimeInterval(elapsed / .seconds(1)) }

    // MARK: - The app

    private func system(isWakeUp: Bool) throws -> QueueSystem {
        let process = daemon.process()
        let activities = try DaemonActivities(socket: daemon.socket) {}
        let system = QueueSystem(
            service: { session in
                // A queue's database keeps a moment less exactly.
                let service = process.service(of: session.identifier, isWakeUp: isWakeUp) {
                    $0.timeIntervalSince(self.date) - 0.01
                }
                self.state.withLock { $0.services.append(service) }
                return service
            },
            time: QueueTime(
                date: { self.date }, instant: { self.clock.instant }, sleep: { try await self.clock.rest(until: $0) },
                pollInterval: .seconds(60)),
            activity: activities.system, networkPath: { self.state.withLock { $0.network } },
            freeBytes: { FreeSpace.bytes(at: $0) }, made: { queue in self.state.withLock { $0.queues.append(queue) } })
        state.withLock { state in
            state.mode = isWakeUp ? .background : .foreground
            state.process = process
            state.replacement = system
        }
        return system
    }

    func launch<App>(_ make: () async throws -> App) async throws -> App {
        try await run(make, in: try system(isWakeUp: false))
    }

    private func run<Value>(_ work: () async throws -> Value, in system: QueueSystem) async throws -> Value {
        let value = try await QueueSystem.$replacement.withValue(system) { try await work() }
        try await settle()
        return value
    }

    private func endProcess() async -> DaemonProcess? {
        let (queues, process) = state.withLock { state in
            defer { state = State(network: state.network, unseen: state.unseen) }
            return (state.queues, state.process)
        }
        for queue in queues { await queue.disconnect() }
        return process
    }

    func kill() async throws {
        let process = await endProcess()
        try await daemon.kill()
        await process?.end()
        try await settle()
    }

    func forceQuit() async throws {
        let process = await endProcess()
        try await daemon.forceQuit()
        await process?.end()
        try await settle()
    }

    func suspend() async throws {
        state.withLock { $0.mode = .suspended }
        try await daemon.suspend()
    }

    func resume() async throws {
        try await daemon.open()
        await catchUp(in: .foreground)
    }

    private func catchUp(in mode: Mode) async {
        state.withLock { $0.mode = mode }
        await clock.wakeAll(until: clock.instant) { await settleOrFail() }
    }

    /// The sessions for which the system wakes the app.
    var waking: [String] { get async throws { try await daemon.status().waking } }

    func wakeUp(_ handle: (String) async throws -> Void) async throws {
        let sessions = try await waking
        let (mode, present) = state.withLock { ($0.mode, $0.replacement) }
        var woken = present
        if mode == .suspended {
            try await daemon.wake()
            await catchUp(in: .background)
        } else {
            woken = try system(isWakeUp: true)
        }
        guard let woken else { throw ProgramFailure("There is no process.") }
        for session in sessions { try await run({ try await handle(session) }, in: woken) }
        try await suspend()
    }

    // MARK: - The system

    func set(_ network: NetworkPath) async throws {
        state.withLock { $0.network = network }
        try await daemon.setNetwork(isUp: network.isAvailable, isCellular: network.isCellular)
        try await settle()
    }

    func setLocked(_ isLocked: Bool) async throws { try await daemon.setResponses(areStored: !isLocked) }

    func advance(by duration: Duration) async throws {
        if state.withLock({ $0.isRunning }) {
            await clock.wakeAll(until: clock.instant + duration) { await settleOrFail() }
        } else {
            clock.pass(duration)
            try await settle()
        }
    }

    // MARK: - Uploads

    /// The number of uploads that the system has.
    var openCount: Int { get async throws { try await daemon.status().open.count } }

    func respond(with test: TestResponse, to path: String) async throws {
        let status = try await daemon.status()
        var response: UploadResponse?
        if case .response(let given) = test.kind { response = given }
        try await server.respond(to: path, with: response)
        if response?.status == .unauthorized, response?.headerFields[.wwwAuthenticate] != nil {
            try await daemon.wait(for: .challenged, atLeast: status[.challenged] + 1)
        } else {
            try await daemon.wait(for: .ended, atLeast: status[.ended] + 1)
        }
        try await settle()
    }

    /// Switches the network on while no server can be reached or a captive portal answers.
    func set(_ network: NetworkPath, failing response: TestResponse) async throws {
        state.withLock { $0.isCutOff = true }
        let isUntrusted = if case .untrusted = response.kind { true } else { false }
        try await daemon.setPortal(isUntrusted ? .tls : nil)
        try await daemon.setServers(areReachable: isUntrusted)
        try await set(network)
        try await daemon.setPortal(nil)
        let status = try await daemon.setServers(areReachable: true)
        state.withLock { state in
            state.isCutOff = false
            state.unseen = status[.started] - server.received
        }
    }

    private func settleOrFail() async {
        do {
            try await settle()
        } catch {
            Issue.record(error)
        }
    }

    /// Returns when nothing happens any more before the test does something.
    func settle() async throws {
        try await daemon.setTime(elapsed / .seconds(1))
        var counters: [String: Int]?
        try await eventually {
            let (queues, services, unseen) = state.withLock { state in
                (
                    state.isRunning ? state.queues : [], state.isRunning ? state.services : [],
                    state.isCutOff ? nil : state.unseen
                )
            }
            for queue in queues { await queue.rested() }
            // What the daemon has written before was received by then.
            for service in services { _ = try? await service.transfers() }
            for queue in queues { await queue.rested() }
            let status = try await daemon.status()
            defer { counters = status.counters }
            return status.isSettled && status.counters == counters
                && server.held.count == status.active
                && (unseen.map { status[.started] - $0 == server.received } ?? true)
        }
    }
}
