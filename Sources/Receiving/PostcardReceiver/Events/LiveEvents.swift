import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import PostcardFoundation
import PostcardReception
import PostcardServer
import ServiceLifecycle
import Synchronization

/// Sends events to all listeners as they happen.
final class LiveEvents: Sendable {
    private struct State {
        /// A browser opens one for each of its tabs.
        var listeners: [Int: (listener: LiveListener, hold: ShareAccount.Hold)] = [:]
        var lastID = 0
        /// The uploads whose events were published. What this receiver did is seen in its store too.
        var uploaded = RecentUploads()
        /// The uploads that were deleted, whether or not anyone listened: a later listener must not get their events.
        var deleted = RecentUploads()
        /// How far behind the events are, for new listeners.
        var behind: ByteBuffer?
    }

    private let shares: ShareAccount
    /// A listener that is further behind is disconnected, and reads the lists again when it reconnects.
    private let maximumWaitingEvents: Int
    /// The maximum number of bytes that may wait for a listener, which is disconnected if more do.
    private let maximumWaitingBytes: Int
    /// Events wait in memory. A longer one also disconnects the listeners.
    private static let maximumEventBytes = 256 << 10
    private let state = Mutex(State())

    /// How many listeners there may be by default. Each may have ``maximumWaitingBytes`` in memory.
    static let maximumListeners = 128

    /// - Parameter shares: What all clients hold.
    init(shares: ShareAccount, maximumWaitingEvents: Int = 256, maximumWaitingBytes: Int = 1 << 20) {
        self.shares = shares
        self.maximumWaitingEvents = maximumWaitingEvents
        self.maximumWaitingBytes = maximumWaitingBytes
    }

    /// Whether anyone listens.
    var hasListeners: Bool { state.withLock { !$0.listeners.isEmpty } }

    /// Whether the upload was published while anyone listened, and not long ago.
    func hasPublished(_ id: UploadID) -> Bool { state.withLock { $0.uploaded.contains(id) } }

    /// Disconnects all listeners, which read the lists again when they reconnect.
    func disconnect() {
        for (listener, _) in state.withLock({ $0.listeners }).values { listener.finish() }
    }

    func publish(_ event: LiveEvent) {
        let listeners: [LiveListener] = state.withLock { state in
            if case .deleted(let id) = event, !state.deleted.insert(id) { return [] }
            guard !state.listeners.isEmpty else { return [] }
            switch event {
            case .uploaded(let record):
                guard !state.deleted.contains(record.id), state.uploaded.insert(record.id) else { return [] }
            case .behind:
                guard let message = event.message, message != state.behind else { return [] }
                state.behind = message
            case .deleted, .request: break
            }
            return state.listeners.values.map(\.listener)
        }
        guard !listeners.isEmpty else { return }
        // Not encoded if it would be too long.
        let message = event.isLonger(than: Self.maximumEventBytes) ? nil : event.message
        for listener in listeners {
            guard let message, message.readableBytes <= Self.maximumEventBytes, listener.send(message) else {
                listener.finish()
                continue
            }
        }
    }

    /// - Parameter connection: The connection of the listener.
    /// - Returns: The events from now on, and the listener to add heartbeats.
    /// - Throws: ``UploadProblem`` if there are too many listeners, of all clients or of this one.
    func listen(on connection: UploadConnection?) throws(UploadProblem) -> (
        events: AsyncMapSequence<AsyncStream<ByteBuffer>, ByteBuffer>, listener: LiveListener
    ) {
        let (events, continuation) = AsyncStream.makeStream(
            of: ByteBuffer.self, bufferingPolicy: .bufferingOldest(maximumWaitingEvents))
        let listener = LiveListener(continuation, maximumWaitingBytes: maximumWaitingBytes)
        let hold = try shares.take(of: .listeners, on: connection)
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        // Set first: once it is among the listeners, it may be ended at any time.
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.listeners.removeValue(forKey: id) }
        }
        state.withLock { state in
            state.listeners[id] = (listener, hold)
            if let behind = state.behind { listener.send(behind) }
        }
        return (
            events.map { event in
                listener.received(event)
                return event
            }, listener
        )
    }
}

