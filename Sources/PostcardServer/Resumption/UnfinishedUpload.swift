import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An upload that can be resumed, or whose answer can be asked for again. What changes it is done by the request that
/// has the turn.
final class UnfinishedUpload: Sendable {
    /// How far the upload is.
    enum Progress: Sendable, Equatable {
        /// Bytes are missing, or the form could not be made a record yet.
        case unfinished(offset: Int64)
        /// The form was recorded, at the location, or refused for good.
        case finished(length: Int64, location: String?)
        /// It was cancelled, or has expired.
        case gone
    }

    private struct State {
        var facts: UnfinishedFolder.Facts
        var progress: Progress
        var lastUse: Date
        /// Whether all bytes are on the disk.
        var isSynchronized = false
        /// Whether the disk did not take some of them, of which the system tells once.
        var hasLostBytes = false
        var check: FormCheck?
    }

    let id: ResumptionID
    let folder: UnfinishedFolder
    let turns: UploadTurns
    /// The client that created it; `nil` where that is not known, such as after a restart.
    let owner: PeerAddress?
    private let state: Mutex<State>
    /// Who asks how far an upload is does not always have the turn.
    private let changing = Mutex(())

    /// An upload that a request is creating.
    init(
        _ id: ResumptionID, in folder: UnfinishedFolder, _ facts: UnfinishedFolder.Facts, check: FormCheck,
        owner: PeerAddress?
    ) {
        self.id = id
        self.folder = folder
        self.owner = owner
        turns = UploadTurns(isAwaited: true)
        state = Mutex(
            State(facts: facts, progress: .unfinished(offset: 0), lastUse: facts.created, check: check))
    }

    /// An upload that was there when the receiver was started.
    init(
        _ id: ResumptionID, in folder: UnfinishedFolder, _ facts: UnfinishedFolder.Facts, _ progress: Progress
    ) {
        self.id = id
        self.folder = folder
        owner = nil
        turns = UploadTurns(isAwaited: false)
        state = Mutex(State(facts: facts, progress: progress, lastUse: facts.created))
    }

    /// When a request last asked for it.
    var lastUse: Date { state.withLock { $0.lastUse } }

    func use(at now: Date) {
        state.withLock { $0.lastUse = now }
    }

    /// Takes what looks at the form, where it has seen all of it so far. It is to be given back.
    func takeCheck(at offset: Int64) -> FormCheck? {
        let check = state.withLock { $0.check.take() }
        return check?.offset == offset ? check : nil
    }

    func giveBack(_ check: FormCheck?) {
        state.withLock { $0.check = check }
    }

    var facts: UnfinishedFolder.Facts { state.withLock { $0.facts } }
    var progress: Progress { state.withLock { $0.progress } }

    /// The bytes that lie here.
    var bytes: Int64 {
        if case .unfinished(let offset) = progress { offset } else { 0 }
    }

    /// The bytes that have come, once all of them are on the disk: from here on they are never sent again. An upload
    /// of which the disk has lost some is as good as gone.
    ///
    /// - Throws: ``UploadStoreError`` where the disk does not take them.
    func promisedProgress() async throws -> Progress {
        let progress = progress
        let (isSynchronized, hasLostBytes) = state.withLock { ($0.isSynchronized, $0.hasLostBytes) }
        guard case .unfinished(let offset) = progress, !isSynchronized else { return progress }
        guard !hasLostBytes else { return .gone }
        let body = try await onFileThread { [folder] in try AppendedFile(folder.body) }
        do {
            try await onFileThread { try body.synchronize() }
        } catch {
            state.withLock { $0.hasLostBytes = true }
            throw error
        }
        try await change { $0.promised = max(offset, $0.promised ?? 0) }
        state.withLock { $0.isSynchronized = true }
        return progress
    }

    /// Keeps the length that the upload is to have.
    func learn(length: Int64) async throws {
        guard facts.length == nil else { return }
        try await change { $0.length = length }
    }

    /// Writes down what was learned of the upload.
    private func change(_ change: @escaping @Sendable (inout UnfinishedFolder.Facts) -> Void) async throws {
        try await onFileThread { [self] in
            try changing.withLock { _ in
                var facts = facts
                change(&facts)
                try folder.update(facts)
                state.withLock { [facts] in $0.facts = facts }
            }
        }
    }

    func advance(by count: Int) {
        state.withLock { state in
            guard case .unfinished(let offset) = state.progress else { return }
            state.progress = .unfinished(offset: offset + Int64(count))
            state.isSynchronized = false
        }
    }

    func finish(with answer: KeptAnswer) async throws {
        try await onFileThread { [folder] in try folder.finish(answer) }
        state.withLock { $0.progress = .finished(length: answer.length, location: answer.location) }
    }

    func becomeGone() {
        state.withLock { $0.progress = .gone }
    }
}
