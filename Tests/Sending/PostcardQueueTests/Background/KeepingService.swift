import Foundation
import HTTPTypes
import PostcardTestSupport
import Synchronization

@testable import PostcardQueue

/// A session that keeps its transfers until the test ends them. Like the system's, it is one for all queues of a
/// process.
final class KeptTransfers: Sendable {
    private struct State {
        var transfers: [Transfer] = []
        var refusal: (@Sendable () throws -> Void)?
        var cancellations = 0
        var releases = 0
        var resumeData: Data?
        var freshFields: (@Sendable (AttemptID) async -> HTTPFields?)?
        /// Whether the service does not respond, and who waits for it.
        var isSilent = false
        var silenced: [CheckedContinuation<Void, Never>] = []
        var farewell: @Sendable () -> Void = {}
    }

    private let state = Mutex(State())
    fileprivate let relay = EventRelay()

    /// The attempts that the queue stops, as it does.
    let stops = AsyncStream.makeStream(of: Set<AttemptID>.self)

    var handedOver: [Transfer] { state.withLock { $0.transfers } }

    fileprivate func begin(_ transfer: Transfer) throws {
        try state.withLock { $0.refusal.take() }?()
        state.withLock { $0.transfers.append(transfer) }
    }

    /// How often transfers were cancelled, each time several of them.
    var cancellations: Int { state.withLock { $0.cancellations } }

    /// How often the session was given up to other processes.
    var releases: Int { state.withLock { $0.releases } }

    fileprivate func noteRelease() { state.withLock { $0.releases += 1 } }

    fileprivate func cancel(_ ids: Set<AttemptID>) {
        state.withLock { state in
            state.cancellations += 1
            state.transfers.removeAll { ids.contains($0.id) }
        }
        stops.continuation.yield(ids)
    }

    fileprivate func connect(_ freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?) {
        state.withLock { $0.freshFields = freshFields }
    }

    /// The header fields that the queue gives the only transfer when it begins later.
    func freshFields() async throws -> HTTPFields? {
        let transfers = handedOver
        guard transfers.count == 1 else { throw ProgramFailure("There are \(transfers.count) transfers.") }
        return await state.withLock { $0.freshFields }?(transfers[0].id)
    }

    /// What uploads can resume with whose transfers are paused or end without a response.
    func setResumeData(_ data: Data?) { state.withLock { $0.resumeData = data } }

    fileprivate func pause(_ ids: Set<AttemptID>) -> [AttemptID: Data] {
        defer { stops.continuation.yield(ids) }
        return state.withLock { state in
            let paused = state.transfers.filter { ids.contains($0.id) }
            state.transfers.removeAll { ids.contains($0.id) }
            guard let data = state.resumeData else { return [:] }
            return Dictionary(paused.map { ($0.id, data) }) { first, _ in first }
        }
    }

    /// Lets the service respond, or not.
    func setSilent(_ isSilent: Bool) {
        let waiting = state.withLock { state in
            state.isSilent = isSilent
            defer { if !isSilent { state.silenced = [] } }
            return isSilent ? [] : state.silenced
        }
        for continuation in waiting { continuation.resume() }
    }

    fileprivate func waitForResponse() async {
        await withCheckedContinuation { continuation in
            let isSilent = state.withLock { state in
                if state.isSilent { state.silenced.append(continuation) }
                return state.isSilent
            }
            if !isSilent { continuation.resume() }
        }
    }

    /// Does something when a queue is about to disconnect.
    func beforeDisconnecting(_ farewell: @escaping @Sendable () -> Void) {
        state.withLock { $0.farewell = farewell }
    }

    fileprivate func disconnect(_ token: EventRelay.Token) {
        state.withLock { $0.farewell }()
        relay.detach(token)
    }

    /// Refuses the next transfer with the error that the closure throws.
    func refuseNext(_ refusal: @escaping @Sendable () throws -> Void) {
        state.withLock { $0.refusal = refusal }
    }

    /// Ends the session, which loses its transfers.
    func invalidate(_ problem: SessionProblem) {
        state.withLock { $0.transfers = [] }
        relay.report(.invalidated(problem))
    }

    /// Reports an event that is not the end of a transfer.
    func report(_ event: AttemptEvent) { relay.report(event) }

    /// Reports a response to a transfer that had ended before it was cancelled.
    func reportLate(_ id: AttemptID, _ body: Data, _ end: AttemptEnd) {
        relay.report(.received(id, body))
        relay.report(.ended(id, end))
    }

    /// Ends the only transfer.
    func end(_ end: AttemptEnd, body: Data = Data()) throws {
        let count = handedOver.count
        guard count == 1 else { throw ProgramFailure("There are \(count) transfers.") }
        endFirst(1, end, body: body)
    }

    /// Ends the transfers that were handed over first.
    func endFirst(_ count: Int, _ end: AttemptEnd, body: Data = Data()) {
        let ended = state.withLock { state in
            let ended = state.transfers.prefix(count)
            state.transfers.removeFirst(ended.count)
            return ended
        }
        let resumeData = state.withLock { $0.resumeData }
        for transfer in ended {
            if case .interrupted = end, let resumeData { relay.report(.resumable(transfer.id, resumeData)) }
            if !body.isEmpty { relay.report(.received(transfer.id, body)) }
            relay.report(.ended(transfer.id, end))
        }
    }
}

/// The connection of a queue to a session that keeps its transfers.
struct KeepingService: TransferService {
    private let kept: KeptTransfers
    private let token = EventRelay.Token()

    init(_ kept: KeptTransfers) {
        self.kept = kept
    }

    func connect(
        _ report: @escaping @Sendable (AttemptEvent) -> Void,
        freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) async throws {
        kept.relay.attach(token, report)
        kept.connect(freshFields)
    }

    func transfers() async throws -> [AttemptID: Bool] {
        await kept.waitForResponse()
        return Dictionary(kept.handedOver.map { ($0.id, false) }, uniquingKeysWith: { first, _ in first })
    }

    func begin(_ transfer: Transfer) async throws { try kept.begin(transfer) }

    func cancel(_ ids: Set<AttemptID>) async { kept.cancel(ids) }

    func pause(_ ids: Set<AttemptID>) async -> [AttemptID: Data] { kept.pause(ids) }

    func disconnect() async { kept.disconnect(token) }

    func release() async {
        kept.noteRelease()
        kept.disconnect(token)
    }
}

extension UploadQueue {
    /// The same queue without its session, as an extension may have it: what is enqueued there is handed over when the
    /// test says so.
    var withoutSession: UploadQueue { UploadQueue(directory: opening.url, session: nil, service: nil, time: time) }
}