/// Holds the events that wait until a client reads them.
final class LiveListener: Sendable {
    private let continuation: AsyncStream<ByteBuffer>.Continuation
    private let maximumWaitingBytes: Int
    private let waitingBytes = Atomic<Int>(0)

    init(_ continuation: AsyncStream<ByteBuffer>.Continuation, maximumWaitingBytes: Int) {
        self.continuation = continuation
        self.maximumWaitingBytes = maximumWaitingBytes
    }

    /// - Returns: Whether there is room for the event.
    @discardableResult
    func send(_ event: ByteBuffer) -> Bool {
        let bytes = waitingBytes.add(event.readableBytes, ordering: .relaxed).newValue
        if bytes <= maximumWaitingBytes, case .enqueued = continuation.yield(event) { return true }
        waitingBytes.subtract(event.readableBytes, ordering: .relaxed)
        return false
    }

    func received(_ event: ByteBuffer) {
        waitingBytes.subtract(event.readableBytes, ordering: .relaxed)
    }

    /// Ends the events after those that wait.
    func finish() { continuation.finish() }
}

/// An event of `GET /events`.
enum LiveEvent {
    /// A form was received: `uploaded`, and the record.
    case uploaded(UploadRecord)
    /// An upload was deleted: `deleted`, and its `id`.
    case deleted(UploadID)
    /// A request was received: `request`, and its entry in the list of requests.
    case request(RequestSummary)
    /// How many seconds the events of other receivers may be late: `behind`, and the `seconds`.
    case behind(seconds: Int)

    /// The event as a message of the stream; `nil` if it cannot be encoded.
    var message: ByteBuffer? {
        // The JSON has no line breaks, which would end the message.
        switch self {
        case .uploaded(let record): return Self.message("uploaded", record.json())
        case .deleted(let id): return Self.message("deleted", try? JSONEncoder.forResponses.encode(["id": id.text]))
        case .behind(let seconds):
            return Self.message("behind", try? JSONEncoder.forResponses.encode(["seconds": seconds]))
        case .request(let summary): return Self.message("request", try? JSONEncoder.forResponses.encode(summary))
        }
    }

    /// Whether the message would have more bytes than these, as far as that is known without encoding it.
    func isLonger(than bytes: Int) -> Bool {
        if case .uploaded(let record) = self { record.expectedBytes > bytes } else { false }
    }

    private static func message(_ name: String, _ data: Data?) -> ByteBuffer? {
        guard let data else { return nil }
        var message = ByteBuffer(string: "event: \(name)\ndata: ")
        message.writeBytes(data)
        message.writeString("\n\n")
        return message
    }
}

/// Responds to `GET /events`: server-sent events until the client or the receiver closes the connection.
struct EventStream: Sendable {
    let live: LiveEvents
    /// Publishes what other receivers do; `nil` if there are none.
    let follower: StoreFollower?

    /// Shorter than the time after which proxies give up on a silent response. A heartbeat also detects a client that
    /// is gone.
    private static let heartbeat = Duration.seconds(15)

    /// What the response begins with. The comment fills the buffer of a proxy that passes on nothing before 2 KiB.
    private static let beginning = ByteBuffer(
        string: ":" + String(repeating: " ", count: 2 << 10) + "\nretry: 2000\n: listening\n\n")

    private static var headers: HTTPFields {
        var headers: HTTPFields = [
            .contentType: "text/event-stream", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
        ]
        // nginx, and proxies that follow it, then pass on each event at once.
        if let buffering = HTTPField.Name("X-Accel-Buffering") { headers[buffering] = "no" }
        return headers
    }

