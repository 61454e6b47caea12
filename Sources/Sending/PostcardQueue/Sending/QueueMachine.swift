import PostcardClient
import PostcardFoundation

/// Decides the next action of a queue's sender: a state machine without its own clock, database, network, files or
/// random numbers. Two senders carry out its actions: ``LocalSender`` sends in this process, and ``BackgroundSender``
/// hands uploads to the system. An attempt is carried out by its carrier: this process, or the system.
///
/// Each round begins with the events since the last one. Each event leads to one action, whose result is the next
/// event:
///
/// | action | event |
/// | --- | --- |
/// | | `woken`, or `closed` for the last round |
/// | `connect`: connect to the carrier of attempts | `done` |
/// | `compare`: read the attempts that the carrier has, and those in the database | `compared` |
/// | `settle`: record progress, and how attempts ended | `done` |
/// | `cancel`: cancel attempts | `done` |
/// | `read`: read the carrier's attempts in the database | `recorded` |
/// | `claim`: mark uploads that may be sent as being sent | `claimed`, or `exhausted` if there are none |
/// | `begin`: begin an attempt | `done` or `refused` |
/// | `list`: read the attempts that the carrier has | `listed` |
/// | `callHandlers`: call the system's completion handlers | `done` |
/// | `rest`, `giveUp` or `end`: the round is over | |
///
/// If an action fails, the event is `failed`.
struct QueueMachine: Sendable {
    /// The maximum number of uploads in one write, so that writes stay short.
    static let batch = 50
    /// How many seconds to wait before the ends of attempts are recorded again, for example after a full disk.
    private static let recordPause = 1.0
    /// The number of times in a row that recording the ends of attempts may fail. Then the run ends with the error, so
    /// that a broken database is noticed.
    static let maximumRecordFailures = 60
    /// The maximum number of sessions in a row that end by themselves, before the run fails. A server's response resets
    /// the count.
    static let maximumInvalidations = 3
    /// The longest wait between rounds, in seconds. It is limited because the system's clock may be changed meanwhile.
    static let longestWait = 86_400.0

    let rules: Rules
    private var state = State.resting
    private var round = Round()
    private var connection = Connection.disconnected
    /// The carrier's attempts that this process knows.
    private var open: [AttemptID: OpenAttempt] = [:]
    /// The beginnings of responses to cancelled or lost attempts, whose ends may still be reported.
    private var strays: [AttemptID: Data] = [:]
    /// Events that wait for the comparison of the carrier's attempts with the database.
    private var events: [AttemptEvent] = []
    /// Ends of attempts that are not in the database yet.
    private var ended: [EndedAttempt] = []
    /// Uploads that the carrier could not begin, with the time to try again.
    private var postponed: [QueuedUpload.ID: Date] = [:]
    /// Attempts that began according to the database, but not in this process, because of a failure in between. Their
    /// forms cannot have been delivered.
    private var unbegun: Set<AttemptID> = []
    /// Whether this process knows all attempts of earlier processes.
    private var hasCompared = false
    /// The number of failures in a row to record the ends of attempts.
    private var recordFailures = 0
    /// The number of sessions in a row that have ended by themselves.
    private var invalidations = 0
    /// Whether the session has ended since it was connected.
    private var isInvalid = false
    private var hasHandlers = false
    /// Whether the carrier has delivered all events since it was connected, or since the handlers were last called.
    private var hasDeliveredAll = false
    /// Attempts whose ends must be recorded before the completion handlers are called.
    private var awaited: Set<AttemptID> = []

    init(_ rules: Rules) {
        self.rules = rules
    }

