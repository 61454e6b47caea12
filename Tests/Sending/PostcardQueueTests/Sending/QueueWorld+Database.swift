import Foundation
import HTTPTypes
import PostcardTestSupport
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// The database of the queue.
extension QueueWorld {
    var recorded: [AttemptID: QueuedUpload.ID] {
        let held = uploads.filter { isHere ? $0.session == nil && $0.state == .sending : $0.session == rules.session }
        return Dictionary(uniqueKeysWithValues: held.map { ($0.attempt, $0.id) })
    }

    func row(_ upload: Upload) -> UploadRow {
        var fields = HTTPFields()
        fields[.idempotencyKey] = upload.key
        return UploadRow(
            upload: QueuedUpload(
                id: upload.id, url: Self.url, method: .post, state: upload.state, parts: [], bytesSent: 0,
                totalBytes: 100, attempts: upload.attempts, conditions: UploadConditions(), enqueued: Self.start),
            uuid: upload.uuid, headerFields: fields, contentType: "multipart/form-data; boundary=b", signed: nil,
            resource: nil, failures: upload.failures, conflicts: upload.conflicts, interruptions: upload.interruptions,
            hasFreshFields: upload.hasFreshFields, started: upload.started, reason: nil,
            session: upload.session, possibleDelivery: upload.possibleDelivery, resumeData: nil)
    }

    mutating func claim(_ claim: QueueMachine.Claim) -> QueueMachine.Event {
        #expect(claim.count > 0)
        guard !isPaused else { return .exhausted(nextDue: nil) }
        let delayed = uploads.indices.filter { uploads[$0].isDelayed }
        let free = delayed.filter { !claim.excluded.contains(uploads[$0].id) }
        let due = free.filter { uploads[$0].due <= now }.prefix(claim.count)
        let later = free.filter { uploads[$0].due > now && !isHere }
        let carried = uploads.count { $0.session != nil && $0.state != .sending && $0.due > now }
        let claimed = due + later.prefix(max(min(claim.count - due.count, claim.later - carried), 0))
        for index in claimed {
            if uploads[index].due <= now { uploads[index].state = .sending }
            uploads[index].session = rules.session
            uploads[index].attempts += 1
            uploads[index].started = uploads[index].started ?? max(now, uploads[index].due)
            uploads[index].possibleDelivery = uploads[index].possibleDelivery ?? Int64(uploads[index].attempts)
        }
        if claimed.isEmpty {
            return .exhausted(nextDue: delayed.map { uploads[$0].due }.filter { $0 > now }.min())
        }
        return .claimed(claimed.map { row(uploads[$0]) })
    }

    mutating func settle(_ ended: QueueMachine.EndedAttempt) {
        guard let index = uploads.firstIndex(where: { $0.uuid == ended.id.upload }) else { return }
        let upload = uploads[index]
        var generator = chance ?? SeededGenerator(seed: 0)
        let settlement = rules.settlement(of: ended, row(upload), at: now, using: &generator)
        if chance != nil { chance = generator }
        guard let settlement else { return }
        let isOpen = upload.isDelayed || upload.session != nil || upload.state == .sending
        switch settlement {
        case .done:
            #expect(upload.isStored, "It is done and not stored: \(trace)")
            uploads[index].state = .done(.init(status: 201, headerFields: [:], body: Data()))
            uploads[index].session = nil
        case .delay(let due, let failure, let count, let mayHaveArrived) where isOpen:
            #expect(due >= now)
            if !mayHaveArrived { ruleOut(index) }
            uploads[index].state = .retrying(at: due, because: failure)
            uploads[index].due = due
            uploads[index].session = nil
            switch count {
            case .failure(let conflicts):
                uploads[index].failures += 1
                uploads[index].conflicts = conflicts
                uploads[index].interruptions = 0
                uploads[index].hasFreshFields = false
            case .staleFields, .staleForm:
                uploads[index].hasFreshFields = true
                uploads[index].interruptions = 0
            case .interruption: uploads[index].interruptions += 1
            case .nothing: break
            }
        case .fail(let failure, let mayHaveArrived) where isOpen:
            if !mayHaveArrived { ruleOut(index) }
            uploads[index].state = .failed(because: failure)
            uploads[index].session = nil
        case .putBack where isOpen:
            uploads[index].state = .waiting
            uploads[index].due = Self.start
            uploads[index].session = nil
        default: break
        }
        trace.append("\(seconds(now)) \(uploads[index].state.name) \(upload.id)")
    }

    private mutating func ruleOut(_ index: Int) {
        if uploads[index].possibleDelivery == Int64(uploads[index].attempts) { uploads[index].possibleDelivery = nil }
    }
}
