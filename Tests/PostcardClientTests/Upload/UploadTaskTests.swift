import Foundation
import HTTPTypes
import PostcardForm
import Testing

@testable import PostcardClient

@Suite struct UploadTaskTests {
    /// An event, and the action that it must lead to.
    struct Step: Sendable {
        let event: Event
        let action: String

        /// How long the upload has taken when it happens.
        let elapsed: Duration

        init(_ event: Event, _ action: String, elapsed: Duration = .zero) {
            self.event = event
            self.action = action
            self.elapsed = elapsed
        }
    }

    enum Event: Sendable {
        case started, adapted, waited, succeeded
        case refused(Int, UploadError.Delivery)
        case failed(UploadError.Code, UploadError.Delivery)
        case decided(UploadDecision)
    }

    struct Sequence: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var attempts = 1
        var interceptorRetries: Int?
        var totalTimeout: Duration?
        var deadline: Duration?
        var delivery = Delivery.neverArrived
        var isReplayable = true
        let steps: [Step]
    }

    private static let begin = [Step(.started, "adapt 1"), Step(.adapted, "send 1")]
    private static let again = [Step(.waited, "adapt 2"), Step(.adapted, "send 2")]

    static let sequences = [
        Sequence(testDescription: "success", steps: begin + [Step(.succeeded, "finish after 1")]),
        Sequence(
            testDescription: "a failure without retries",
            steps: begin + [Step(.failed(.connectionLost, .neverArrived), "fail connection-lost")]),
        Sequence(
            testDescription: "a retry after a delay", attempts: 3,
            steps: begin + [Step(.refused(503, .refused), "wait 1 second")] + again
                + [Step(.succeeded, "finish after 2")]),
        Sequence(
            testDescription: "delays double until there are no more attempts", attempts: 3,
            steps: begin + [Step(.refused(503, .refused), "wait 1 second")] + again
                + [
                    Step(.refused(503, .refused), "wait 2 seconds"), Step(.waited, "adapt 3"), Step(.adapted, "send 3"),
                    Step(.refused(503, .refused), "fail refused"),
                ]),
        Sequence(
            testDescription: "a refusal that does not pass", attempts: 3,
            steps: begin + [Step(.refused(422, .refused), "fail refused")]),
        Sequence(
            testDescription: "a form that was accepted is never sent again", attempts: 3, interceptorRetries: 3,
            steps: begin + [Step(.failed(.decoding, .accepted), "fail decoding")]),
        Sequence(
            testDescription: "after a lost response an early one counts, and later failures do not hide it",
            attempts: 3,
            steps: begin + [
                Step(.failed(.connectionLost, .responseLost), "wait 1 second"), Step(.waited, "adapt 2"),
                Step(.adapted, "send 2, accepting early responses"),
                Step(.failed(.connectionFailed, .neverArrived), "wait 2 seconds"), Step(.waited, "adapt 3"),
                Step(.adapted, "send 3, accepting early responses"),
                Step(.refused(422, .refused), "fail refused, response-lost"),
            ]),
        Sequence(
            testDescription: "a server that still processes the form is asked again", attempts: 3,
            steps: begin + [
                Step(.failed(.connectionLost, .responseLost), "wait 1 second"), Step(.waited, "adapt 2"),
                Step(.adapted, "send 2, accepting early responses"),
                Step(.refused(409, .refused), "wait 2 seconds"),
            ]),
        Sequence(
            testDescription: "an interceptor retries at once, as often as it may", interceptorRetries: 1,
            steps: begin + [
                Step(.refused(401, .refused), "decide"), Step(.decided(.retry(after: .zero)), "wait 0 seconds"),
                Step(.waited, "adapt 2"), Step(.adapted, "send 2"), Step(.refused(401, .refused), "decide"),
                Step(.decided(.retry(after: .zero)), "fail refused"),
            ]),
        Sequence(
            testDescription: "an interceptor gives up", attempts: 9, interceptorRetries: 1,
            steps: begin + [
                Step(.refused(503, .refused), "decide"), Step(.decided(.giveUp), "fail refused"),
            ]),
        Sequence(
            testDescription: "an interceptor passes on to the policy", attempts: 2, interceptorRetries: 1,
            steps: begin + [
                Step(.refused(503, .refused), "decide"), Step(.decided(.passOn), "wait 1 second"),
            ]),
        Sequence(
            testDescription: "a stream that can be read only once", attempts: 3, isReplayable: false,
            steps: begin + [Step(.refused(503, .refused), "fail refused")]),
        Sequence(
            testDescription: "an attempt after the total timeout is not waited for", attempts: 3,
            totalTimeout: .seconds(1), steps: begin + [Step(.refused(503, .refused), "fail deadline-passed")]),
        Sequence(
            testDescription: "the device slept until after the deadline", attempts: 3, deadline: .seconds(60),
            steps: begin + [
                Step(.refused(503, .refused), "wait 1 second"), Step(.waited, "fail refused", elapsed: .seconds(61)),
            ]),
        Sequence(
            testDescription: "the device slept until after the total timeout", attempts: 3, totalTimeout: .seconds(60),
            steps: begin + [
                Step(.refused(503, .refused), "wait 1 second"),
                Step(.waited, "fail deadline-passed", elapsed: .seconds(60)),
            ]),
        Sequence(
            testDescription: "an earlier process may have delivered the form", attempts: 3,
            delivery: .responseLost(resource: nil),
            steps: [
                Step(.started, "adapt 1"), Step(.adapted, "send 1, accepting early responses"),
                Step(.refused(409, .refused), "wait 1 second"), Step(.waited, "adapt 2"),
                Step(.adapted, "send 2, accepting early responses"),
                Step(.refused(422, .refused), "fail refused, response-lost"),
            ]),
        Sequence(
            testDescription: "an event that does not fit the state leads to nothing",
            steps: [Step(.adapted, "nothing"), Step(.started, "adapt 1"), Step(.waited, "nothing")]),
    ]

    @Test(arguments: sequences)
    func `each event leads to the next action`(sequence: Sequence) throws {
        let url = try #require(URL(string: "http://example.org/"))
        var form = MultipartForm()
        if !sequence.isReplayable {
            form.append(FormStream(AsyncStream<Data> { $0.finish() }), named: "log", filename: "log")
        }
        let request = try UploadRequest(
            url: url, method: .post, headerFields: HTTPFields(), body: UploadBody(try form.layout()),
            maximumResponseBytes: 1)
        var retry = RetryPolicy(maximumAttempts: sequence.attempts, firstDelay: .seconds(1), jitter: 0)
        retry.maximumInterceptorRetries = sequence.interceptorRetries ?? 0
        retry.deadline = sequence.deadline
        var task = UploadTask(
            UploadTask.Rules(
                url: url, retry: retry, hasInterceptors: sequence.interceptorRetries != nil,
                acceptsEarlyResponses: false, totalTimeout: sequence.totalTimeout, delivery: sequence.delivery),
            resumption: nil)
        var generator = SystemRandomNumberGenerator()
        for step in sequence.steps {
            let action = task.handle(Self.event(step.event, request), elapsed: step.elapsed, using: &generator)
            #expect(Self.describe(action) == step.action)
        }
    }

    @Test(arguments: ["http://example.org/uploads/1", "http://example.org/uploads/2"])
    func `only the upload resource that a form was sent to can say that it did not arrive`(resource: String) throws {
        let url = try #require(URL(string: "http://example.org/"))
        let first = try #require(URL(string: "http://example.org/uploads/1"))
        let later = try #require(URL(string: resource))
        let request = try UploadRequest(
            url: url, method: .post, headerFields: HTTPFields(), body: UploadBody(try MultipartForm().layout()),
            maximumResponseBytes: 1)
        var policy = ResumptionPolicy()
        policy.retry.firstDelay = .zero
        var resumption = Resumption(policy, resource: nil, save: nil)
        var task = UploadTask(
            UploadTask.Rules(
                url: url, retry: .never, hasInterceptors: false, acceptsEarlyResponses: false, totalTimeout: nil),
            resumption: resumption)
        var generator = SystemRandomNumberGenerator()
        func handle(_ event: Event) -> String {
            Self.describe(task.handle(Self.event(event, request), elapsed: .zero, using: &generator))
        }
        var actions = [handle(.started), handle(.adapted)]
        try resumption.create(first)
        task.note(resumption)
        actions += [handle(.failed(.connectionLost, .responseLost)), handle(.waited), handle(.adapted)]
        if later != first {
            try resumption.forget()
            try resumption.create(later)
        }
        resumption.noteIncomplete()
        task.note(resumption)
        actions.append(handle(.failed(.connectionLost, .neverArrived)))
        #expect(
            actions == [
                "adapt 1", "send 1", "wait 0 seconds", "adapt 2", "send 2, accepting early responses", "wait 0 seconds",
            ])
        #expect(task.lastError?.delivery == (later == first ? .neverArrived : .responseLost))
    }

    private static func event(_ event: Event, _ request: UploadRequest) -> UploadTask.Event {
        switch event {
        case .started: return .started
        case .adapted: return .adapted(request)
        case .waited: return .waited
        case .succeeded: return .responded(UploadResponse(status: .created, headerFields: [:], body: Data()))
        case .decided(let decision): return .decided(decision)
        case .refused(let status, let delivery):
            let response = UploadResponse(status: .init(code: status), headerFields: [:], body: Data())
            var error = UploadError(.refused, "refused", response: response)
            error.delivery = delivery
            return .failed(error)
        case .failed(let code, let delivery):
            var error = UploadError(code, "failed")
            error.delivery = delivery
            return .failed(error)
        }
    }

    private static func describe(_ action: UploadTask.Action?) -> String {
        switch action {
        case nil: "nothing"
        case .adapt(let attempt): "adapt \(attempt)"
        case .send(let attempt, let acceptsEarly):
            "send \(attempt.number)\(acceptsEarly ? ", accepting early responses" : "")"
        case .decide: "decide"
        case .wait(let delay, _, _): "wait \(delay.inSeconds)"
        case .finish(let response): "finish after \(response.attempts)"
        case .fail(let error):
            "fail \(error.code)\(error.delivery == .responseLost ? ", response-lost" : "")"
        }
    }
}
