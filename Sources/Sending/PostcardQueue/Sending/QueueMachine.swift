import PostcardClient
import PostcardFoundation

/// Decides the next action of a queue's sender: a state machine without its own clock, database, network, files or
/// random numbers. Two senders carry out its actions: ``LocalSender`` sends in this process, and ``BackgroundSender``
/// hands uploads to the system. An attempt is carried out by its carrier: this process, or the system.
///
/// Each round begins with the events since the last one. Each event leads to one action, whose result is the next
/// event:
///
/// | state: its action | event | next state |
/// | --- | --- | --- |
/// | `resting`: wait | `woken` | `connecting`, `comparing`, `settling`, `reading`, `claiming`, `calling` |
/// | | `closed` | `settling`, `calling` |
/// | `connecting`: connect to the carrier of attempts | `done` | `comparing` |
/// | `comparing`: read the attempts that the carrier has, and those in the database | `compared` | `dropping`, `settling`, `reading`, `claiming` |
/// | `settling`: record progress, and how attempts ended | `done` | `settling`, `reading`, `claiming`, `beginning`, `calling`, `resting` |
/// | `dropping`: cancel attempts of the carrier that are not in the database | `done` | `reading`, `claiming` |
/// | `reading`: read the carrier's attempts in the database | `recorded` | `cancelling`, `claiming`, `listing`, `calling`, `resting` |
/// | `cancelling`: cancel attempts that the user has stopped | `done` | `claiming`, `resting` |
/// | `claiming`: mark uploads that may be sent as being sent | `claimed` | `settling`, `beginning` |
/// | | `exhausted` | `listing`, `calling`, `resting` |
/// | `beginning`: begin an attempt | `done` | `settling`, `claiming`, `beginning`, `resting` |
/// | | `refused` | `settling` |
/// | `listing`: read the attempts that the carrier has | `listed` | `reading`, `claiming` |
/// | `calling`: call the system's completion handlers | `done` | `resting` |
///
/// If an action fails, the event is `failed`, and the next state is `calling`. After `settling`, it can be `resting`.
struct QueueMachine: Sendable {
    /// The maximum number of uploads in one write, so that writes stay short.
    static let batch = 50
    /// How many seconds to wait before trying again to record the ends of attempts, such as after a full disk.
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
    private(set) var state = State.resting
    private var round = Round()
    private var session = Session()
    private var ledger = AttemptLedger()
    /// Events that wait for the comparison of the carrier's attempts with the database.
    private var events: [AttemptEvent] = []
    /// Uploads that the carrier could not begin, with the time to try again.
    private var postponed: [QueuedUpload.ID: Date] = [:]
    /// The number of failures in a row to record the ends of attempts.
    private var recordFailures = 0

    init(_ rules: Rules) {
        self.rules = rules
    }

    mutating func handle(_ event: Event, at now: Date) -> Action {
        switch (state, event) {
        case (.resting, .woken(let news)): return wake(news, at: now)
        case (.resting, .closed(let events)):
            self.events += events
            return session.connection == .disconnected ? callHandlers(then: .end) : settle(then: .close, at: now)
        case (.connecting, .done):
            session.connection = .connected
            return compare()
        case (.comparing, .compared(let carried, let recorded, let events)):
            ledger.add(recorded: recorded)
            receive(events)
            // A session that another process uses may have reported no transfers, so nothing can be compared.
            if let problem = round.problem { return settle(then: .giveUp(problem), at: now) }
            return settle(then: .compare(Comparison(carried: carried, recorded: recorded)), at: now)
        case (.settling(let count, let step), .done):
            ledger.removeEnded(count)
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
            // A refused upload is postponed, so that it is not handed over again at once. An upload that was put back
            // into the queue needs no such wait.
            if !refusal.outcome.isStopped { postponed[row.upload.id] = now.addingTimeInterval(Rules.postponement) }
            ledger.end(row.attempt, refusal.outcome, hasBegun: refusal.hasBegun)
            return settle(then: .begin(rows), at: now)
        case (.listing, .listed(let carried, let events)):
            receive(events)
            session.report = .complete(awaited: Set(carried.filter(\.value).keys))
            return settle(then: .work, at: now)
        case (.calling(let action), .done):
            state = .resting
            return action
        case (.resting, .failed): return fault(event)
        case (_, .failed(let mayPass)): return fail(mayPass: mayPass, at: now)
        case (_, .woken), (_, .closed), (_, .done), (_, .compared), (_, .recorded), (_, .claimed), (_, .exhausted),
            (_, .refused), (_, .listed):
            return fault(event)
        }
    }

    private mutating func fault(_ event: Event) -> Action {
        defer { state = .resting }
        return .fault(ImpossibleEvent(event, in: state))
    }
}

// MARK: - The beginning of a round

