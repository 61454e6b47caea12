import GRDB
import PostcardClient
import PostcardFoundation

/// Carries out attempts: `LocalSender` sends them in this process, and `BackgroundCarrier` hands them to the system.
protocol AttemptCarrier: Sendable {
    func connect() async throws

    /// The identifiers of all attempts. `true` means that the attempt has ended, but its end was not reported yet.
    func attempts() async throws -> [AttemptID: Bool]

    /// The events that were reported since the last call.
    func takeEvents() -> [AttemptEvent]

    /// Marks uploads that may be sent as being sent. The marks are on disk when the method returns.
    ///
    /// - Returns: The marked uploads. If there are none, the time at which the next upload may be sent.
    func claim(_ claim: QueueMachine.Claim) throws -> (rows: [UploadRow], nextDue: Date?)

    /// Begins an attempt. Returns the reason if the attempt could not begin, and `nil` otherwise.
    func begin(_ row: UploadRow) async -> QueueMachine.Refusal?

    /// Cancels attempts, except those that have ended.
    ///
    /// - Parameter paused: The attempts whose uploads may resume later.
    /// - Returns: The resume data for the next attempts of these uploads, as far as the carrier has any.
    func cancel(_ attempts: Set<AttemptID>, pausing paused: Set<AttemptID>) async -> [AttemptID: Data]

    /// Whether the app checks successful responses after the system has received them.
    var judges: Bool { get }

    /// Lets the app check a response whose status means success, after the system has received it.
    ///
    /// - Returns: The error if the app rejects the response; `nil` if the app accepts it.
    func rejection(of response: QueuedUpload.Response, to upload: QueuedUpload) async -> UploadError?

    /// Calls the system's completion handlers.
    func callHandlers()

    /// Reports that states of uploads have changed.
    func notifyChange()
}

/// Carries out the actions of a ``QueueMachine``. An ``AttemptCarrier`` does the work in which the senders differ.
struct QueueRun<Carrier: AttemptCarrier> {
    private var machine: QueueMachine
    private let store: QueueStore
    private let time: QueueTime
    private let carrier: Carrier
    /// The time of the last check of the clock, by which the run notices that the clock was set back.
    private var lastDate: Date?
    /// The time at which the next upload expires.
    private var nextExpiry: Date?

    init(_ rules: QueueMachine.Rules, _ store: QueueStore, _ time: QueueTime, _ carrier: Carrier) {
        machine = QueueMachine(rules)
        self.store = store
        self.time = time
        self.carrier = carrier
    }

    /// Records that the database is intact, because the process may end before it closes the queue.
    func noteRest() { store.database.noteRest() }

    /// Whether the database records attempts of the carrier. Also `true` if the database cannot be read.
    var hasAttempts: Bool {
        let attempts = try? store.database.read { try $0.attempts(of: machine.rules.session) }
        return attempts?.isEmpty != true
    }

    /// The way in which a round ended.
    enum Ending {
        case rest(until: Date?)
        case end
    }

    /// Runs a round: carries out the machine's actions until the round ends.
    ///
    /// - Throws: ``UploadQueueError`` or an error of the carrier if an action failed or the system accepts no uploads.
    mutating func play(_ event: QueueMachine.Event) async throws -> Ending {
        var event = event
        var failure: any Error = CancellationError()
        while true {
            let action = machine.handle(event, at: time.date())
            switch action {
            case .rest(let due): return .rest(until: rest(until: due))
            case .end: return .end
            case .giveUp(let problem):
                if let problem { throw UploadQueueError(problem) }
                throw failure
            case .fault(let fault): throw fault.stoppingDebugBuilds()
            default: break
            }
            do {
                event = try await carryOut(action)
            } catch {
                failure = error
                store.log.note("A round failed: \(error)", .error, at: time.date())
                // The machine decides when to try again.
                nextExpiry = nil
                event = .failed(mayPass: (error as? UploadQueueError)?.mayPass ?? false)
            }
        }
    }

    /// Reports that states of uploads have changed, and that uploads may have ended.
    private func notifyChange() {
        carrier.notifyChange()
        store.ends.notify()
    }

    /// The time of the next round: the given time, or the time at which the next upload expires if that is earlier.
    private func rest(until due: Date?) -> Date? {
        let expiry = nextExpiry.map { min($0, time.date().addingTimeInterval(QueueMachine.longestWait)) }
        return [due, expiry].compactMap(\.self).min()
    }

