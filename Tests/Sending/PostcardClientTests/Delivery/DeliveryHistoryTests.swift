import Foundation
import HTTPTypes
import PostcardForm
import PostcardWire
import PostcardTestSupport
import Testing

@testable import PostcardClient

/// Uploads through servers, networks and interceptors that do anything.
@Suite(.timeLimit(.minutes(10))) struct DeliveryHistoryTests {
    /// What happened to one upload.
    private struct History: Equatable {
        var requests: [String] = []
        /// How often a form that was stored was sent again.
        var repetitions = 0
        var isAccepted = false
        var end = ""
    }

    /// A world in which everything is left to chance.
    private struct World {
        let seed: UInt64
        let rules: DeliveryMachine.Rules
        let request: UploadRequest
        let resumption: Resumption?
        private(set) var chance: SeededGenerator
        private(set) var history = History()
        private var elapsed = Duration.zero
        /// Where a server has stored the form, without a response that arrived: an upload resource or the address.
        private var storage: URL?

        init(seed: UInt64, _ request: UploadRequest, _ url: URL) {
            var chance = SeededGenerator(seed: seed)
            var policy = RetryPolicy(maximumAttempts: Int.random(in: 1...6, using: &chance))
            policy.repeatsUnclear = !Bool.random(using: &chance)
            policy.maximumInterceptorRetries = Int.random(in: 0...2, using: &chance)
            if Bool.random(using: &chance) { policy.deadline = .seconds(Int.random(in: 1...100, using: &chance)) }
            self.seed = seed
            rules = DeliveryMachine.Rules(
                url: url, retryPolicy: policy, hasInterceptors: Bool.random(using: &chance),
                verifies: Bool.random(using: &chance),
                totalTimeout: Bool.random(using: &chance) ? .seconds(Int.random(in: 1...100, using: &chance)) : nil,
                followsServerLimit: Bool.random(using: &chance))
            let resumptionPolicy = ResumptionPolicy(retryPolicy: policy, minimumBytes: 0)
            let isResumable = Bool.random(using: &chance)
            let isInherited = Bool.random(using: &chance)
            resumption =
                isResumable
                ? Resumption(resumptionPolicy, resource: isInherited ? url.appending(path: "0") : nil) : nil
            self.request = request
            self.chance = chance
        }

        /// Plays the upload to its end.
        mutating func play() -> History {
            var machine = DeliveryMachine(rules, resumption: resumption)
            var event = DeliveryMachine.Event.started
            var actions = 0
            while true {
                let action = machine.handle(event, elapsed: elapsed, using: &chance)
                actions += 1
                guard actions < 2_000 else {
                    Issue.record("The upload does not end (seed \(seed)).")
                    return history
                }
                switch action {
                case .prepare: event = .prepared(request)
                case .adapt(let request, let number):
                    begin(number)
                    let supports: [ResumptionSupport] = [
                        .unknown, .unlisted(inviting: nil), .unlisted(inviting: .interop9),
                    ]
                    let support = supports.randomElement(using: &chance) ?? .unknown
                    event = .adapted(request, KnownServer(support: support, appendBytes: odds(3) ? 30 : nil))
                case .check: event = odds(20) ? .failed(UploadError(.form, "changed")) : .checked
                case .send(let request, let statuses, let acceptsEarly, _):
                    event = answer(request, statuses, acceptsEarly)
                case .verify:
                    var error = UploadError(.decoding, "other digests")
                    error.delivery = .accepted
                    event = odds(10) ? .failed(error) : .verified
                case .decide:
                    #expect(!history.isAccepted, "seed \(seed)")
                    event = .decided(odds(3) ? .retry(after: .seconds(1)) : odds(9) ? .giveUp : .passOn)
                case .wait(let delay, _, _):
                    elapsed += delay
                    // The device may sleep.
                    if odds(20) { elapsed += .seconds(50) }
                    event = .waited
                case .finish:
                    history.end = "finish"
                    #expect(history.isAccepted, "seed \(seed)")
                    return history
                case .fail(let error):
                    history.end = "fail \(error.code) \(error.delivery)"
                    // What was stored is not said to be refused or lost on the way.
                    #expect(storage == nil || [.responseLost, .accepted].contains(error.delivery), "seed \(seed)")
                    return history
                case .fault(let fault):
                    Issue.record("\(fault) (seed \(seed))")
                    return history
                }
            }
        }

        private mutating func odds(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &chance) == 0 }

        /// An attempt begins.
        private mutating func begin(_ number: Int) {
            #expect(!history.isAccepted, "seed \(seed)")
            guard number > 1 else { return }
            #expect(rules.retryPolicy.deadline.map { elapsed <= $0 } ?? true, "seed \(seed)")
            #expect(rules.totalTimeout.map { elapsed < $0 } ?? true, "seed \(seed)")
        }

        private mutating func answer(
            _ request: UploadRequest, _ statuses: Set<Int>, _ acceptsEarly: Bool
        ) -> DeliveryMachine.Event {
            elapsed += .milliseconds(Int.random(in: 0...3_000, using: &chance))
            let isForm = request.body?.layout.reachesEnd ?? false
            history.requests.append("\(request.method) \(request.url.path) \(isForm)")
            #expect(request.headerFields[.idempotencyKey] == self.request.headerFields[.idempotencyKey], "seed \(seed)")
            if isForm, storage != nil {
                history.repetitions += 1
                // The server may know the form by its key, and respond without reading it.
                #expect(acceptsEarly, "seed \(seed)")
                // Only the resource that may have the form is asked for the response.
                #expect(rules.retryPolicy.repeatsUnclear || request.url == storage, "seed \(seed)")
            }
            if odds(4) { return .failed(failure(of: request, isForm)) }
            let response = response(to: request)
            guard statuses.contains(response.status.code) else {
                var error = UploadError(.refused, "refused", response: response)
                error.delivery = .refused
                return .failed(error)
            }
            // A complete upload's resource repeats the response to the form.
            let isRepeated =
                request.method == .get && [200, 201].contains(response.status.code)
                && response.headerFields.uploadCompleteness(in: .newest) == true
            // The server says that it needs no more of the form.
            let isDeclared =
                [.post, .patch].contains(request.method) && (200..<300).contains(response.status.code)
                && response.headerFields.uploadCompleteness(in: .newest) == true
            if isForm || isRepeated || isDeclared { history.isAccepted = true }
            return .responded(response, from: request.url)
        }

        private mutating func failure(of request: UploadRequest, _ isForm: Bool) -> UploadError {
            let codes: [UploadError.Code] = [.connectionLost, .timedOut, .earlyResponse, .tls]
            var error = UploadError(codes.randomElement(using: &chance) ?? .timedOut, "failed")
            error.delivery = .neverArrived
            if isForm, odds(2) {
                error.delivery = .responseLost
                if odds(2), storage == nil { storage = request.url }
            }
            return error
        }

        private mutating func response(to request: UploadRequest) -> UploadResponse {
            var status = [200, 201, 204, 400, 401, 404, 409, 410, 413, 503].randomElement(using: &chance) ?? 500
            var fields = HTTPFields()
            if odds(2) { fields[.acceptPatch] = PartialUpload.mediaType }
            if odds(2) { fields[.location] = "/\(Int.random(in: 1...3, using: &chance))" }
            if !odds(3) { fields.uploadOffset = Int64.random(in: 0...101, using: &chance) }
            if odds(4) { fields.setUploadCompleteness(true, in: .newest) }
            if odds(6) { fields[.uploadLimit] = "max-size=\(Int.random(in: 0...200, using: &chance))" }
            if odds(6) { fields[.retryAfter] = "\(Int.random(in: 0...60, using: &chance))" }
            if request.method == .head, request.url == storage {
                // The resource to which the form was sent is honest about it, as long as it is there.
                status = [204, 404, 410, 503].randomElement(using: &chance) ?? 204
                fields.uploadOffset = 100
                fields[.uploadComplete] = status == 204 || odds(2) ? "?1" : nil
            }
            return UploadResponse(status: .init(code: status), headerFields: fields, body: Data())
        }
    }

    private static func request(to url: URL) throws -> UploadRequest {
        var form = MultipartForm(boundary: try Boundary("b"))
        form.append(String(repeating: "a", count: 42), named: "a")
        var fields = HTTPFields()
        fields[.idempotencyKey] = "\"key\""
        return try UploadRequest(
            url: url, method: .post, headerFields: fields,
            body: UploadBody(try form.layout()), maximumResponseBytes: 1)
    }

    @Test(arguments: 0..<10)
    func `no history sends a form without its key, forgets it, or retries it too late`(part: Int) throws {
        let url = try #require(URL(string: "http://example.org/"))
        let request = try Self.request(to: url)
        var ends: [String: Int] = [:]
        var repetitions = 0
        for seed in UInt64(part * 10_000)..<UInt64((part + 1) * 10_000) {
            var world = World(seed: seed, request, url)
            let history = world.play()
            ends[history.end, default: 0] += 1
            repetitions += history.repetitions
            if seed % 100 == 0 {
                var again = World(seed: seed, request, url)
                #expect(again.play() == history)
            }
        }
        // The histories are of many kinds.
        #expect(ends.count > 8 && ends["finish", default: 0] > 500 && repetitions > 100, "\(ends) \(repetitions)")
    }
}
