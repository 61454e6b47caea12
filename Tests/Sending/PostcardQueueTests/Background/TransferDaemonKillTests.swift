import Foundation
import PostcardClient
import PostcardQueue
import PostcardTestSupport
import PostcardTransferDaemon
import Testing

/// An app that is killed, launched, opened and quit in random order.
@Suite(.timeLimit(.minutes(90))) struct TransferDaemonKillTests {
    /// The size of the run. `Tests/TransferDaemon/seeds` makes large ones. To repeat one, set POSTCARD_DAEMON_SEED.
    struct Scale: Sendable, CustomTestStringConvertible {
        let forms = number("FORMS", 60)
        let kills = number("KILLS", 20)
        let opens = number("OPENS", 6)
        let quits = number("QUITS", 3)
        let redirects = number("REDIRECTS", 6)
        let invalidations = number("INVALIDATIONS", 3)
        let cancellations = number("CANCELLATIONS", 3)
        let suspensions = number("SUSPENSIONS", 10)
        let restarts = number("RESTARTS", 2)
        /// Forms that the extension sends, without the app being opened for them.
        let shares = number("SHARES", 6)
        /// How often a captive portal comes, and goes again.
        let portals = number("PORTALS", 3)
        /// Uploads that end while the app is gone.
        let unseen = number("UNSEEN", 0)
        /// Requests that the system repeats without a report.
        let repeats = number("REPEATS", 1)
        /// The maximum number of uploads that the system has at a time.
        let open = number("OPEN", 100)
        let seed = number("SEED", Int.random(in: 0..<1_000_000_000))

        var testDescription: String {
            "\(forms) forms, \(kills) kills, \(opens) opens, \(quits) force-quits, \(redirects) redirects, "
                + "\(invalidations) invalidations, \(cancellations) cancellations, \(suspensions) suspensions, "
                + "\(restarts) restarts, \(shares) shares, \(portals) portals, \(open) open, seed \(seed)"
        }

        private static func number(_ name: String, _ usual: Int) -> Int {
            ProcessInfo.processInfo.environment["POSTCARD_DAEMON_\(name)"].flatMap(Int.init) ?? usual
        }
    }

    /// An event in the life of the app.
    private enum Event {
        case kill, open, quit, invalidate, cancel, suspend, restart, share, portal
    }

    /// How a server redirects a form.
    private enum Route: String, CaseIterable {
        /// Within the origin. The system sends the form there.
        case moved = "/moved"
        /// To a page. The system gets it, without the form, and the queue does not know what that says. A client takes
        /// it for the response.
        case page = "/page"
        /// To another origin. The system sends the form there, and it arrives at a server of which the queue does not
        /// know. A client follows such a redirect, and then it is done.
        case elsewhere = "/elsewhere"
    }

    private struct Record: Decodable {
        struct Field: Decodable {
            let name: String
            let value: String
        }
        let id: String
        let fields: [Field]
    }

    @Test(arguments: [Scale()])
    func `each form arrives once, even if the app is killed and quit`(scale: Scale) async throws {
        let folder = try TemporaryFolder()
        let server = try await ReceivingServer()
        try await FaultProxy.run(before: server.url) { [location = server.uploads.absoluteString] request in
            switch Route(rawValue: request.path) {
            case .moved: .response(.init(307, ["Location": "/uploads"]))
            case .page: .response(.init(303, ["Location": "/uploads"]))
            case .elsewhere: .response(.init(307, ["Location": location]))
            case nil: .none
            }
        } while: { proxy in
            let routes = Self.routes(scale)
            let addresses = routes.map { $0.map { proxy.url.appending(path: $0.rawValue) } ?? server.uploads }
            var plan = BackgroundAppPlan(
                directory: folder.url.appending(path: "queue").path, socket: "", session: "org.example.app",
                forms: 0, fileBytes: 20_000, addresses: addresses)
            plan.firstShared = scale.forms
            let outcomes = folder.url.appending(path: "outcomes")
            try Data().write(to: outcomes)
            plan.outcomes = outcomes.path
            plan.maximumOpenUploads = scale.open
            plan.library = folder.url.appending(path: "library").path
            try plan.makeLibrary(of: scale.forms)
            let file = folder.url.appending(path: "plan").path
            let program = Program.url.deletingLastPathComponent().appending(path: "PostcardBackgroundApp")
            let daemon = try await TransferDaemon(
                Self.options(scale), seed: UInt64(scale.seed), app: [program.path, file])
            plan.socket = daemon.socket
            var times = Times()
            let filled = try await times.measure("filling") { try await Self.fill(daemon, &plan, file, scale) }
            try await Self.live(daemon, &plan, file, scale, &times)

            // The user opens the app, which sends the rest. In the time of the queue's clock, the run takes about a
            // day, after which an upload fails that the system has ended each time.
            plan.forms = scale.forms
            plan.retriesInterrupted = true
            try plan.write(to: file)
            try await daemon.setPortal(nil)
            let status = try await times.measure("the rest") {
                // A suspended process would go on with the plan that it has.
                try await daemon.kill()
                try await daemon.waitUntilResting()
                try await daemon.open()
                return try await daemon.waitUntilResting()
            }
            times.report(status)
            #expect(status.failures == [])
            #expect(status.transfers == [])
            #expect(status[.killed] >= scale.kills)
            #expect(status[.forceQuits] == scale.quits)
            #expect(status[.opens] >= scale.opens)
            #expect((filled...scale.open).contains(status[.mostOpen]), "\(status[.mostOpen]) open")
            #expect(status[.suspended] >= scale.suspensions)
            #expect(status[.killedWithLock] == 0 && status[.overran] == 0)
            #expect(status[.retried] >= scale.repeats)
            #expect(status[.endedUnseen] >= scale.unseen)
            // In a short run, nothing may be sent while there is a portal.
            #expect(scale.unseen == 0 || status[.intercepted] >= scale.portals && status[.unstored] > 0)
            try await Self.check(plan, routes, daemon, server)
        }
    }

    private static func options(_ scale: Scale) -> TransferDaemon.Options {
        var options = TransferDaemon.Options()
        options.duplicate = 0.2
        options.drop = 0.25
        options.linksFiles = scale.seed.isMultiple(of: 2)
        options.eventDelay = 0.01
        options.relaunchDelay = 0.05
        options.resourceTimeout = 20
        options.creation = 0.000_01
        options.unstored = 0.1
        options.rateLimit = 0.01
        options.longestRateLimit = 0.1
        return options
    }

    /// The route of each form: a few of the app's are redirected, the others go straight to the server.
    private static func routes(_ scale: Scale) -> [Route?] {
        var routes = [Route?](repeating: nil, count: scale.forms + scale.shares)
        for redirect in 0..<scale.redirects {
            routes[redirect * scale.forms / scale.redirects] = Route.allCases[redirect % Route.allCases.count]
        }
        return routes
    }

    /// Lets the app hand over as many uploads as the system may have at a time, which nothing sends before there is a
    /// network. Every fourth run begins with all forms, so that these can be a thousand.
    ///
    /// - Returns: The number of uploads that the system has.
    private static func fill(
        _ daemon: TransferDaemon, _ plan: inout BackgroundAppPlan, _ file: String, _ scale: Scale
    ) async throws -> Int {
        plan.forms = scale.seed.isMultiple(of: 4) ? scale.forms : scale.forms / 4
        try plan.write(to: file)
        try await daemon.setNetwork(isUp: false)
        try await daemon.open()
        let count = min(plan.forms, scale.open)
        try await daemon.wait(for: .mostOpen, atLeast: count)
        try await daemon.setNetwork(isUp: true)
        return count
    }

    /// Simulates the events in random order, while the app gets more and more forms to send.
    private static func live(
        _ daemon: TransferDaemon, _ plan: inout BackgroundAppPlan, _ file: String, _ scale: Scale, _ times: inout Times
    ) async throws {
        var chance = SeededGenerator(seed: UInt64(scale.seed))
        let events =
            (Array(repeating: Event.kill, count: scale.kills) + Array(repeating: .open, count: scale.opens)
            + Array(repeating: .quit, count: scale.quits)
            + Array(repeating: .invalidate, count: scale.invalidations)
            + Array(repeating: .cancel, count: scale.cancellations)
            + Array(repeating: .suspend, count: scale.suspensions)
            + Array(repeating: .restart, count: scale.restarts) + Array(repeating: .share, count: scale.shares)
            + Array(repeating: .portal, count: 2 * scale.portals)).shuffled(using: &chance)
        var (cancellations, portals, shares) = (0, 0, 0)
        for (index, event) in events.enumerated() {
            // New forms for each process.
            plan.forms = max(plan.forms, scale.forms / 4 + scale.forms * 3 * index / (4 * events.count))
            try plan.write(to: file)
            // Nothing happens by itself, for example after a force-quit: the user opens the app.
            if try await daemon.status().isResting { try await daemon.open() }
            let status = try await times.measure("between events") { try await proceed(daemon, &chance) }
            try await times.measure("\(event)") {
                switch event {
                case .open: try await daemon.open()
                case .quit: try await daemon.forceQuit()
                case .invalidate: try await daemon.invalidate()
                case .cancel:
                    let reasons = TransferDaemon.CancellationReason.allCases
                    try await daemon.cancelAll(reasons[cancellations % reasons.count])
                    cancellations += 1
                case .kill: try await kill(daemon, from: status, &chance)
                case .suspend: try await suspend(daemon, from: status, &chance)
                case .restart: try await restart(daemon, hiding: plan.directory, &chance)
                case .share:
                    try await share(plan.firstShared + shares, plan, daemon)
                    shares += 1
                case .portal:
                    let kinds = TransferDaemon.Portal.allCases
                    try await daemon.setPortal(portals.isMultiple(of: 2) ? kinds[portals / 2 % kinds.count] : nil)
                    portals += 1
                }
            }
        }
    }

    /// Where the time of a large run goes. `Tests/TransferDaemon/seeds` prints that.
    private struct Times {
        private var spent: [String: Duration] = [:]

        mutating func measure<Value>(_ name: String, _ work: () async throws -> Value) async rethrows -> Value {
            let start = ContinuousClock.now
            let value = try await work()
            spent[name, default: .zero] += .now - start
            return value
        }

        func report(_ status: TransferDaemon.Status) {
            guard ProcessInfo.processInfo.environment["POSTCARD_DAEMON_KILLS"] != nil else { return }
            let parts = spent.sorted { $0.value > $1.value }.map { "\($0.key) \(Int($0.value / .seconds(1)))" }
            print("Seconds spent: \(parts.joined(separator: ", "))")
            let counters = status.counters.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            print("Happened: \(counters.joined(separator: ", "))")
        }
    }

    /// Waits for a few things to happen, and a little longer. Sometimes the process has not made its queue by then.
    private static func proceed(
        _ daemon: TransferDaemon, _ chance: inout SeededGenerator
    ) async throws -> TransferDaemon.Status {
        if Int.random(in: 0..<5, using: &chance) > 0 { try await daemon.waitForConnection() }
        let count = Int.random(in: 1...8, using: &chance)
        return try await daemon.letHappen(count, then: Double.random(in: 0..<0.03, using: &chance))
    }

    /// Kills a process of the app. Sometimes the system crashes instead and loses transfers.
    private static func kill(
        _ daemon: TransferDaemon, from status: TransferDaemon.Status, _ chance: inout SeededGenerator
    ) async throws {
        let share = Int.random(in: 0..<8, using: &chance) == 0 ? 0.5 : 0
        let before = status[.killed]
        for attempt in 0..<4 {
            let status = try await daemon.kill(losing: share)
            if status[.killed] > before { return }
            // No process was running. The system may launch one, or else the user opens the app.
            if attempt > 0 { try await daemon.open() }
            _ = try await proceed(daemon, &chance)
        }
        try await daemon.launchAndKill()
    }

    /// Suspends a process of the app. If there is none, the user opens the app first. A process that has nothing to do
    /// ends before it could be suspended.
    private static func suspend(
        _ daemon: TransferDaemon, from status: TransferDaemon.Status, _ chance: inout SeededGenerator
    ) async throws {
        for _ in 0..<4 {
            if try await daemon.suspend()[.suspended] > status[.suspended] { return }
            try await daemon.open()
            _ = try await proceed(daemon, &chance)
        }
        try await daemon.launchAndSuspend()
    }

    /// Sends a form as the extension does, in a process and a session of its own, and ends it. The app may run meanwhile.
    private static func share(_ number: Int, _ plan: BackgroundAppPlan, _ daemon: TransferDaemon) async throws {
        let process = daemon.process("extension \(number)")
        let session = plan.settings(of: BackgroundSession(extension: plan.sharing, appGroup: "group.org.example"))
        let queue = UploadQueue(
            directory: URL(filePath: plan.directory), session: session,
            service: process.service(of: session.identifier), retention: .all, time: FastTime.time)
        try await plan.enqueue(number, in: queue)
        // What cannot be handed over is in the queue, and the app sends it.
        do { try await queue.handOver() } catch is UploadQueueError {}
        await queue.disconnect()
        await process.end()
    }

    /// Restarts the device, and unlocks it a little later.
    private static func restart(
        _ daemon: TransferDaemon, hiding directory: String, _ chance: inout SeededGenerator
    ) async throws {
        guard FileManager.default.fileExists(atPath: directory) else { return }
        try await daemon.lockDevice(hiding: URL(filePath: directory))
        _ = try await proceed(daemon, &chance)
        // A process that was launched meanwhile has no queue, and the user opens another one.
        try await daemon.kill()
        try await daemon.unlockDevice()
    }

    /// Checks that each upload is done and its form stored, or that it failed with a reason and kept its body.
    private static func check(
        _ plan: BackgroundAppPlan, _ routes: [Route?], _ daemon: TransferDaemon, _ server: ReceivingServer
    ) async throws {
        let queue = UploadQueue(
            directory: URL(filePath: plan.directory), session: BackgroundSession(identifier: plan.session),
            service: daemon.service(), retention: .all, outcome: { try plan.noteOutcome(of: $0) })
        let uploads = try await queue.uploads()
        #expect(uploads.count == routes.count)
        // The app may have ended before it was told of the last ones.
        await queue.handleEvents()
        let outcomes = try String(contentsOf: URL(filePath: plan.outcomes ?? ""), encoding: .utf8)
            .split(separator: "\n")
        #expect(Set(outcomes) == Set(uploads.map { Substring("\($0.id)") }))
        var stored: Set<String> = []
        var failed: [Route?] = []
        for upload in uploads {
            switch upload.state {
            case .done(let response) where response.status == 200:
                let route = routes[try #require(try upload.tag(as: Int.self))]
                #expect(route == .page)
                failed.append(route)
            case .done(let response):
                guard let record = try? JSONDecoder().decode(Record.self, from: response.body) else {
                    Issue.record("\(upload.id): \(response.status) \(String(decoding: response.body, as: UTF8.self))")
                    continue
                }
                let name = record.fields.first { $0.name == "name" }?.value
                let number = try #require((0..<routes.count).first { BackgroundAppPlan.name(of: $0) == name })
                #expect(response.status == 201)
                #expect(routes[number] != .page, "\(number)")
                #expect(stored.insert(record.id).inserted, "Two uploads have the response \(record.id)")
            case .failed(let failure):
                #expect(!failure.message.isEmpty)
                let route = routes[try #require(try upload.tag(as: Int.self))]
                #expect(route == .page || route == .elsewhere, "\(upload.id): \(failure)")
                failed.append(route)
                #expect(try await queue.bodyExists(upload.id), "\(upload.id): \(failure)")
            default:
                Issue.record("Upload \(upload.id) has not ended: \(upload.state)")
            }
        }
        #expect(stored.count + failed.count == routes.count)
        let remains = try await server.end()
        #expect(remains.exitStatus == 0)
        #expect(remains.records.count == stored.count + failed.count { $0 == .elsewhere })
        #expect(stored.isSubset(of: remains.records))
        #expect(remains.unfinished == [])
    }
}