    private mutating func carryOut(_ action: QueueMachine.Action) async throws -> QueueMachine.Event {
        switch action {
        case .connect: try await carrier.connect()
        case .compare:
            let carried = try await carrier.attempts()
            let recorded = try recorded()
            return .compared(carried: carried, recorded: recorded, events: carrier.takeEvents())
        case .settle(let attempts, let progress):
            note(progress)
            if !attempts.isEmpty { try settle(carrier.judges ? try await judged(attempts) : attempts) }
        case .cancel(let attempts, let uploads): await cancel(Set(attempts), of: uploads)
        case .read: return .recorded(try recorded())
        case .claim(let claim):
            try noteTime()
            let (rows, nextDue) = try carrier.claim(claim)
            if rows.isEmpty { return .exhausted(nextDue: nextDue) }
            notifyChange()
            return .claimed(rows)
        case .begin(let row):
            store.log.note("Attempt \(row.attempt.number) of upload \(row.upload.id) begins.", at: time.date())
            if let refusal = await carrier.begin(row) { return .refused(refusal) }
        case .list:
            let carried = try await carrier.attempts()
            return .listed(carried, events: carrier.takeEvents())
        case .callHandlers: carrier.callHandlers()
        case .rest, .giveUp, .fault, .end: break
        }
        return .done
    }

    /// Fails expired uploads, so that they are not sent. Also corrects times that were set while the clock was ahead.
    private mutating func noteTime() throws {
        let now = time.date()
        try redateUploads(at: now)
        nextExpiry = try store.database.read { try $0.nextExpiry() }
        guard let expiry = nextExpiry, expiry <= now else { return }
        nextExpiry = try store.database.write {
            try $0.failExpiredUploads(at: now)
            return try $0.nextExpiry()
        }
        notifyChange()
    }

    /// Corrects due dates that a wrong clock has set, at the first call and whenever the clock was set back.
    private mutating func redateUploads(at now: Date) throws {
        // A sender with a maximum of 0 only stops uploads. The sender that has sent them may allow longer delays.
        if lastDate == nil || isSetBack(at: now), machine.rules.maximumConcurrentUploads > 0 {
            let (session, latest) = (machine.rules.session, now.addingTimeInterval(machine.rules.longestDelay))
            // Reading first avoids a write, which locks the database. iOS ends an app that is suspended with a lock.
            if try store.database.read({ try $0.hasMisdatedUploads(at: now, after: latest, of: session) }) {
                // The system may still report the ends of these uploads' attempts, so the uploads wait a little.
                let due = now.addingTimeInterval(Interruption.lost.delay(after: 1))
                try store.database.write { db in
                    try db.correctLaterTimes(to: now)
                    try db.redateUploads(after: latest, of: session, to: due)
                }
                notifyChange()
            }
        }
        lastDate = now
    }

    /// Whether the clock was set back since the last check. A correction of up to a minute is ignored, because each one
    /// costs a search of the database.
    private func isSetBack(at now: Date) -> Bool { lastDate.map { now < $0.addingTimeInterval(-60) } ?? false }

    private mutating func recorded() throws -> [AttemptID: QueuedUpload.ID] {
        try noteTime()
        return try store.database.read { try $0.attempts(of: machine.rules.session) }
    }

    private func note(_ progress: [QueueMachine.Progress]) {
        for progress in progress {
            store.progress.note(progress.upload, bytesSent: progress.bytesSent)
            if progress.isFirst {
                // If this write fails, only the list is wrong: the upload is being sent, but listed as waiting.
                try? store.database.writeWithoutSync { try $0.beginTransfer(of: progress.upload) }
                store.changes.notify()
                store.updates.notify()
            }
        }
        if !progress.isEmpty { store.updates.notifyProgress() }
    }

    /// Cancels attempts. Paused uploads keep their progress if the carrier can resume them.
    private func cancel(_ attempts: Set<AttemptID>, of uploads: [QueuedUpload.ID]) async {
        let progress = store.progress.all()
        for upload in uploads { store.progress.end(upload) }
        // If this read or the write below fails, these uploads start over.
        let pausing = (try? store.database.read { try $0.pausingAttempts() }) ?? []
        let paused = attempts.intersection(pausing)
        let resumable = await carrier.cancel(attempts, pausing: paused)
        guard !paused.isEmpty else { return }
        try? store.database.write { db in
            for attempt in paused {
                try db.notePause(
                    of: attempt, resumingWith: resumable[attempt], progress,
                    failing: machine.rules.retryPolicy.repeatsUnclear ? nil : .unclear(after: .stopped))
            }
        }
        notifyChange()
    }

    /// Lets the app check the responses whose status means success. Rejected responses become failures.
    private func judged(_ attempts: [QueueMachine.EndedAttempt]) async throws -> [QueueMachine.EndedAttempt] {
        var judged = attempts
        for (index, attempt) in attempts.enumerated() {
            guard case .response = attempt.end,
                let row = try store.database.read({ try $0.readRow(named: attempt.id.upload) }),
                row.upload.state.kind != .done,
                case .accepted(let response) = machine.rules.outcome(of: attempt, row),
                let error = await carrier.rejection(of: response, to: row.upload)
            else { continue }
            judged[index].end = .known(.failed(error))
        }
        return judged
    }

