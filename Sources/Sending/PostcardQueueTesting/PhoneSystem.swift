import HTTPTypes
import PostcardClient
import PostcardFoundation
import PostcardQueue
import PostcardTesting
import Synchronization

/// The simulated system of a ``TestPhone``: the sessions with their uploads, and the process of the app.
final class PhoneSystem: Sendable {
    /// An upload that the system has.
    struct HandedOver: Sendable {
        let transfer: Transfer
        var sent: SentUpload
        /// Whether the app was in the background at the hand-over. The system then waits for good conditions.
        let isDiscretionary: Bool
        /// Whether the system has begun to send the upload.
        var hasBegun = false
        /// The events to report once the app runs, if the server has requested credentials for the upload.
        var challenge: [AttemptEvent] = []

        init(_ transfer: Transfer, _ sent: SentUpload, isDiscretionary: Bool) {
            self.transfer = transfer
            self.sent = sent
            self.isDiscretionary = isDiscretionary
        }
    }

    /// A queue of the app that uses a session.
    struct Listener: Sendable {
        let process: Int
        let token: Int
        let report: @Sendable (AttemptEvent) -> Void
        let freshFields: @Sendable (AttemptID) async -> HTTPFields?
    }

    struct Session: Sendable {
        var transfers: [HandedOver] = []
        /// The events to report once the app runs again.
        var pending: [AttemptEvent] = []
        var listener: Listener?

        /// Whether the system has a reason to wake an app that does not run.
        var wakesApp: Bool {
            !pending.isEmpty && transfers.isEmpty || transfers.contains { !$0.challenge.isEmpty }
        }

        /// Ends the process. The system drops progress that was not reported yet.
        mutating func endProcess() {
            listener = nil
            pending.removeAll { if case .sent = $0 { true } else { false } }
        }

        /// Removes the events to report and returns them. Also removes the uploads that these events end.
        mutating func takePending() -> [AttemptEvent] {
            defer {
                pending = []
                transfers.removeAll { !$0.challenge.isEmpty }
            }
            return pending + transfers.flatMap(\.challenge)
        }
    }

    /// The state of the app's process.
    enum Mode: Sendable { case ended, foreground, background, suspended }

    fileprivate struct WeakQueue {
        weak var queue: UploadQueue?
    }

    struct State {
        var sessions: [String: Session] = [:]
        var mode = Mode.ended
        var process = 0
        var lastNumber = 0
        /// The system that the queues of the process use.
        var replacement: QueueSystem?
        var isForceQuit = false
        var isLocked = false
        var isLookedAt = false
        var network: NetworkPath
        var freeBytes: Int64?
        /// The closures to call when the system is about to suspend the app, by the numbers of the app's activities.
        var activities: [Int: @Sendable () -> Void] = [:]
        fileprivate var queues: [WeakQueue] = []

        var isRunning: Bool { mode == .foreground || mode == .background }

        mutating func number() -> Int {
            lastNumber += 1
            return lastNumber
        }
    }

    let state: Mutex<State>
    let clock: TestClock
    let reporter = TestReporter()
    private let start = (date: Date(), instant: ContinuousClock.Instant.now)

    init(network: NetworkPath, clock: TestClock) {
        state = Mutex(State(network: network))
        self.clock = clock
    }

    var date: Date { start.date.addingTimeInterval((clock.instant - start.instant) / .seconds(1)) }

    /// Makes the system that the queues of a process use.
    private func replacement(for process: Int) -> QueueSystem {
        QueueSystem(
            service: { PhoneService(self, process, $0.identifier) },
            time: QueueTime(
                date: { self.date }, instant: { self.clock.instant }, sleep: { try await self.clock.rest(until: $0) },
                pollInterval: .seconds(60)),
            activity: SystemActivity { self.beginActivity($0) },
            networkPath: { self.state.withLock { $0.network } },
            freeBytes: { folder in self.state.withLock { $0.freeBytes } ?? FreeSpace.bytes(at: folder) },
            made: { queue in self.state.withLock { $0.queues.append(WeakQueue(queue: queue)) } })
    }

    // MARK: - The process

    func launch(inBackground: Bool) -> QueueSystem {
        let process = state.withLock { state in
            state.mode = inBackground ? .background : .foreground
            state.process = state.number()
            state.isForceQuit = false
            return state.process
        }
        let replacement = replacement(for: process)
        state.withLock { $0.replacement = replacement }
        return replacement
    }

    /// Ends the process, whose queues get no more events.
    func kill() async {
        await beginDue()
        let queues = state.withLock { state in
            state.mode = .ended
            for identifier in state.sessions.keys { state.sessions[identifier]?.endProcess() }
            state.activities = [:]
            defer { state.queues = [] }
            return state.queues.compactMap(\.queue)
        }
        for queue in queues { await queue.disconnect() }
    }

    /// Returns when the queues of the running app have handled all events.
    func settle() async {
        let queues = state.withLock { $0.isRunning ? $0.queues.compactMap(\.queue) : [] }
        for queue in queues { await queue.rested() }
        await beginDue()
        for queue in queues { await queue.rested() }
    }

    func beginActivity(_ expire: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)? {
        let number = state.withLock { state -> Int? in
            guard state.isRunning else { return nil }
            let number = state.number()
            state.activities[number] = expire
            return number
        }
        guard let number else { return nil }
        return { self.state.withLock { $0.activities[number] = nil } }
    }

