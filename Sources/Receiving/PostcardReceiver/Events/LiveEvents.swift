import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import PostcardFoundation
import PostcardReception
import PostcardServer
import ServiceLifecycle
import Synchronization

/// Sends events to all connected clients as they happen.
final class LiveEvents: Sendable {
    private struct State {
        /// The connected listeners. Each browser tab is a listener.
        var listeners: [Int: (listener: LiveListener, hold: ShareAccount.Hold)] = [:]
        var lastID = 0
        /// The uploads whose `uploaded` event was sent. The store lists them too, but the event must not be sent again.
        var uploaded = RecentUploads()
        /// The deleted uploads. Later listeners must not receive events about them.
        var deleted = RecentUploads()
        /// The latest `behind` event, which every new listener receives first.
        var behind: ByteBuffer?
    }

    private let shares: ShareAccount
    /// The maximum number of events that may wait for a listener. A listener that exceeds the maximum is disconnected,
    /// and reloads the lists when it reconnects.
    private let maximumWaitingEvents: Int
    /// The maximum number of bytes that may wait for a listener. A listener that exceeds the maximum is disconnected.
    private let maximumWaitingBytes: Int
    /// The maximum size of an event, in bytes, because events wait in memory. A longer event disconnects all listeners.
    private static let maximumEventBytes = 256 << 10
    private let state = Mutex(State())

    /// The default maximum number of listeners. Up to ``maximumWaitingBytes`` may wait in memory for each listener.
    static let maximumListeners = 128

    /// - Parameter shares: Limits the number of listeners, in total and per client.
    init(shares: ShareAccount, maximumWaitingEvents: Int = 256, maximumWaitingBytes: Int = 1 << 20) {
        self.shares = shares
        self.maximumWaitingEvents = maximumWaitingEvents
        self.maximumWaitingBytes = maximumWaitingBytes
    }

    var hasListeners: Bool { state.withLock { !$0.listeners.isEmpty } }

    /// Whether the `uploaded` event of an upload was published recently, while there were listeners.
    func hasPublished(_ id: UploadID) -> Bool { state.withLock { $0.uploaded.contains(id) } }

    /// Disconnects all listeners. They reload the lists when they reconnect.
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
        // Skips the encoding of an event that would be too long.
        let message = event.isLonger(than: Self.maximumEventBytes) ? nil : event.message
        for listener in listeners {
            guard let message, message.readableBytes <= Self.maximumEventBytes, listener.send(message) else {
                listener.finish()
                continue
            }
        }
    }

    /// Adds a listener. Returns the stream of future events, and the listener, to which heartbeats can be sent. Throws
    /// ``UploadProblem`` if there are too many listeners, in total or of this client.
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
        // The handler is set before the listener is added to the list, because the listener may end at once.
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

/// Buffers events until a client reads them.
final class LiveListener: Sendable {
    private let continuation: AsyncStream<ByteBuffer>.Continuation
    private let maximumWaitingBytes: Int
    private let waitingBytes = Atomic<Int>(0)

    init(_ continuation: AsyncStream<ByteBuffer>.Continuation, maximumWaitingBytes: Int) {
        self.continuation = continuation
        self.maximumWaitingBytes = maximumWaitingBytes
    }

    /// Adds an event to the buffer. Returns `false` if the event does not fit.
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

    /// Ends the stream after the buffered events.
    func finish() { continuation.finish() }
}

/// A server-sent event of `GET /events`.
enum LiveEvent {
    /// `uploaded`: a form was received. The data is the record of the upload.
    case uploaded(UploadRecord)
    /// `deleted`: an upload was deleted. The data is the `id` of the upload.
    case deleted(UploadID)
    /// `request`: a request was received. The data is its summary, as in `GET /requests`.
    case request(RequestSummary)
    /// `behind`: the events of other receivers may be late. The data is the maximum delay in `seconds`.
    case behind(seconds: Int)

    /// The encoded event; `nil` if encoding fails.
    var message: ByteBuffer? {
        // The JSON contains no line breaks. A line break would end the event.
        switch self {
        case .uploaded(let record): return Self.message("uploaded", record.json())
        case .deleted(let id): return Self.message("deleted", try? JSONEncoder.forResponses.encode(["id": id.text]))
        case .behind(let seconds):
            return Self.message("behind", try? JSONEncoder.forResponses.encode(["seconds": seconds]))
        case .request(let summary): return Self.message("request", try? JSONEncoder.forResponses.encode(summary))
        }
    }

    /// Whether the encoded event is certain to be longer than `bytes`. The event is not encoded to find out.
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
    /// Publishes the events of other receivers; `nil` if no other receiver uses the store.
    let follower: StoreFollower?

    /// The interval of heartbeats, which keep proxies from closing an idle response and reveal disconnected clients.
    private static let heartbeat = Duration.seconds(15)

    /// The first bytes of the response. Their long comment fills the buffers of proxies that hold back the first 2 KiB.
    private static let beginning = ByteBuffer(
        string: ":" + String(repeating: " ", count: 2 << 10) + "\nretry: 2000\n: listening\n\n")

    private static var headers: HTTPFields {
        var headers = HTTPFields(content: "text/event-stream", cacheControl: "no-store")
        // With this field, nginx and similar proxies forward each event at once.
        if let buffering = HTTPField.Name("X-Accel-Buffering") { headers[buffering] = "no" }
        return headers
    }

    func response(on connection: UploadConnection?, logger: Logger) async throws -> Response {
        let (events, listener) = try live.listen(on: connection)
        do {
            // The store is followed before the client loads the lists, so that the client misses no event.
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
                // After these first bytes, a client misses no event.
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

/// Publishes the uploads that other receivers have stored or deleted in a shared store, while there are listeners.
///
/// Every few seconds, a receiver asks the store for its newest records in one request, and reads each new record.
actor StoreFollower {
    private let store: any MaintainedUploadStore
    private let interval: Duration
    private let live: LiveEvents
    private let logger: Logger
    /// Called for each upload that has disappeared from the store.
    private let onDeletion: @Sendable (UploadID) -> Void
    /// The records in the latest listing of the store; `nil` while there are no listeners.
    private var known: Known?
    private var beginning: Task<Known, any Error>?
    private var isFailing = false

    /// The maximum number of new records published at once. If there are more, all listeners are disconnected, and
    /// reload the lists when they reconnect.
    private static let maximumRecords = 100

    private struct Known: Sendable {
        var records: Set<UploadID>
        /// The time just before the store was asked for these records.
        var asked: ContinuousClock.Instant
    }

    /// Makes a follower of a store; `nil` if no other receiver uses the store.
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

    /// Begins to follow the store if it is not followed yet. A listener added before this call misses no later event.
    /// Throws `UploadStoreError` if the store fails.
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
        // If the listing contains none of the known records, it may also lack some new records.
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

    /// The maximum delay of events from other receivers, in whole seconds. `asked` is the time of the last listing.
    private func seconds(since asked: ContinuousClock.Instant) -> Int {
        Int(((asked.duration(to: .now) + interval) / .seconds(1)).rounded(.up))
    }
}
