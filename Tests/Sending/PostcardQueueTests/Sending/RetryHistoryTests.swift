import Foundation
import GRDB
import HTTPTypes
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// Histories of failed attempts, and the delay before the next attempt. They are the same for an upload in this process
/// and for those of a queue that are sent in this process or by the system.
@Suite struct RetryHistoryTests {
    enum Failure: Sendable {
        /// A response, with its `Retry-After` in seconds.
        case refused(Int, after: Int? = nil)
        /// A success before the whole form was sent.
        case early
        case failed(UploadError.Code, UploadError.Delivery)
        /// There was no secure connection.
        case insecure(UploadError.Outlook)

        /// The whole form was sent, and there was no response.
        static let lost = Failure.failed(.connectionLost, .responseLost)
        static let unreached = Failure.failed(.connectionFailed, .neverArrived)

        func error(at url: URL) -> UploadError {
            switch self {
            case .refused: return .refusedForm(response, by: url)
            case .early: return .earlyResponse(response, by: url, of: 100)
            case .failed(let code, let delivery):
                var error = UploadError(code, "It failed.")
                error.delivery = delivery
                return error
            case .insecure(let outlook): return .tls(outlook, with: url, "It failed.")
            }
        }

        /// What the system reports.
        func end(of upload: QueuedUpload) -> AttemptEnd {
            let response = response
            switch self {
            case .failed, .insecure: return .failed(error(at: upload.url))
            case .refused, .early: break
            }
            return .response(
                status: response.status.code, headerFields: response.headerFields, url: upload.url,
                method: upload.method)
        }

        private var response: UploadResponse {
            guard case .refused(let status, let seconds) = self else {
                var early = UploadResponse(status: .ok, headerFields: [:], body: Data())
                early.isEarly = true
                return early
            }
            var fields = HTTPFields()
            if let seconds { fields[.retryAfter] = "\(seconds)" }
            return UploadResponse(status: .init(code: status), headerFields: fields, body: Data())
        }
    }

    /// A failed attempt, and what follows.
    struct Step: Sendable {
        let failure: Failure
        /// How many seconds the attempt took.
        var seconds = 0
        var wish = UploadDecision.passOn
        /// The delay before the next attempt, in seconds, or `nil` if the upload fails.
        let delay: Int?

        init(_ failure: Failure, seconds: Int = 0, wish: UploadDecision = .passOn, then delay: Int?) {
            self.failure = failure
            self.seconds = seconds
            self.wish = wish
            self.delay = delay
        }
    }

    struct History: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var policy = RetryPolicy.exact
        var totalTimeout: Duration?
        let steps: [Step]
        /// What follows for an upload of a queue if that differs: it can wait for another network.
        var inQueue: [Int?]?
        /// What follows for the system's background session if that differs: the session has no interceptors and no
        /// total timeout, and the system may send a form several times in one attempt.
        var inBackground: [Int?]?