    mutating func handle(_ event: Event, at now: Date) -> Action {
        switch (state, event) {
        case (_, .woken(let news)): return wake(news, at: now)
        case (_, .closed(let events)):
            self.events += events
            return connection == .disconnected ? callHandlers(then: .end) : settle(then: .close, at: now)
        case (_, .failed(let mayPass)): return fail(mayPass: mayPass, at: now)
        case (.connecting, .done):
            connection = .connected
            return compare()
        case (.comparing, .compared(let carried, let recorded, let events)):
            let known = Set(ended.map(\.id))
            for (attempt, upload) in recorded where open[attempt] == nil && !known.contains(attempt) {
                open[attempt] = OpenAttempt(upload: upload)
                if hasCompared { unbegun.insert(attempt) }
            }
            noteInvalidations(in: events)
            self.events += events
            // If another process uses the session, the session may have seemed to have no transfers.
            if let problem = round.problem { return settle(then: .giveUp(problem), at: now) }
            return settle(then: .compare(Comparison(carried: carried, recorded: recorded)), at: now)
        case (.settling(let count, let step), .done):
            ended.removeFirst(count)
            recordFailures = 0
            return settle(then: step, at: now)
        case (.dropping(let comparison), .done): return recover(from: comparison, at: now)
        case (.reading, .recorded(let recorded)): return cancelObsolete(recorded, at: now)
        case (.cancelling, .done): return claim(at: now)
        case (.claiming, .claimed(let rows)): return begin(rows[...], at: now)
        case (.claiming, .exhausted(let nextDue)):
            round.nextDue = nextDue
            return finish(at: now)
        case (.beginning(_, let rows), .done): return begin(rows[...], at: now)
        case (.beginning(let row, let rows), .refused(let refusal)):
            open[row.attempt] = nil
            // The upload waits longer than its own delay, because even uploads that are due later are handed over. An
            // upload that was put back into the queue is handed over at once.
            if !refusal.outcome.isStopped { postponed[row.upload.id] = now.addingTimeInterval(Rules.postponement) }
            ended.append(
                EndedAttempt(id: row.attempt, end: .known(refusal.outcome), hasBegun: refusal.hasBegun))
            return settle(then: .begin(rows), at: now)
        case (.listing, .listed(let carried, let events)):
            noteInvalidations(in: events)
            self.events += events
            awaited = Set(carried.filter(\.value).keys)
            return settle(then: .work, at: now)
        case (.calling(let action), .done):
            state = .resting
            return action
        default:
            let fault = ImpossibleEvent(event, in: state)
            state = .resting
            return .fault(fault)
        }
    }
}

// MARK: - The beginning of a round

extension QueueMachine {
    private mutating func wake(_ news: News, at now: Date) -> Action {
        round = Round()
        noteInvalidations(in: news.events)
        if isInvalid {
            isInvalid = false
            connection = .disconnected
            // A session that has ended reports no more events.
            hasDeliveredAll = true
            awaited = []
        }
        events += news.events
        hasHandlers = hasHandlers || news.hasHandlers
        // Attempts that have ended since `deliveredAll` are still to be reported.
        round.hasOnlyProgress = news.hasOnlyProgress && connection == .compared
        round.mustList = hasDeliveredAll && news.hasHandlers
        // The system forgets an attempt's end after reporting it, so the end is recorded first.
        if let problem = round.problem { return settle(then: .giveUp(problem), at: now) }
        switch connection {
        case .disconnected:
            state = .connecting
            return .connect
        case .connected: return compare()
        case .compared: return settle(then: .work, at: now)
        }
    }

    private mutating func compare() -> Action {
        state = .comparing
        return .compare
    }

    /// Processes events, and records the ends of attempts that are not in the database yet.
    private mutating func settle(then step: Step, at now: Date) -> Action {
        let progress = takeInEvents()
        if !ended.isEmpty || !progress.isEmpty {
            let batch = Array(ended.prefix(Self.batch))
            state = .settling(count: batch.count, then: step)
            return .settle(batch, progress)
        }
        switch step {
        case .work:
            if round.hasOnlyProgress { return rest(until: nil) }
            if open.isEmpty { return claim(at: now) }
            state = .reading
            return .read
        case .compare(let comparison):
            // It is unknown to which uploads these attempts belong.
            let unknown = comparison.carried.filter { !$0.value && comparison.recorded[$0.key] == nil }.keys
            if unknown.isEmpty { return recover(from: comparison, at: now) }
            state = .dropping(comparison)
            return .cancel(unknown.sorted { "\($0)" < "\($1)" }, of: [])
        case .begin(let rows): return begin(rows[...], at: now)
        case .giveUp(let problem): return callHandlers(then: .giveUp(problem))
        case .close: return callHandlers(then: .end)
        }
    }