    func response(on connection: UploadConnection?, logger: Logger) async throws -> Response {
        let (events, listener) = try live.listen(on: connection)
        do {
            // A client reads the lists once it listens, so that it misses nothing in between.
            try await follower?.begin()
        } catch {
            listener.finish()
            logger.error("Could not follow the store", metadata: ["error": "\(error)"])
            throw UploadProblem.unreadable
        }
        return Response(
            status: .ok, headers: Self.headers,
            body: ResponseBody { writer in
                defer { listener.finish() }
                // A client that has read this misses no event from here on.
                try await writer.write(Self.beginning)
                try await withThrowingTaskGroup(of: Void.self) { tasks in
                    tasks.addTask {
                        while !Task.isCancelled {
                            try await Task.sleep(for: Self.heartbeat)
                            listener.send(ByteBuffer(string: ":\n\n"))
                        }
                    }
                    for await event in events.cancelOnGracefulShutdown() { try await writer.write(event) }
                    tasks.cancelAll()
                }
                try await writer.finish(nil)
            })
    }
}

/// Publishes what other receivers have stored and deleted, while anyone listens.
///
/// Receivers that share a store do not talk to each other. So the store is asked for its newest records every few
/// seconds: once for all listeners, and for each new record once more.
actor StoreFollower {
    private let store: any MaintainedUploadStore
    private let interval: Duration
    private let live: LiveEvents
    private let logger: Logger
    /// Called for each upload that is gone from the store.
    private let onDeletion: @Sendable (UploadID) -> Void
    /// What the store had when it was last asked; `nil` while no one listens.
    private var known: Known?
    private var beginning: Task<Known, any Error>?
    private var isFailing = false

    /// More new records are not published: listeners are disconnected, and read the list again.
    private static let maximumRecords = 100

    private struct Known: Sendable {
        var records: Set<UploadID>
        /// When the store was asked.
        var asked: ContinuousClock.Instant
    }

    /// - Returns: `nil` if no other receiver uses the store.
    init?(
        _ store: any MaintainedUploadStore, _ live: LiveEvents, logger: Logger,
        onDeletion: @escaping @Sendable (UploadID) -> Void = { _ in }
    ) {
        guard let interval = store.followingInterval else { return nil }
        self.store = store
        self.interval = interval
        self.live = live
        self.logger = logger
        self.onDeletion = onDeletion
    }

    /// Begins to follow the store, unless it is followed already. A listener that was added before misses nothing from
    /// here on.
    ///
    /// - Throws: `UploadStoreError` if the store fails.
    func begin() async throws {
        guard known == nil else { return }
        let task =
            beginning
            ?? Task { [store] in
                let asked = ContinuousClock.now
                return Known(records: Set(try await store.newestRecords().identifiers), asked: asked)
            }
        beginning = task
        defer { beginning = nil }
        let first = try await task.value
        guard known == nil else { return }
        known = first
        Task { await follow() }
    }

    private func follow() async {
        while let last = known {
            live.publish(.behind(seconds: seconds(since: last.asked)))
            try? await Task.sleep(for: interval)
            guard live.hasListeners else { break }
            await ask(after: last)
        }
        known = nil
    }

    private func ask(after last: Known) async {
        let asked = ContinuousClock.now
        do {
            let newest = try await store.newestRecords()
            try await publish(newest, after: last)
            known = Known(records: Set(newest.identifiers), asked: asked)
            isFailing = false
        } catch {
            if !isFailing { logger.warning("Could not follow the store", metadata: ["error": "\(error)"]) }
            isFailing = true
        }
    }

    private func publish(_ newest: NewestRecords, after last: Known) async throws {
        let records = Set(newest.identifiers)
        let new = newest.identifiers.filter { !last.records.contains($0) && !live.hasPublished($0) }
        // If all records that were known are further back than the store was asked for, others may be, too.
        let isGap = newest.oldest != nil && !last.records.isEmpty && records.isDisjoint(with: last.records)
        guard new.count <= Self.maximumRecords, !isGap else { return live.disconnect() }
        for id in new.reversed() {
            if let record = try await store.record(id) { live.publish(.uploaded(record)) }
        }
        for id in last.records.subtracting(records) where newest.oldest.map({ id >= $0 }) ?? true {
            onDeletion(id)
            live.publish(.deleted(id))
        }
    }

    /// For how many seconds at most events are missing, before the store is asked again.
    private func seconds(since asked: ContinuousClock.Instant) -> Int {
        Int(((asked.duration(to: .now) + interval) / .seconds(1)).rounded(.up))
    }
}
