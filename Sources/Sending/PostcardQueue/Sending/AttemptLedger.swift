import PostcardClient
import PostcardFoundation

/// The open attempts of a sender's ``AttemptCarrier``, and the ends that are not in the database yet.
struct AttemptLedger: Sendable {
    /// An attempt that the carrier has.
    private struct Attempt {
        let upload: QueuedUpload.ID
        /// The beginning of the response's body.
        var body = Data()
        /// The resume data for the next attempt.
        var resumeData: Data?
        var isSending = false
    }

    private var open: [AttemptID: Attempt] = [:]
    /// The beginnings of responses to attempts that are not open. They are kept because the end of a cancelled or lost
    /// attempt may still be reported.
    private var strays: [AttemptID: Data] = [:]
    /// Ends of attempts that were not written to the database yet.
    private(set) var ended: [QueueMachine.EndedAttempt] = []
    /// Attempts that the database records as begun but that this process did not begin, because something failed in
    /// between. Their forms cannot have been delivered. `nil` before the first comparison, because an earlier process
    /// may have begun such attempts.
    private var unbegun: Set<AttemptID>?

    var isEmpty: Bool { open.isEmpty }
    var count: Int { open.count }
    var attempts: some Collection<AttemptID> { open.keys }
    /// The uploads whose attempts are open.
    var uploads: [QueuedUpload.ID] { open.values.map(\.upload) }

    /// Adds an attempt. Must be called before the attempt begins, because its end may be reported at once.
    mutating func add(_ row: UploadRow) {
        open[row.attempt] = Attempt(upload: row.upload.id)
    }

    /// Adds the attempts that only the database knows, of this process or of earlier ones.
    mutating func add(recorded: [AttemptID: QueuedUpload.ID]) {
        let known = Set(ended.map(\.id))
        for (attempt, upload) in recorded where open[attempt] == nil && !known.contains(attempt) {
            open[attempt] = Attempt(upload: upload)
            unbegun?.insert(attempt)
        }
    }

    /// Ends an attempt without an event of the carrier.
    mutating func end(_ attempt: AttemptID, _ outcome: AttemptOutcome, hasBegun: Bool) {
        open[attempt] = nil
        ended.append(QueueMachine.EndedAttempt(id: attempt, end: .known(outcome), hasBegun: hasBegun))
    }

    /// Records an event of an attempt. Returns the progress of the upload if the event reports progress.
    mutating func record(_ event: AttemptEvent) -> QueueMachine.Progress? {
        switch event {
        case .sent(let id, let bytes):
            guard let attempt = open[id] else { return nil }
            open[id]?.isSending = true
            return QueueMachine.Progress(upload: attempt.upload, bytesSent: bytes, isFirst: !attempt.isSending)
        case .received(let id, let data):
            var body = open[id]?.body ?? strays[id] ?? Data()
            body.append(data.prefix(max(QueuedUpload.Response.maximumBodyBytes - body.count, 0)))
            if open[id] == nil { strays[id] = body } else { open[id]?.body = body }
        case .resumable(let id, let data): open[id]?.resumeData = data
        case .ended(let id, let end):
            let (attempt, stray) = (open.removeValue(forKey: id), strays.removeValue(forKey: id))
            ended.append(
                QueueMachine.EndedAttempt(
                    id: id, upload: attempt?.upload, end: end,
                    body: ((stray ?? Data()) + (attempt?.body ?? Data()))
                        .prefix(QueuedUpload.Response.maximumBodyBytes),
                    resumeData: attempt?.resumeData))
        case .invalidated: strays = [:]
        case .deliveredAll: break
        }
        return nil
    }

    /// Removes the given number of ends, the earliest ones, because they were written to the database.
    mutating func removeEnded(_ count: Int) {
        ended.removeFirst(count)
    }

    /// Ends the attempts that are in the database but that the carrier does not have.
    mutating func endLost(comparing comparison: QueueMachine.Comparison) {
        let lost = comparison.recorded.filter { comparison.carried[$0.key] == nil && open[$0.key] != nil }
        for (attempt, upload) in lost.sorted(by: { $0.value < $1.value }) {
            forget(attempt)
            let hasBegun = !(unbegun?.contains(attempt) ?? false)
            ended.append(
                QueueMachine.EndedAttempt(id: attempt, upload: upload, end: .interrupted(.lost), hasBegun: hasBegun))
        }
        unbegun = []
    }

    /// The open attempts that the database does not have any more, by their uploads.
    func obsolete(comparing recorded: [AttemptID: QueuedUpload.ID]) -> [(attempt: AttemptID, upload: QueuedUpload.ID)] {
        open.filter { recorded[$0.key] == nil }.map { ($0.key, $0.value.upload) }.sorted { $0.1 < $1.1 }
    }

    /// Removes an attempt, but keeps the beginning of its response, because its end may still be reported.
    mutating func forget(_ attempt: AttemptID) {
        guard let body = open.removeValue(forKey: attempt)?.body, !body.isEmpty else { return }
        strays[attempt, default: Data()].append(body)
    }
}
