import Foundation
import HTTPTypes
import PostcardForm
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// Histories of uploads, from the first attempt to the end. They are the same for an upload in the foreground, for a
/// queue in this process, and for one that the system sends.
@Suite struct QueueMachineTests {
    typealias Fate = QueueWorld.Fate

    struct History: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var policy = RetryPolicy.exact
        var totalTimeout: Duration?
        let fates: [Fate]
        /// When the attempts begin, in seconds, each of which ends at once.
        let begins: [Int]
        let state: String
        /// The same for the system, if that differs: it may send a form several times in one attempt, and has no limit
        /// for all attempts.
        var inBackground: (begins: [Int], state: String)?

        init(
            _ testDescription: String, _ fates: [Fate], at begins: [Int], _ state: String,
            inBackground: (begins: [Int], state: String)? = nil, totalTimeout: Duration? = nil,
            _ change: (inout RetryPolicy) -> Void = { _ in }
        ) {
            self.testDescription = testDescription
            self.fates = fates
            self.begins = begins
            self.state = state
            self.inBackground = inBackground
            self.totalTimeout = totalTimeout
            change(&policy)
        }
    }

    static let histories = [
        History("a form that is accepted", [.accepted], at: [0], "done"),
        History("a lost response", [.lost, .accepted], at: [0, 1], "done"),
        History("a connection that breaks in the middle", [.cut, .cut, .accepted], at: [0, 1, 3], "done"),
        History(
            "a form that is still in progress", [.lost, .refused(409), .refused(409, after: 9), .accepted],
            at: [0, 1, 3, 12], "done"),
        History(
            "a conflict that lasts", [.lost, .refused(409), .refused(409)], at: [0, 1, 3], "failed"
        ) { $0.maximumConflicts = 2 },
        History(
            "a conflict about a form that cannot have arrived", [.refused(409)], at: [0], "failed",
            inBackground: ([0, 1], "done")),
        History(
            "a success before the whole form was sent", [.early], at: [0], "failed", inBackground: ([0], "done")),
        History("the same after a lost response", [.lost, .early], at: [0, 1], "done"),
        History(
            "the same after a refusal: that server does not have the form", [.refused(503), .early], at: [0, 1],
            "failed", inBackground: ([0, 1], "done")),
        History("a form that is too large", [.refused(413)], at: [0], "failed"),
        History("a redirect to another origin", [.redirected], at: [0], "failed"),
        History("a redirect that drops the form", [.replaced], at: [0], "failed"),
        History(
            "a busy server", [.refused(503), .refused(503), .refused(503)], at: [0, 1, 3], "failed"
        ) { $0.maximumAttempts = 3 },
        History("a server that says when", [.refused(429, after: 60), .accepted], at: [0, 60], "done"),
        History(
            "the deadline", [.refused(503), .refused(503), .refused(503)], at: [0, 1, 3], "failed"
        ) { $0.deadline = .seconds(5) },
        History("the deadline and a server that says when", [.refused(503, after: 61)], at: [0], "failed") {
            $0.deadline = .seconds(60)
        },
        History(
            "the time for all attempts", [.cut, .cut, .cut], at: [0, 1, 3], "failed",
            inBackground: ([0, 1, 3, 7], "done"), totalTimeout: .seconds(5)),
        History(
            "a server that is down for a week", Array(repeating: .cut, count: 345) + [.lost, .refused(409), .accepted],
            at: (0...11).map { (1 << $0) - 1 } + (1...336).map { 2047 + $0 * 1800 }, "done"
        ) { policy in
            policy.maximumAttempts = 1000
            policy.maximumDelay = .seconds(1800)
        },
    ]

    private static func rules(_ history: History, session: String?) -> QueueMachine.Rules {
        QueueMachine.Rules(
            session: session, retryPolicy: history.policy, totalTimeout: session == nil ? history.totalTimeout : nil,
            maximumConcurrentUploads: session == nil ? 3 : 100)
    }

    @Test(arguments: histories)
    func `an upload in the foreground`(history: History) throws {
        let url = QueueWorld.url
        let request = try UploadRequest(
            url: url, method: .post, headerFields: [:], body: UploadBody(try MultipartForm().layout()),
            maximumResponseBytes: 1)
        var machine = DeliveryMachine(
            DeliveryMachine.Rules(url: url, retryPolicy: history.policy, totalTimeout: history.totalTimeout))
        var generator = SystemRandomNumberGenerator()
        var fates = history.fates[...]
        var elapsed = Duration.zero
        var begins: [Int] = []
        var event = DeliveryMachine.Event.started
        var state: String?
        while state == nil {
            let action = machine.handle(event, elapsed: elapsed, using: &generator)
            switch action {
            case .prepare: event = .prepared(request)
            case .adapt(let request, _): event = .adapted(request, KnownServer(support: .unlisted(inviting: nil)))
            case .send(_, _, let acceptsEarly, _):
                begins.append(Int(elapsed.components.seconds))
                let delivery: PossibleDelivery = acceptsEarly ? .responseLost(resource: nil) : .neverArrived
                let error = (fates.popFirst() ?? .accepted).error(at: url, after: delivery)
                let response = UploadResponse(status: .created, headerFields: [:], body: Data())
                event = error.map { .failed($0) } ?? .responded(response, from: url)
            case .wait(let delay, _, _):
                elapsed += delay
                event = .waited
            case .finish: state = "done"
            case .fail: state = "failed"
            case .check, .verify, .decide, .fault:
                Issue.record("\(action)")
                return
            }
        }
        #expect(begins == history.begins && state == history.state)
    }

    @Test(arguments: histories)
    func `an upload of a queue in this process`(history: History) {
        var world = QueueWorld(Self.rules(history, session: nil))
        world.script = history.fates
        world.enqueue()
        world.rest(rounds: 2000)
        #expect(world.begins == history.begins && world.uploads[0].state.name == history.state, "\(world.trace)")
    }

    @Test(arguments: histories)
    func `an upload that the system sends`(history: History) {
        var world = QueueWorld(Self.rules(history, session: "session"))
        world.script = history.fates
        world.enqueue()
        world.rest(rounds: 2000)
        let (begins, state) = history.inBackground ?? (history.begins, history.state)
        #expect(world.begins == begins && world.uploads[0].state.name == state, "\(world.trace)")
    }

    /// A token may have become too old while an upload waited.
    @Test(
        arguments: [
            (true, [401], [0, 0], "done"), (true, [401, 401], [0, 0], "failed"), (false, [401], [0], "failed"),
            (true, [401, 503, 401], [0, 0, 1, 1], "done"), (true, [403], [0], "failed"),
        ] as [(Bool, [Int], [Int], String)])
    func `an upload is handed over once more with fresh header fields if the server does not accept the old ones`(
        makesFields: Bool, statuses: [Int], begins: [Int], state: String
    ) {
        var rules = QueueMachine.Rules(session: "session", retryPolicy: .exact, maximumConcurrentUploads: 100)
        rules.makesFields = makesFields
        var world = QueueWorld(rules)
        world.script = statuses.map { .refused($0) }
        world.enqueue()
        world.rest()
        #expect(world.begins == begins && world.uploads[0].state.name == state, "\(world.trace)")
        #expect(!makesFields || state == "failed" || world.uploads[0].failures == statuses.count { $0 != 401 })
    }

    /// The app makes presigned forms, and this upload is not one of them.
    @Test func `an upload that is not presigned is retried by the policy, also if the app can make presigned forms`() {
        var rules = QueueMachine.Rules(session: "session", retryPolicy: .exact, maximumConcurrentUploads: 100)
        rules.makesForms = true
        var world = QueueWorld(rules)
        world.script = [.refused(503), .refused(413)]
        world.enqueue()
        world.rest()
        #expect(world.begins == [0, 1] && world.uploads[0].state.name == "failed", "\(world.trace)")
    }

    @Test(arguments: [Fate.redirected, .replaced])
    func `a form that the system has sent elsewhere, or something else instead, may have arrived`(fate: Fate) {
        var world = QueueWorld.withUpload(session: "session")
        world.script = [fate]
        world.rest()
        guard case .failed(let failure) = world.uploads[0].state else { Issue.record("\(world.trace)"); return }
        #expect(failure.code == .unclear && failure.delivery.mayHaveArrived)
        #expect(world.uploads[0].possibleDelivery == 1)
    }

    // MARK: - Processes that end, and changes in the meantime

    /// In this process, an attempt ends with the process. The system's continues.
    @Test(arguments: [(nil, [0, 4]), ("session", [0])] as [(String?, [Int])])
    func `a process is killed while an upload is sent`(session: String?, begins: [Int]) {
        var world = QueueWorld.withUpload(session: session)
        world.wake()
        world.advance(to: world.now + 4)
        world.kill()
        world.rest()
        #expect(world.begins == begins && world.uploads[0].state.name == "done", "\(world.trace)")
    }

    @Test(arguments: [nil, "session"], ["pause", "cancel"])
    func `an attempt is cancelled with its upload, which begins again when it is asked to`(
        session: String?, change: String
    ) {
        var world = QueueWorld.withUpload(session: session)
        world.wake()
        world.advance(to: world.now + 4)
        world.change(0, to: change)
        world.rest(rounds: 5)
        #expect(world.trace.contains("stop 1") && world.uploads[0].state.name != "done", "\(world.trace)")
        #expect(world.uploads[0].possibleDelivery == 1)
        let time = Int(world.now.timeIntervalSince(QueueWorld.start))
        world.change(0, to: change == "pause" ? "resume" : "retry")
        world.rest()
        #expect(world.begins == [0, time] && world.uploads[0].state.name == "done", "\(world.trace)")
    }

    @Test(arguments: [nil, "session"], ["pause", "cancel"])
    func `an upload that the server accepted in the meantime is done`(session: String?, change: String) {
        var world = QueueWorld.withUpload(session: session)
        world.wake()
        world.advance(to: world.now + 10)
        world.change(0, to: change)
        world.rest(rounds: 5)
        #expect(world.begins == [0] && world.uploads[0].state.name == "done", "\(world.trace)")
    }

    @Test(arguments: [nil, "session"])
    func `a paused queue stops, and resumes`(session: String?) {
        var world = QueueWorld.withUpload(session: session)
        world.wake()
        world.pauseAll(true)
        #expect(world.wake() == .rest(until: nil))
        world.wake()
        #expect(world.trace.last == "stop 1" || world.uploads[0].state == .waiting, "\(world.trace)")
        world.pauseAll(false)
        world.rest()
        #expect(world.begins == [0, 0] && world.uploads[0].state.name == "done", "\(world.trace)")
    }

    @Test func `an upload whose deadline passes while no process runs fails, and cannot have arrived`() {
        var policy = RetryPolicy.exact
        policy.deadline = .seconds(30)
        var world = QueueWorld(QueueMachine.Rules(retryPolicy: policy, maximumConcurrentUploads: 1))
        world.script = [.cut]
        world.enqueue()
        world.wake()
        world.advance(to: world.now)
        world.wake()
        #expect(world.uploads[0].state.isRetrying)
        world.kill()
        world.advance(to: world.now + 60)
        world.rest()
        #expect(world.begins == [0] && world.uploads[0].state.name == "failed", "\(world.trace)")
        #expect(world.uploads[0].possibleDelivery == nil)
    }

    /// The system would begin it a minute later.
    @Test func `an upload that would begin after the deadline is not handed over`() {
        var policy = RetryPolicy.exact
        policy.deadline = .seconds(30)
        var world = QueueWorld(
            QueueMachine.Rules(session: "session", retryPolicy: policy, maximumConcurrentUploads: 100))
        world.script = [.interrupted(.insufficientResources)]
        world.enqueue()
        world.rest()
        #expect(world.begins == [0] && world.uploads[0].state.name == "failed", "\(world.trace)")
        #expect(world.uploads[0].possibleDelivery == 1)
    }

    // MARK: - Failures of the database and the service

    @Test(arguments: ["connect", "compare", "claim", "read", "settle"])
    func `an upload is done although something fails once`(fault: String) {
        var world = QueueWorld.withUpload(session: "session")
        world.faults = [fault]
        world.wake()
        world.rest()
        #expect(world.faults.isEmpty && world.calls == 0)
        #expect(world.begins.count == 1 && world.uploads[0].state.name == "done", "\(world.trace)")
    }

    @Test func `a response is kept until it can be recorded`() {
        var world = QueueWorld.withUpload(session: nil)
        world.enqueue()
        world.wake()
        world.advance(to: world.now + 10)
        world.faults = ["settle", "settle"]
        for _ in 0..<2 { #expect(world.wake() == .rest(until: world.now + 1)) }
        #expect(world.uploads.allSatisfy { $0.state == .sending })
        world.wake()
        #expect(world.uploads.allSatisfy { $0.state.name == "done" } && world.begins == [0, 0], "\(world.trace)")
    }

    @Test func `an upload that cannot be handed over is handed over a minute later, and the others at once`() {
        var world = QueueWorld.withUpload(session: "session")
        world.enqueue()
        world.script = [.refusedToBegin, .accepted, .accepted]
        world.rest()
        #expect(world.begins == [0, 60] && world.uploads.allSatisfy { $0.state.name == "done" }, "\(world.trace)")
        #expect(world.uploads.map(\.failures) == [0, 0])
    }

    @Test func `an upload that could not be handed over is handed over after exactly a minute`() {
        var world = QueueWorld.withUpload(session: "session")
        world.script = [.refusedToBegin, .refusedToBegin]
        var attempts: [Int] = []
        for seconds in [0.0, 0, 59, 1, 0] {
            world.advance(to: world.now + seconds)
            world.wake()
            attempts.append(world.uploads[0].attempts)
        }
        #expect(attempts == [1, 1, 1, 2, 2], "\(world.trace)")
    }

    @Test func `an upload that could not be handed over leaves its place to the next one`() {
        var world = QueueWorld(QueueMachine.Rules(session: "session", retryPolicy: .exact, maximumConcurrentUploads: 1))
        world.script = [.refusedToBegin]
        for _ in 0..<2 { world.enqueue() }
        world.wake()
        #expect(world.begins == [0] && world.uploads.map(\.attempts) == [1, 1], "\(world.trace)")
    }

    /// The failure to hand over the first cannot be recorded.
    @Test func `uploads that were claimed and not handed over are found`() {
        var world = QueueWorld.withUpload(session: "session")
        world.enqueue()
        world.script = [.refusedToBegin]
        world.faults = ["settle"]
        #expect(world.wake() == .gaveUp)
        #expect(world.begins.isEmpty && world.uploads.allSatisfy { $0.state == .sending })
        // The first attempt of the second was claimed and never began: only its second one can deliver anything.
        world.wake()
        #expect(world.uploads.map(\.possibleDelivery) == [nil, 2])
        world.rest()
        #expect(world.begins == [5, 60] && world.uploads.allSatisfy { $0.state.name == "done" }, "\(world.trace)")
    }

    @Test func `uploads that were claimed before the claim failed are found, and can have delivered nothing`() {
        var world = QueueWorld.withUpload(session: "session")
        world.faults = ["claimed"]
        world.wake()
        #expect(world.begins.isEmpty && world.uploads[0].state == .sending)
        world.wake()
        #expect(world.uploads[0].state.isRetrying && world.uploads[0].possibleDelivery == 2, "\(world.trace)")
        world.rest()
        #expect(world.begins == [5] && world.uploads[0].state.name == "done", "\(world.trace)")
    }

    /// The second was claimed by then, and did not begin.
    @Test func `an upload is sent although it could not be recorded that the one before it was too late`() {
        var policy = RetryPolicy.exact
        policy.deadline = .seconds(30)
        var world = QueueWorld(QueueMachine.Rules(retryPolicy: policy, maximumConcurrentUploads: 2))
        for _ in 0..<2 { world.enqueue() }
        world.uploads[0].attempts = 1
        world.uploads[0].started = world.now - 60
        world.faults = ["settle"]
        world.rest()
        #expect(world.uploads.map(\.state.name) == ["failed", "done"] && world.begins == [6], "\(world.trace)")
    }

    @Test func `a run ends with the error if the end of an upload cannot be recorded for a minute`() {
        var world = QueueWorld.withUpload(session: nil)
        world.wake()
        world.advance(to: world.now + 10)
        world.faults = Array(repeating: "settle", count: 60)
        for _ in 1..<60 { #expect(world.wake() == .rest(until: world.now + 1)) }
        #expect(world.wake() == .gaveUp)
        #expect(world.uploads[0].state == .sending)
    }

    @Test func `the minute starts over with each end that is recorded`() {
        var world = QueueWorld.withUpload(session: nil)
        for index in 0..<2 {
            if index > 0 { world.enqueue() }
            world.wake()
            world.advance(to: world.now + 10)
            world.faults = Array(repeating: "settle", count: 59)
            for _ in 0..<59 { #expect(world.wake() == .rest(until: world.now + 1)) }
            world.wake()
            #expect(world.uploads[index].state.name == "done", "\(world.trace)")
        }
    }
}
