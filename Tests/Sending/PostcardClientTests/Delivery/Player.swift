import Foundation
import HTTPTypes
import PostcardForm
import PostcardTestSupport
import PostcardWire
import Testing

@testable import PostcardClient

/// Feeds a machine with events, and describes its actions.
struct Player {
    private(set) var machine: DeliveryMachine
    /// The latest action.
    private(set) var action: DeliveryMachine.Action?
    /// The changes of the machine's state so far, and of its resumable upload's step, by the names of the types.
    private(set) var changes: [String: Set<StateChange>] = [:]
    /// Whether requests are described with their version.
    var namesVersions = false
    /// What the form is prepared as.
    var request: UploadRequest
    private let known: KnownServer
    private var attempt = 0
    private var generator = SystemRandomNumberGenerator()

    init(_ machine: DeliveryMachine, _ request: UploadRequest, _ known: KnownServer = KnownServer()) {
        self.machine = machine
        self.request = request
        self.known = known
    }

    /// Plays a resumable upload of 100 bytes.
    ///
    /// - Parameter ordinary: The policy once the upload is an ordinary one.
    init(
        resuming policy: ResumptionPolicy, _ resource: URL? = nil, _ known: KnownServer = KnownServer(),
        ordinary: RetryPolicy = .never, hasInterceptors: Bool = false, after delivery: PossibleDelivery = .neverArrived
    ) throws {
        let request = try Self.request()
        self.init(
            DeliveryMachine(
                DeliveryMachine.Rules(
                    url: request.url, retryPolicy: ordinary, hasInterceptors: hasInterceptors, delivery: delivery),
                resumption: Resumption(policy, resource: resource)), request, known)
    }

    /// A request with a body of that many bytes.
    static func request(bytes: Int64 = 100) throws -> UploadRequest {
        var form = MultipartForm(boundary: try Boundary("b"))
        form.append(String(repeating: "a", count: Int(bytes) - 58), named: "a")
        let layout = try form.layout()
        #expect(layout.contentLength == bytes)
        return try UploadRequest(
            url: try #require(URL(string: "http://example.org/")), method: .post, headerFields: [:],
            body: UploadBody(layout), maximumResponseBytes: 1)
    }

    @discardableResult
    mutating func play(_ event: DeliveryMachineTests.Event, elapsed: Duration = .zero) -> String {
        let event = self.event(event)
        var next = machine
        let action = next.handle(event, elapsed: elapsed, using: &generator)
        // An impossible event is played on a copy, so that the sequence continues.
        if case .fault = action { return describe(action) }
        let before = machine.state
        machine = next
        self.action = action
        if case .adapt(_, let number) = action { attempt = number }
        for (machine, change) in StateChange.all(before, event, action, machine.state) {
            changes[machine, default: []].insert(change)
        }
        return describe(action)
    }

    /// Expects that no event but the results of the latest action is possible now.
    func expectNoOtherEvents() {
        let results: [String] =
            switch action {
            case nil: ["started"]
            case .prepare: ["prepared"]
            case .adapt: ["adapted"]
            case .check: ["checked", "failed"]
            case .send: ["succeeded", "failed"]
            case .verify: ["verified", "failed"]
            case .decide: ["decided"]
            case .wait: ["waited"]
            case .finish, .fail, .fault: []
            }
        for event in DeliveryMachineTests.events {
            let name = String("\(event)".prefix { $0 != "(" })
            guard !results.contains(name) else { continue }
            var next = self
            #expect(next.play(event) == "nothing", "\(name) after \(describe(action))")
        }
    }