    /// Records that the session has ended, at once or in the next round if an action is in progress. The next session
    /// may have other attempts. A server's response resets the number of such sessions in a row.
    private mutating func noteInvalidations(in events: [AttemptEvent]) {
        for event in events {
            switch event {
            case .ended(_, .response): invalidations = 0
            case .invalidated(let problem):
                isInvalid = true
                invalidations += 1
                if !problem.mayPass || invalidations > Self.maximumInvalidations { round.problem = problem }
            default: break
            }
        }
    }

    private mutating func takeInEvents() -> [Progress] {
        var progress: [Progress] = []
        for event in events {
            switch event {
            case .sent(let id, let bytes):
                guard let attempt = open[id] else { continue }
                progress.append(Progress(upload: attempt.upload, bytesSent: bytes, isFirst: !attempt.isSending))
                open[id]?.isSending = true
            case .received(let id, let data):
                var body = open[id]?.body ?? strays[id] ?? Data()
                body.append(data.prefix(max(QueuedUpload.Response.maximumBodyBytes - body.count, 0)))
                if open[id] == nil { strays[id] = body } else { open[id]?.body = body }
            case .resumable(let id, let data): open[id]?.resumeData = data
            case .ended(let id, let end):
                if case .unavailable(let problem) = end { round.problem = problem }
                let (attempt, stray) = (open.removeValue(forKey: id), strays.removeValue(forKey: id))
                ended.append(
                    EndedAttempt(
                        id: id, upload: attempt?.upload, end: end,
                        body: ((stray ?? Data()) + (attempt?.body ?? Data()))
                            .prefix(QueuedUpload.Response.maximumBodyBytes),
                        resumeData: attempt?.resumeData))
            case .deliveredAll:
                hasDeliveredAll = true
                awaited = []
            // The end of the session was already handled. Only earlier responses are dropped here.
            case .invalidated: strays = [:]
            }
        }
        events = []
        return progress
    }

    /// Sends uploads again whose attempts the carrier has lost, after a delay, because their ends may be reported late.
    private mutating func recover(from comparison: Comparison, at now: Date) -> Action {
        connection = .compared
        hasCompared = true
        let lost = comparison.recorded.filter { comparison.carried[$0.key] == nil && open[$0.key] != nil }
        for (attempt, upload) in lost.sorted(by: { $0.value < $1.value }) {
            forget(attempt)
            ended.append(
                EndedAttempt(
                    id: attempt, upload: upload, end: .interrupted(.lost), hasBegun: !unbegun.contains(attempt)))
        }
        unbegun = []
        return settle(then: .work, at: now)
    }

    /// Removes an attempt, but keeps the beginning of its response, because its end may still be reported.
    private mutating func forget(_ attempt: AttemptID) {
        guard let body = open.removeValue(forKey: attempt)?.body, !body.isEmpty else { return }
        strays[attempt, default: Data()].append(body)
    }
}

// MARK: - Cancelling and claiming

extension QueueMachine {
    /// Cancels the attempts of uploads that were cancelled, paused, retried or cleared.
    private mutating func cancelObsolete(_ recorded: [AttemptID: QueuedUpload.ID], at now: Date) -> Action {
        let obsolete = open.filter { recorded[$0.key] == nil }.sorted { $0.value.upload < $1.value.upload }
        if obsolete.isEmpty { return claim(at: now) }
        // In this process, an attempt is open until it has stopped. In the system it is closed at once, because the
        // system may never report its end.
        if rules.session != nil {
            for attempt in obsolete { forget(attempt.key) }
        }
        state = .cancelling
        return .cancel(obsolete.map(\.key), of: obsolete.map(\.value.upload))
    }