extension QueueMachine {
    private mutating func wake(_ news: News, at now: Date) -> Action {
        round = Round()
        receive(news.events)
        if session.hasEnded { session.leave() }
        session.hasHandlers = session.hasHandlers || news.hasHandlers
        // Attempts may have ended since `deliveredAll`. The list shows those whose ends are still to be reported.
        round.hasOnlyProgress = news.hasOnlyProgress && session.connection == .compared
        if case .complete = session.report { round.mustList = news.hasHandlers }
        // The system forgets an attempt's end after reporting it, so the end is recorded before the run gives up.
        if let problem = round.problem { return settle(then: .giveUp(problem), at: now) }
        switch session.connection {
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
        let progress = takeEvents()
        if !ledger.ended.isEmpty || !progress.isEmpty {
            let batch = Array(ledger.ended.prefix(Self.batch))
            state = .settling(count: batch.count, then: step)
            return .settle(batch, progress)
        }
        switch step {
        case .work:
            if round.hasOnlyProgress { return rest(until: nil) }
            if ledger.isEmpty { return claim(at: now) }
            state = .reading
            return .read
        case .compare(let comparison):
            // These attempts of the carrier are not in the database, so their uploads are unknown.
            let unknown = comparison.carried.filter { !$0.value && comparison.recorded[$0.key] == nil }.keys
            if unknown.isEmpty { return recover(from: comparison, at: now) }
            state = .dropping(comparison)
            return .cancel(unknown.sorted { "\($0)" < "\($1)" }, of: [])
        case .begin(let rows): return begin(rows[...], at: now)
        case .giveUp(let problem): return callHandlers(then: .giveUp(problem))
        case .close: return callHandlers(then: .end)
        }
    }

    /// Receives events. They are processed when the carrier's attempts are known. Only the end of a session is recorded
    /// at once, because the next session may have other attempts.
    private mutating func receive(_ news: [AttemptEvent]) {
        events += news
        for event in news {
            if let problem = session.record(event) { round.problem = problem }
        }
    }

    private mutating func takeEvents() -> [Progress] {
        defer { events = [] }
        return events.compactMap { event in
            switch event {
            case .ended(_, .unavailable(let problem)): round.problem = problem
            case .deliveredAll: session.report = .complete(awaited: [])
            default: break
            }
            return ledger.record(event)
        }
    }

    /// Ends the attempts that the carrier has lost. Their uploads wait, because an end may still be reported.
    private mutating func recover(from comparison: Comparison, at now: Date) -> Action {
        session.connection = .compared
        ledger.endLost(comparing: comparison)
        return settle(then: .work, at: now)
    }
}

// MARK: - Cancelling and claiming

extension QueueMachine {
    /// Cancels the attempts of uploads that were cancelled, paused, retried or cleared.
    private mutating func cancelObsolete(_ recorded: [AttemptID: QueuedUpload.ID], at now: Date) -> Action {
        let obsolete = ledger.obsolete(comparing: recorded)
        if obsolete.isEmpty { return claim(at: now) }
        // In this process, an attempt is open until it has stopped. In the system it is closed at once, because the
        // system may never report its end.
        if rules.session != nil {
            for each in obsolete { ledger.forget(each.attempt) }
        }
        state = .cancelling
        return .cancel(obsolete.map(\.attempt), of: obsolete.map(\.upload))
    }

    private mutating func claim(at now: Date) -> Action {
        // No postponed upload is due later than this time, unless the clock was set back.
        let latest = now.addingTimeInterval(Rules.postponement)
        postponed = postponed.filter { $0.value > now && $0.value <= latest }
        round.nextDue = nil
        guard ledger.count < rules.maximumConcurrentUploads else { return finish(at: now) }
        state = .claiming
        return .claim(
            Claim(
                count: min(rules.maximumConcurrentUploads - ledger.count, Self.batch),
                later: rules.maximumConcurrentUploads / 2,
                // Uploads whose attempts have not stopped yet are excluded, because they may have been cancelled and
                // retried since.
                excluded: Set(postponed.keys).union(ledger.uploads)))
    }

    private mutating func begin(_ rows: ArraySlice<UploadRow>, at now: Date) -> Action {
        guard let row = rows.first else { return claim(at: now) }
        let rest = Array(rows.dropFirst())
        // The system begins the attempt when it is due. This process begins it at once.
        let time = rules.session == nil ? now : max(now, row.earliestBegin ?? now)
        if let error = row.expiry(by: rules.schedule(for: row), at: time) {
            ledger.end(row.attempt, .expired(error), hasBegun: false)
            return settle(then: .begin(rest), at: now)
        }
        ledger.add(row)
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
        if let problem = round.problem { return callHandlers(then: .giveUp(problem)) }
        if session.mayCallHandlers(with: ledger) { return callHandlers(then: rest(at: now)) }
        return rest(at: now)
    }

    private mutating func callHandlers(then action: Action) -> Action {
        session.handlersWereCalled()
        state = .calling(then: action)
        return .callHandlers
    }

    private mutating func rest(at now: Date) -> Action {
        state = .resting
        if rules.endsWhenEmpty, ledger.isEmpty, round.nextDue == nil { return .end }
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
            // These uploads are claimed, but their attempts did not begin. The next round finds them by a comparison.
            if case .begin(let rows) = step, !rows.isEmpty { session.connection = .connected }
            recordFailures += 1
            // The response is only in memory. If the sender ends first, the form is sent again with the same
            // `Idempotency-Key`.
            if rules.session == nil, mayPass, recordFailures < Self.maximumRecordFailures {
                return rest(until: now.addingTimeInterval(Self.recordPause))
            }
        // Some uploads may have been claimed. The next round finds them by a comparison.
        case .claiming: session.connection = .connected
        default: break
        }
        // The system must not wait until the action succeeds, so its completion handlers are called now.
        return callHandlers(then: .giveUp(nil))
    }
}