    private func event(_ event: DeliveryMachineTests.Event) -> DeliveryMachine.Event {
        switch event {
        case .started: return .started
        case .prepared: return .prepared(request)
        case .adapted: return .adapted(request, known)
        case .checked: return .checked
        case .verified: return .verified
        case .waited: return .waited
        case .succeeded: return .responded(Self.response(201), from: request.url)
        case .answered(let status, let fields): return .responded(Self.response(status, fields), from: request.url)
        case .announced(let fields, let status, let finalFields):
            var response = Self.response(status, finalFields)
            response.announcement = announcement(fields)
            guard case .send(_, let statuses, _, _)? = action, !statuses.contains(status) else {
                return .responded(response, from: request.url)
            }
            var error = Self.refusal(response)
            error.announcement = response.announcement
            return .failed(error)
        case .decided(let decision): return .decided(decision)
        case .refused(let status, let delivery): return .failed(Self.refusal(Self.response(status), delivery))
        case .turnedDown(let status, let fields): return .failed(Self.refusal(Self.response(status, fields)))
        case .conflict(let offset): return .failed(Self.refusal(Self.response(409, [.uploadOffset: "\(offset)"])))
        case .mismatch(let offset):
            let problem = #"{"expected-offset": \#(offset)}"#
            let response = Self.response(409, [.contentType: "application/problem+json"], problem)
            return .responded(response, from: request.url)
        case .tooLarge(let limit):
            let problem = #"{"limit": {"name": "maximumBodyBytes", "value": \#(limit)}}"#
            return .failed(
                Self.refusal(Self.response(413, [.contentType: "application/problem+json"], problem)))
        case .failed(let code, let delivery):
            var error = UploadError(code, "failed")
            error.delivery = delivery
            return .failed(error)
        case .interrupted(let code, let fields):
            var error = UploadError(code, "failed")
            error.announcement = announcement(fields)
            return .failed(error)
        }
    }

    /// A 104 to the latest request.
    private func announcement(_ fields: HTTPFields) -> ResumptionAnnouncement? {
        guard case .send(let request, _, _, _)? = action else { return nil }
        var fields = fields
        if !fields.contains(.uploadDraftInteropVersion) {
            fields[.uploadDraftInteropVersion] = request.headerFields[.uploadDraftInteropVersion]
        }
        return ResumptionAnnouncement(
            .uploadResumptionSupported, fields, by: request.url, to: request.headerFields)
    }

    static func response(_ status: Int, _ fields: HTTPFields = [:], _ body: String = "") -> UploadResponse {
        UploadResponse(status: .init(code: status), headerFields: fields, body: Data(body.utf8))
    }

    private static func refusal(
        _ response: UploadResponse, _ delivery: UploadError.Delivery = .refused
    ) -> UploadError {
        var error = UploadError(.refused, "refused", response: response)
        error.delivery = delivery
        return error
    }

    private func describe(_ action: DeliveryMachine.Action?) -> String {
        switch action {
        case nil, .fault: "nothing"
        case .prepare(let limits, _): "prepare" + (limits.maximumBodyBytes.map { " within \($0)" } ?? "")
        case .adapt(_, let attempt): "adapt \(attempt)"
        case .check(_, let bytes): "check" + (bytes.map { ", reading \($0)" } ?? "")
        case .send(let request, _, let acceptsEarly, _):
            describe(request, acceptsEarly) + (namesVersions ? version(of: request) : "")
        case .verify: "verify"
        case .decide: "decide"
        case .wait(let delay, _, _): "wait \(delay.inSeconds)"
        case .finish(let response): "finish after \(response.attempts)"
        case .fail(let error):
            "fail \(error.code)\(error.delivery == .responseLost ? ", response-lost" : "")"
        }
    }

    private func version(of request: UploadRequest) -> String {
        request.headerFields[.uploadDraftInteropVersion].map { " in \($0)" } ?? ""
    }

    private func describe(_ request: UploadRequest, _ acceptsEarly: Bool) -> String {
        let path = "\(request.method) \(request.url.path)"
        guard let body = request.body else { return path }
        guard request.method == .post, !body.layout.isSlice else {
            return "\(path) \(body.layout.start)–\(body.layout.start + (body.contentLength ?? 0))"
        }
        return "send \(attempt)\(acceptsEarly ? ", accepting early responses" : "")"
    }
}