    // MARK: - The sessions

    /// Reports an event to the app, now or when the app runs again.
    func report(_ event: AttemptEvent, of identifier: String) {
        let listener = state.withLock { state -> Listener? in
            let listener = state.sessions[identifier]?.listener
            if state.isRunning, let listener { return listener }
            if case .sent = event, listener == nil { return nil }
            state.sessions[identifier, default: Session()].pending.append(event)
            return nil
        }
        listener?.report(event)
    }

    /// Reports the events from the time when the app did not run.
    func deliverPending() {
        let due = state.withLock { state in
            state.isRunning
                ? state.sessions.keys.sorted().flatMap { identifier -> [(Listener, AttemptEvent)] in
                    guard let listener = state.sessions[identifier]?.listener else { return [] }
                    return (state.sessions[identifier]?.takePending() ?? []).map { (listener, $0) }
                } : []
        }
        for (listener, event) in due { listener.report(event) }
    }

    /// The reason why the system does not send an upload now; `nil` if it can send the upload.
    func obstacle(to upload: HandedOver) -> String? {
        let (id, network) = (upload.transfer.upload, state.withLock { $0.network })
        if !upload.challenge.isEmpty {
            return "The server has asked for credentials of upload \(id), for which the system wakes the app: await "
                + "phone.wakeUp { … }"
        }
        // The queue's database stores times with less precision, so a shorter delay does not count.
        if let delay = upload.transfer.earliestBegin?.timeIntervalSince(date), delay > 0.01 {
            let seconds = Int64(min(delay - 0.01, 1e12).rounded(.up))
            return "Upload \(id) begins in \(seconds) seconds: await phone.advance(by: .seconds(\(seconds)))"
        }
        if !network.isAvailable || !network.isAllowed(by: upload.transfer.networks) {
            return "The phone has no network that upload \(id) may use. Set phone.network before."
        }
        if upload.isDiscretionary, network.isCellular || network.isExpensive {
            return "Upload \(id) was handed over while the app was in the background, so the system waits for Wi-Fi. "
                + "Set phone.network before."
        }
        return nil
    }

    /// Begins the uploads that are due and have a network, and reports an event for each. Asks the running app for the
    /// header fields of uploads that were handed to the system before they were due.
    func beginDue() async {
        let handedOver = state.withLock { state in
            state.sessions.flatMap { identifier, session in session.transfers.map { (identifier, $0) } }
        }
        for (identifier, upload) in handedOver where !upload.hasBegun && obstacle(to: upload) == nil {
            let id = upload.transfer.id
            change(id, of: identifier) { $0.hasBegun = true }
            let listener = state.withLock { $0.isRunning ? $0.sessions[identifier]?.listener : nil }
            if upload.transfer.earliestBegin != nil, let fresh = await listener?.freshFields(id) {
                var fields = upload.transfer.headerFields
                for name in Set(fresh.map(\.name)) { fields[fields: name] = fresh[fields: name] }
                let sent = SentUpload(
                    upload.sent.method, upload.sent.url, fields, upload.sent.body, reportingTo: reporter)
                change(id, of: identifier) { $0.sent = sent }
            }
            // One byte shows that sending has begun. The response decides how many bytes arrive.
            report(.sent(id, bytes: 1), of: identifier)
        }
    }

    /// The events that the system reports for a response. While the phone is locked, the system cannot store the
    /// response, and reports an error.
    func events(of response: UploadResponse, to upload: HandedOver) -> [AttemptEvent] {
        let (transfer, status) = (upload.transfer, response.status.code)
        let isLocked = state.withLock { $0.isLocked }
        var end = AttemptEnd.response(
            status: status, headerFields: response.headerFields, url: transfer.url, method: transfer.method,
            requestURL: transfer.url)
        if isLocked, !AttemptEnd.isArrival(status: status, errorDomain: "NSPOSIXErrorDomain", code: 1) {
            end = .failed(.connectionLost(to: transfer.url, "the locked phone could not store the response"))
        }
        let body = isLocked || response.body.isEmpty ? [] : [AttemptEvent.received(transfer.id, response.body)]
        return [.sent(transfer.id, bytes: transfer.length)] + body + [.ended(transfer.id, end)]
    }

    /// Changes an upload that the system has.
    func change(_ id: AttemptID, of identifier: String, _ change: (inout HandedOver) -> Void) {
        state.withLock { state in
            guard let index = state.sessions[identifier]?.transfers.firstIndex(where: { $0.transfer.id == id }),
                var upload = state.sessions[identifier]?.transfers[index]
            else { return }
            change(&upload)
            state.sessions[identifier]?.transfers[index] = upload
        }
    }

    /// Ends some attempts, and removes their uploads from the system.
    func end(_ ids: Set<AttemptID>, of identifier: String, _ interruption: Interruption) {
        let ended = state.withLock { state in
            let ended = state.sessions[identifier]?.transfers.filter { ids.contains($0.transfer.id) } ?? []
            state.sessions[identifier]?.transfers.removeAll { ids.contains($0.transfer.id) }
            return ended
        }
        for upload in ended { report(.ended(upload.transfer.id, .interrupted(interruption)), of: identifier) }
    }
}
