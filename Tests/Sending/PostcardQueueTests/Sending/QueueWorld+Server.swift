import Foundation
import HTTPTypes
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// The carrier of attempts, and the server.
extension QueueWorld {
    /// What becomes of an attempt.
    enum Fate: Sendable {
        case accepted
        /// A success before the whole form was sent. In the background, it is the second response of a server that has
        /// the form: the system has repeated the request, and does not report that.
        case early
        /// - Parameter after: The `Retry-After` in seconds.
        case refused(Int, after: Int? = nil)
        /// The form arrives, and the response does not.
        case lost
        /// The connection breaks before the form has arrived.
        case cut
        /// No connection comes about, so that nothing is sent.
        case unreachable
        /// The form is sent to another origin, or another request is sent instead of it.
        case redirected, replaced
        /// The system ends the attempt, or forgets it.
        case interrupted(Interruption)
        case forgotten
        /// The system carries none of the session's uploads.
        case unavailable(SessionProblem)
        /// The attempt cannot begin.
        case refusedToBegin
    }

    func seconds(_ date: Date) -> Int { Int(date.timeIntervalSince(Self.start).rounded()) }

    var attempts: [AttemptID: Bool] {
        var attempts = carried.mapValues { _ in false }
        for case .ended(let id, _) in unreported { attempts[id] = true }
        return attempts
    }

    mutating func begin(_ row: UploadRow) -> QueueMachine.Event {
        guard let index = uploads.firstIndex(where: { $0.id == row.upload.id }) else { return .done }
        let upload = uploads[index]
        let begin = max(now, isHere ? now : upload.due)
        let delivery = row.delivery(before: row.upload.attempts)
        #expect(row.headerFields[.idempotencyKey] == upload.key)
        // On disk before the attempt begins.
        #expect(upload.possibleDelivery != nil)
        #expect(
            !upload.isStored || delivery.mayHaveArrived, "It was forgotten that the form may have arrived: \(trace)")
        if let deadline = rules.retryPolicy.deadline, row.upload.attempts > 1 {
            #expect(row.elapsed(at: begin) <= deadline, "It is too late: \(trace)")
        }
        #expect(carried.count < rules.maximumConcurrentUploads)
        #expect(!carried.values.contains { $0.upload == upload.id }, "It is sent twice at a time: \(trace)")
        var fate = nextFate()
        if isHere, !upload.isStored, delivery.mayHaveArrived, case .early = fate { fate = .accepted }
        if case .refusedToBegin = fate {
            let failure = QueuedUpload.Failure(.postponed, "It cannot begin.", delivery: .responseLost)
            return .refused(QueueMachine.Refusal(outcome: .postponed(failure), hasBegun: odds(2)))
        }
        let length = seconds + random(0...20)
        carried[row.attempt] = CarriedAttempt(
            upload: upload.id, fate: fate, end: begin.addingTimeInterval(Double(length)), delivery: delivery)
        begins.append(seconds(begin))
        if upload.isStored { repetitions += 1 }
        trace.append("\(seconds(begin)) begin \(row.attempt.number) of \(upload.id): \(fate)")
        return .done
    }

    private mutating func nextFate() -> Fate {
        if !script.isEmpty { return script.removeFirst() }
        switch random(0...19) {
        case 0...4: return .accepted
        case 5: return .early
        case 6...8: return .refused(503, after: odds(3) ? random(0...40) : nil)
        case 9: return .refused(409)
        case 10: return .refused(odds(2) ? 413 : 422)
        case 11...13: return .lost
        case 14, 15: return .cut
        case 16: return isHere ? .cut : odds(2) ? .redirected : .replaced
        case 17: return isHere ? .lost : .interrupted(Interruption.allCases[random(0...5)])
        case 18: return isHere ? .cut : .forgotten
        default: return isHere ? .accepted : .refusedToBegin
        }
    }

    /// The form of an attempt arrives at the server, if it does.
    mutating func arrive(_ attempt: CarriedAttempt) {
        guard let index = uploads.firstIndex(where: { $0.id == attempt.upload }) else { return }
        switch attempt.fate {
        case .accepted, .lost: uploads[index].isStored = true
        case .early: if !isHere { uploads[index].isStored = true }
        case .interrupted, .forgotten: if odds(2) { uploads[index].isStored = true }
        default: break
        }
    }

    mutating func stop(_ id: AttemptID) {
        guard let attempt = carried[id], !attempt.isStopping else { return }
        trace.append("stop \(attempt.upload)")
        if isHere {
            let end = now + Double(random(0...5))
            carried[id]?.isStopping = true
            carried[id]?.end = end
        } else {
            carried[id] = nil
            if odds(3) { arrive(attempt) }
            unreported.append(.ended(id, .interrupted(.cancelled)))
        }
    }

    /// What is reported of an attempt; `nil` if nothing is.
    func end(of attempt: CarriedAttempt) -> AttemptEnd? {
        if attempt.isStopping { return .known(.stopped(mayHaveArrived: true)) }
        if let error = attempt.fate.error(at: Self.url, after: attempt.delivery), isHere || attempt.fate.hasNoResponse {
            return isHere ? .known(.failed(error)) : .failed(error)
        }
        if isHere { return .known(.accepted(.init(status: 201, headerFields: [:], body: Data()))) }
        switch attempt.fate {
        case .interrupted(let interruption): return .interrupted(interruption)
        case .forgotten: return nil
        case .unavailable(let problem): return .unavailable(problem)
        case .redirected:
            return response(201, url: URL(string: "http://elsewhere.example/"))
        case .replaced: return response(200, method: .get)
        case .refused(let status, let after): return response(status, after: after)
        default: return response(201)
        }
    }

    private func response(
        _ status: Int, after: Int? = nil, url: URL? = Self.url, method: HTTPRequest.Method = .post
    ) -> AttemptEnd {
        var fields = HTTPFields()
        if let after { fields[.retryAfter] = "\(after)" }
        return .response(status: status, headerFields: fields, url: url, method: method)
    }
}

extension QueueWorld.Fate {
    /// Whether an attempt of the system ends without a response.
    fileprivate var hasNoResponse: Bool {
        switch self {
        case .lost, .cut, .unreachable: true
        default: false
        }
    }

    /// The error of an attempt in this process; `nil` for a success.
    ///
    /// - Parameter delivery: What servers may have of the form from earlier attempts.
    func error(at url: URL, after delivery: PossibleDelivery) -> UploadError? {
        switch self {
        case .accepted: return nil
        case .early:
            var response = UploadResponse(status: .ok, headerFields: [:], body: Data())
            response.isEarly = true
            return delivery.mayHaveArrived ? nil : .earlyResponse(response, by: url, of: 100)
        case .refused(let status, let after):
            var fields = HTTPFields()
            if let after { fields[.retryAfter] = "\(after)" }
            return .refusedForm(
                UploadResponse(status: .init(code: status), headerFields: fields, body: Data()), by: url)
        case .redirected, .replaced:
            return .refusedForm(
                UploadResponse(status: .temporaryRedirect, headerFields: [:], body: Data()), by: url)
        case .unreachable:
            var error = UploadError(.connectionFailed, "There is no such host.")
            error.delivery = .neverArrived
            return error
        case .lost, .cut, .interrupted, .forgotten, .unavailable, .refusedToBegin:
            var error = UploadError(.connectionLost, "The connection broke.")
            if case .lost = self { error.delivery = .responseLost } else { error.delivery = .neverArrived }
            return error
        }
    }
}