    private mutating func claim(at now: Date) -> Action {
        // No postponed upload is due later than this time, unless the clock was set back.
        let latest = now.addingTimeInterval(Rules.postponement)
        postponed = postponed.filter { $0.value > now && $0.value <= latest }
        round.nextDue = nil
        guard open.count < rules.maximumConcurrentUploads else { return finish(at: now) }
        state = .claiming
        return .claim(
            Claim(
                count: min(rules.maximumConcurrentUploads - open.count, Self.batch),
                later: rules.maximumConcurrentUploads / 2,
                // Uploads with attempts that are still stopping are excluded. They may have been cancelled and retried.
                excluded: Set(postponed.keys).union(open.values.map(\.upload))))
    }

    private mutating func begin(_ rows: ArraySlice<UploadRow>, at now: Date) -> Action {
        guard let row = rows.first else { return claim(at: now) }
        let rest = Array(rows.dropFirst())
        // The system begins the attempt when it is due. This process begins it at once.
        let time = rules.session == nil ? now : max(now, row.earliestBegin ?? now)
        if let error = row.expiry(by: rules.schedule(for: row), at: time) {
            ended.append(EndedAttempt(id: row.attempt, end: .known(.expired(error)), hasBegun: false))
            return settle(then: .begin(rest), at: now)
        }
        // The attempt is added first, because its end may be reported at once.
        open[row.attempt] = OpenAttempt(upload: row.upload.id)
        state = .beginning(row, then: rest)
        return .begin(row)
    }
}

// MARK: - The end of a round

extension QueueMachine {
    private mutating func finish(at now: Date) -> Action {
        if round.mustList {
            round.mustList = false
            state = .listing
            return .list
        }
        return callHandlers(at: now)
    }

    /// After the ends of all attempts are recorded, calls the system's completion handlers and ends the round.
    private mutating func callHandlers(at now: Date) -> Action {
        awaited.formIntersection(open.keys)
        if let problem = round.problem { return callHandlers(then: .giveUp(problem)) }
        if hasHandlers, hasDeliveredAll, awaited.isEmpty { return callHandlers(then: rest(at: now)) }
        return rest(at: now)
    }

    private mutating func callHandlers(then action: Action) -> Action {
        hasDeliveredAll = hasDeliveredAll && !hasHandlers
        hasHandlers = false
        state = .calling(then: action)
        return .callHandlers
    }

    private mutating func rest(at now: Date) -> Action {
        state = .resting
        if rules.endsWhenEmpty, open.isEmpty, round.nextDue == nil { return .end }
        // The wait is slightly longer, because the time is a fraction of a second.
        let due = round.nextDue.map { min($0, now.addingTimeInterval(Self.longestWait)).addingTimeInterval(0.001) }
        let poll = rules.pollInterval.map { now.addingTimeInterval($0 / .seconds(1)) }
        return rest(until: [due, poll].compactMap(\.self).min())
    }

    private mutating func rest(until due: Date?) -> Action {
        state = .resting
        return .rest(until: due)
    }

    private mutating func fail(mayPass: Bool, at now: Date) -> Action {
        switch state {
        case .settling(_, then: .close): return callHandlers(then: .end)
        case .settling(_, then: let step):
            // These uploads are marked as being sent, but the carrier does not have their attempts.
            if case .begin(let rows) = step, !rows.isEmpty { connection = .connected }
            recordFailures += 1
            // The response is only in memory. If the sender ends first, the form is sent again with the same
            // `Idempotency-Key`.
            if rules.session == nil, mayPass, recordFailures < Self.maximumRecordFailures {
                return rest(until: now.addingTimeInterval(Self.recordPause))
            }
        // Some uploads may be marked as being sent.
        case .claiming: connection = .connected
        default: break
        }
        // The action cannot succeed now, and the system must not wait for it.
        return callHandlers(then: .giveUp(nil))
    }
}