        init(
            _ testDescription: String, _ steps: [Step], inQueue: [Int?]? = nil, inBackground: [Int?]? = nil,
            totalTimeout: Duration? = nil,
            _ change: (inout RetryPolicy) -> Void = { _ in }
        ) {
            self.testDescription = testDescription
            self.steps = steps
            self.inQueue = inQueue
            self.inBackground = inBackground
            self.totalTimeout = totalTimeout
            change(&policy)
        }
    }

    static let histories = [
        History(
            "a busy server is asked again, as often as the policy allows",
            [Step(.refused(503), then: 1), Step(.unreached, then: 2), Step(.refused(503), then: nil)]
        ) { $0.maximumAttempts = 3 },
        History("the server's own delay is used", [Step(.refused(429, after: 7), then: 7)]),
        History("a refusal that lasts", [Step(.refused(422), then: nil)]),
        History(
            "a handshake that breaks is one of the connections that fail",
            [Step(.insecure(.passes), then: 1), Step(.insecure(.passes), then: 2)]),
        History(
            "and is not tried again if those are not", [Step(.insecure(.passes), then: nil)]
        ) { $0.retriesConnectionFailures = false },
        History(
            "a certificate that is not trusted, as on a hotel's network",
            [Step(.insecure(.passesElsewhere), then: nil)], inQueue: [1]),
        History(
            "not even a queue waits for a network if connections are not tried again",
            [Step(.insecure(.passesElsewhere), then: nil)]
        ) { $0.retriesConnectionFailures = false },
        History("a secure connection that there will never be", [Step(.insecure(.lasts), then: nil)]),
        History(
            "a network that asks its users to sign in, and a proxy without its server",
            [Step(.refused(511), then: 1), Step(.refused(521), then: 2), Step(.refused(507), then: 4)]),
        History("a method that the server does not know", [Step(.refused(501), then: nil)]),
        History("a version of HTTP that the server does not know", [Step(.refused(505), then: nil)]),
        History(
            "a conflict after a proxy has lost the response",
            [Step(.refused(524), then: 1), Step(.refused(409), then: 2)]),
        History("an early success", [Step(.early, then: nil)], inBackground: []),
        History(
            "connections are not tried again if the policy says so",
            [Step(.refused(503), then: 1), Step(.lost, then: nil)]
        ) { $0.retriesConnectionFailures = false },
        History(
            "a form that was accepted is never sent again",
            [Step(.lost, then: 1), Step(.failed(.connectionLost, .accepted), then: nil)]),
        History(
            "a form that is still in progress is asked for again",
            [Step(.lost, then: 1), Step(.refused(409), then: 2), Step(.refused(409), then: 4)]),
        History(
            "the same if the first attempt failed behind a proxy",
            [Step(.refused(502), then: 1), Step(.refused(409), then: 2)]),
        History(
            "a conflict about a form that cannot have arrived", [Step(.refused(409), then: nil)], inBackground: [1]),
        History(
            "a conflict that lasts",
            [Step(.lost, then: 1), Step(.refused(409), then: 2), Step(.refused(409), then: nil)]
        ) { $0.maximumConflicts = 2 },
        History(
            "a server in progress that says when",
            [Step(.lost, then: 1)] + Array(repeating: Step(.refused(409, after: 3), then: 3), count: 4)
        ) { $0.maximumConflicts = 2 },
        History(
            "a conflict after another failure is the first again",
            [
                Step(.lost, then: 1), Step(.refused(409), then: 2), Step(.refused(503), then: 4),
                Step(.refused(409), then: 8), Step(.refused(409), then: nil),
            ]
        ) { $0.maximumConflicts = 2 },
        History(
            "a form in progress after a long time without a network",
            Array(repeating: Step(.unreached, then: 1), count: 20) + [
                Step(.lost, then: 1), Step(.refused(409), then: 1),
            ]
        ) { policy in
            policy.maximumAttempts = 30
            policy.maximumDelay = .seconds(1)
        },
        History(
            "no attempt begins after the deadline",
            [Step(.refused(503), then: 1), Step(.refused(503), seconds: 7, then: 2), Step(.unreached, then: nil)]
        ) { $0.deadline = .seconds(10) },
        History("nor does one that the server asks for", [Step(.refused(503, after: 61), then: nil)]) {
            $0.deadline = .seconds(60)
        },
        History(
            "no attempt begins when the time for the upload is over",
            [Step(.unreached, seconds: 5, then: 1), Step(.unreached, seconds: 2, then: nil)], inBackground: [1, 2],
            totalTimeout: .seconds(10)),
        History(
            "an upload that took too long is over", [Step(.failed(.deadlinePassed, .neverArrived), then: nil)]),
        History(
            "an interceptor gives up", [Step(.refused(503), then: 1), Step(.refused(503), wish: .giveUp, then: nil)],
            inBackground: [1, 2]),
        History(
            "an interceptor decides, as often as it may",
            [
                Step(.refused(401), wish: .retry(after: .seconds(5)), then: 5),
                Step(.refused(503), wish: .retry(after: .seconds(5)), then: nil),
            ], inBackground: [nil]
        ) { $0.maximumInterceptorRetries = 1 },
        History(
            "an interceptor's wish after the deadline",
            [Step(.refused(503), wish: .retry(after: .seconds(11)), then: nil)], inBackground: [1]
        ) { $0.deadline = .seconds(10) },
    ]

    private let folder: TemporaryFolder
    private let url: URL
    private let start = Date(timeIntervalSince1970: 1_000_000)

    init() throws {
        folder = try TemporaryFolder()
        url = try #require(URL(string: "http://example.org/"))
    }

    @Test(arguments: histories)
    func `an upload in this process is sent again as the history says`(history: History) throws {
        var run = try Run(history, history.policy, url)
        var elapsed = Duration.zero
        var delays: [Int?] = []
        for step in history.steps {
            elapsed += .seconds(step.seconds)
            guard case .wait(let delay) = run.fail(step, elapsed: elapsed) else {
                delays.append(nil)
                break
            }
            delays.append(Int(delay.components.seconds))
            elapsed += delay
            run.resume(elapsed: elapsed)
        }
        #expect(delays == history.steps.map(\.delay))
    }

    @Test(arguments: histories)
    func `an upload of a queue in this process is sent again at the same times`(history: History) async throws {
        let queue = try await queue()
        var options = history.policy
        // As the queue's sender does it.
        options.maximumAttempts = 1
        let rules = QueueMachine.Rules(
            retryPolicy: history.policy, totalTimeout: history.totalTimeout, maximumConcurrentUploads: 1)
        var now = start
        var current: (row: UploadRow, run: Run)?
        var delays: [Int?] = []
        for step in history.steps {
            let row = if let current { current.row } else { try await claim(in: queue, at: now) }
            var run =
                try current?.run
                ?? Run(history, options, url, after: row.delivery(before: row.upload.attempts))
            now += TimeInterval(step.seconds)
            switch run.fail(step, elapsed: row.elapsed(at: now)) {
            case .wait(let delay):
                // For an interceptor, the attempt goes on.
                delays.append(Int(delay.components.seconds))
                now += delay / .seconds(1)
                run.resume(elapsed: row.elapsed(at: now))
                current = (row, run)
            case .fail(let error):
                try await queue.settle(.known(.failed(error)), of: row, by: rules, at: now)
                current = nil
                delays.append(try await delay(in: queue, &now))
            }
        }
        #expect(delays == history.inQueue ?? history.steps.map(\.delay))
    }

    @Test(arguments: histories)
    func `an upload that the system sends is sent again at the same times`(history: History) async throws {
        let queue = try await queue()
        let session = "org.example.history"
        let rules = QueueMachine.Rules(session: session, retryPolicy: history.policy, maximumConcurrentUploads: 1)
        var now = start
        var delays: [Int?] = []
        // An early success is one: the system may have sent the form before.
        let steps = history.steps.filter { if case .early = $0.failure { false } else { true } }
        for step in steps where delays.last != .some(.none) {
            let claimed = try await queue.store.database.write { [now] db in
                try db.claimTransfers([1], for: session, at: now)
            }
            let row = try #require(claimed.first)
            now += TimeInterval(step.seconds)
            try await queue.settle(step.failure.end(of: row.upload), of: row, by: rules, at: now)
            delays.append(try await delay(in: queue, &now))
        }
        #expect(delays == history.inBackground ?? history.inQueue ?? history.steps.map(\.delay))
    }

    @Test func `the time of an upload counts across interruptions, and starts over when it is retried by hand`()
        async throws
    {
        let queue = try await queue()
        #expect(try await claim(in: queue, at: start).elapsed(at: start) == .zero)
        try await queue.store.database.write { try $0.returnUpload(1) }
        let later = start + 60
        #expect(try await claim(in: queue, at: later).elapsed(at: later) == .seconds(60))
        try await queue.store.database.write { try $0.failUpload(1, because: .damaged("it failed")) }
        try await queue.retry(1)
        #expect(try await claim(in: queue, at: later).elapsed(at: later) == .zero)
    }

    @Test(arguments: [-1e308, 1e308, .infinity, -.infinity, 9e18] as [Double])
    func `a time that cannot be is no trap`(started: Double) async throws {
        let queue = try await queue()
        try await queue.store.database.write {
            try $0.execute(sql: "UPDATE upload SET started = ?", arguments: [started])
        }
        let row = try await claim(in: queue, at: start)
        #expect(row.elapsed(at: start) >= .zero && row.elapsed(at: start) < .seconds(1 << 31))
    }

    private func queue() async throws -> UploadQueue {
        let queue = UploadQueue(directory: folder.url)
        try await queue.enqueue(MultipartForm(), to: url)
        return queue
    }

    private func claim(in queue: UploadQueue, at now: Date) async throws -> UploadRow {
        let row = try await queue.store.database.write { db in
            let row = try db.claimUpload(allowedBy: [0], excluding: [], at: now)
            if let row { try db.noteAttempt(of: row.upload.id) }
            return row
        }
        return try #require(row)
    }

    /// The delay before the next attempt in seconds, after which it is `now`, or `nil` if the upload has failed.
    private func delay(in queue: UploadQueue, _ now: inout Date) async throws -> Int? {
        guard case .retrying(let due, _) = try #require(try await queue.upload(1)).state else { return nil }
        defer { now = due }
        return Int(due.timeIntervalSince(now).rounded())
    }
}