    /// Records the results of attempts for their uploads.
    private func settle(_ attempts: [QueueMachine.EndedAttempt]) throws {
        let now = time.date()
        // If the clock was set back, earlier uploads have later times. These are corrected, because otherwise an upload
        // that is done now counts as the oldest and is removed.
        let isSetBack = isSetBack(at: now)
        let settled = try store.database.write { db in
            if isSetBack { try db.correctLaterTimes(to: now) }
            var generator = SystemRandomNumberGenerator()
            return try attempts.compactMap { attempt -> (QueueMachine.EndedAttempt, UploadRow, Settlement)? in
                guard let row = try db.row(named: attempt.id.upload),
                    let settlement = machine.rules.settlement(of: attempt, row, at: now, using: &generator)
                else { return nil }
                try db.record(settlement, of: row.upload.id, at: now)
                try db.noteResumption(after: attempt, settlement, of: row.upload.id)
                return (attempt, row, settlement)
            }
        }
        for attempt in attempts { if let upload = attempt.upload { store.progress.end(upload) } }
        for (attempt, row, settlement) in settled {
            store.log.note(attempt.logLine(settlement, of: row.upload.id), settlement.logLevel, at: now)
            if case .done = settlement { store.directory.removeBody(row.uuid) }
        }
        notifyChange()
    }
}

/// Records attempts that are being stopped, and their resume data, in the table `resumption`. Each method is called
/// within one write.
extension Database {
    /// The maximum size of resume data in bytes, more than the system needs to describe a file and a request.
    private static let maximumResumeDataBytes = 1 << 20

    /// The attempts to stop so that their uploads can continue later.
    func pausingAttempts() throws -> Set<AttemptID> {
        let rows = try Row.fetchAll(
            self, sql: "SELECT uuid, stopped FROM resumption JOIN upload USING (id) WHERE resumeData IS NULL")
        return try Set(
            rows.compactMap { row in
                guard let uuid = UUID(bodyName: try row.decode(DatabaseValue.self, forColumn: "uuid")),
                    let number = try? row.count("stopped")
                else { return nil }
                return AttemptID(upload: uuid, number: max(number, 1))
            })
    }

    /// Records that an attempt was stopped. Without resume data, the upload starts over.
    ///
    /// - Parameters:
    ///   - progress: The number of bytes sent for each upload, as far as it is known.
    ///   - failure: The failure of an upload whose bytes had all been sent. With `nil`, such an upload starts over too.
    func notePause(
        of attempt: AttemptID, resumingWith data: Data?, _ progress: [QueuedUpload.ID: Int64],
        failing failure: QueuedUpload.Failure?
    ) throws {
        let id = try QueuedUpload.ID.fetchOne(
            self,
            sql: """
                SELECT id FROM upload JOIN resumption USING (id)
                WHERE uuid = ? AND stopped = ? AND resumeData IS NULL
                """, arguments: [attempt.upload.uuidString, attempt.number])
        guard let id else { return }
        if let data, data.count <= Self.maximumResumeDataBytes {
            try execute(sql: "UPDATE resumption SET resumeData = ? WHERE id = ?", arguments: [data, id])
            guard let bytesSent = progress[id] else { return }
            try execute(sql: "UPDATE upload SET sent = ? WHERE id = ?", arguments: [bytesSent, id])
        } else {
            try forgetResumption(of: id)
            if let failure, let sent = progress[id], let row = try row(id), sent >= row.upload.totalBytes {
                return try failUpload(id, because: failure, includingPaused: true)
            }
            try execute(sql: "UPDATE upload SET sent = 0 WHERE id = ?", arguments: [id])
        }
    }

    /// Removes the resume data that an attempt has used up, and stores the resume data for the next attempt.
    func noteResumption(
        after attempt: QueueMachine.EndedAttempt, _ settlement: Settlement, of id: QueuedUpload.ID
    ) throws {
        if attempt.hasBegun {
            try execute(
                sql: "DELETE FROM resumption WHERE id = ? AND stopped < ?", arguments: [id, attempt.id.number])
        }
        guard case .delay = settlement, let data = attempt.resumeData, data.count <= Self.maximumResumeDataBytes
        else { return }
        try execute(
            sql: "INSERT OR REPLACE INTO resumption (id, stopped, resumeData) VALUES (?, ?, ?)",
            arguments: [id, attempt.id.number, data])
    }
}
