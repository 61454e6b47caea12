import HTTPTypes
import PostcardFoundation
import PostcardQueue
import PostcardTesting
import Synchronization

/// The background session of a queue on a ``TestPhone``.
struct PhoneService: TransferService {
    private let system: PhoneSystem
    private let process: Int
    private let identifier: String
    private let token: Int

    init(_ system: PhoneSystem, _ process: Int, _ identifier: String) {
        self.system = system
        self.process = process
        self.identifier = identifier
        token = system.state.withLock { $0.number() }
    }

    /// Changes the session. Throws if the process has ended.
    private func change<Value: Sendable>(_ change: (inout PhoneSystem.Session) -> Value) throws -> Value {
        try system.state.withLock { state in
            guard state.process == process, state.mode != .ended else { throw CancellationError() }
            return change(&state.sessions[identifier, default: PhoneSystem.Session()])
        }
    }

    func connect(
        _ report: @escaping @Sendable (AttemptEvent) -> Void,
        freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) async throws {
        let listener = PhoneSystem.Listener(process: process, token: token, report: report, freshFields: freshFields)
        try change { session in
            if let present = session.listener, present.token > token { return }
            session.listener = listener
        }
        system.deliverPending()
    }

    func transfers() async throws -> [AttemptID: Bool] {
        try change { session in
            var transfers: [AttemptID: Bool] = [:]
            for case .ended(let id, _) in session.pending { transfers[id] = true }
            for upload in session.transfers { transfers[upload.transfer.id] = false }
            return transfers
        }
    }

    func begin(_ transfer: Transfer) async throws {
        // From now on, the system has its own copy of the file.
        let body = try Data(contentsOf: transfer.body)
        let sent = SentUpload(transfer.method, transfer.url, transfer.headerFields, body, reportingTo: system.reporter)
        let isInBackground = system.state.withLock { $0.mode == .background }
        let upload = PhoneSystem.HandedOver(transfer, sent, isDiscretionary: isInBackground)
        try change { session in session.transfers.append(upload) }
    }

    func cancel(_ ids: Set<AttemptID>) async { system.end(ids, of: identifier, .cancelled) }

    func pause(_ ids: Set<AttemptID>) async -> [AttemptID: Data] {
        system.end(ids, of: identifier, .cancelled)
        return [:]
    }

    func disconnect() async {
        _ = try? change { session in if session.listener?.token == token { session.listener = nil } }
    }

    func release() async { await disconnect() }
}