extension UploadQueue {
    /// Records the end of an attempt.
    fileprivate func settle(
        _ end: AttemptEnd, of row: UploadRow, by rules: QueueMachine.Rules, at now: Date
    ) async throws {
        var generator = SystemRandomNumberGenerator()
        let settlement = rules.settlement(
            of: QueueMachine.EndedAttempt(id: row.attempt, end: end), row, at: now, using: &generator)
        try await store.database.write { try $0.record(try #require(settlement), of: row.upload.id, at: now) }
    }
}

/// An upload in this process.
private struct Run {
    enum Outcome {
        case wait(Duration)
        case fail(UploadError)
    }

    private var machine: DeliveryMachine
    private let request: UploadRequest
    private let url: URL
    private var generator = SystemRandomNumberGenerator()

    init(
        _ history: RetryHistoryTests.History, _ policy: RetryPolicy, _ url: URL,
        after delivery: PossibleDelivery = .neverArrived
    ) throws {
        self.url = url
        request = try UploadRequest(
            url: url, method: .post, headerFields: [:], body: UploadBody(try MultipartForm().layout()),
            maximumResponseBytes: 1)
        machine = DeliveryMachine(
            DeliveryMachine.Rules(
                url: url, retryPolicy: policy, hasInterceptors: true, totalTimeout: history.totalTimeout,
                delivery: delivery))
        _ = machine.handle(.started, elapsed: .zero, using: &generator)
        begin(.prepared(request), elapsed: .zero)
    }

    private mutating func begin(_ event: DeliveryMachine.Event, elapsed: Duration) {
        _ = machine.handle(event, elapsed: elapsed, using: &generator)
        let known = KnownServer(support: .unlisted(inviting: nil))
        _ = machine.handle(.adapted(request, known), elapsed: elapsed, using: &generator)
    }

    /// The next attempt begins.
    mutating func resume(elapsed: Duration) {
        begin(.waited, elapsed: elapsed)
    }

    mutating func fail(_ step: RetryHistoryTests.Step, elapsed: Duration) -> Outcome {
        var action = machine.handle(.failed(step.failure.error(at: url)), elapsed: elapsed, using: &generator)
        if case .decide = action {
            action = machine.handle(.decided(step.wish), elapsed: elapsed, using: &generator)
        }
        switch action {
        case .wait(let delay, _, _): return .wait(delay)
        case .fail(let error): return .fail(error)
        default:
            Issue.record("The machine did not decide: \(String(describing: action))")
            return .fail(.invalidURL(url, ""))
        }
    }
}
