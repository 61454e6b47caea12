import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import PostcardFoundation
import PostcardReception
import PostcardServer
import ServiceLifecycle
import Synchronization

/// Sends messages about the records in a store's outbox to the endpoint of a webhook, at least one for each record.
final class WebhookDeliverer: Service {
    private let webhook: Webhook
    private let store: any OutboxStore
    private let meter: UploadMeter
    private let logger: Logger
    private let outbox: Mutex<WebhookOutbox>
    private let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    private let start = ContinuousClock.now
    private let readingInterval: Duration

    private enum Event: Sendable {
        /// A record was stored. The message about the record may already have been sent, if the outbox was read before.
        case recorded(UploadID, of: PeerAddress?)
        /// The outbox of the store must be read. Reading is an event, so that it happens in order: an older list may
        /// contain records whose messages have since been sent.
        case reading
        case outbox(WebhookOutbox.Event)
    }

    /// From now on, new records of the store are put in its outbox. The outbox is also read after each
    /// `readingInterval`, because other receivers may leave records in it.
    init(
        _ webhook: Webhook, from store: any OutboxStore, meter: UploadMeter, logger: Logger,
        options: WebhookOutbox.Options = WebhookOutbox.Options(), readingInterval: Duration = .seconds(60)
    ) {
        self.readingInterval = readingInterval
        self.webhook = webhook
        self.store = store
        self.meter = meter
        self.logger = logger
        outbox = Mutex(WebhookOutbox(options))
        (events, continuation) = AsyncStream.makeStream()
        store.keepOutbox()
    }

    private var uptime: Duration { start.duration(to: .now) }

    /// Reports a new record, so that the message about it is sent at once. Ignores other events.
    func note(_ event: UploadReport.RecordEvent) {
        if case .recorded(let record) = event {
            continuation.yield(.recorded(record.id, of: UploadConnection.current?.peer))
        }
    }

    // MARK: - Running

    func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { tasks in
                tasks.addTask {
                    while !Task.isCancelled {
                        self.continuation.yield(.reading)
                        try? await Task.sleep(for: self.readingInterval)
                    }
                }
                var random = SystemRandomNumberGenerator()
                var timer: Task<Void, Never>?
                for await event in events where !Task.isCancelled {
                    guard let event = await outboxEvent(event) else { continue }
                    let (actions, wakeTime) = handle(event, using: &random)
                    for action in actions {
                        switch action {
                        case .send(let id): tasks.addTask { await self.attempt(id) }
                        case .settle(let id): await settle(id)
                        case .fault(let fault): logger.error("\(fault.stoppingDebugBuilds())")
                        }
                    }
                    timer?.cancel()
                    timer = wakeTime.map { time in
                        Task { [start, continuation] in
                            try? await Task.sleep(until: start + time)
                            if !Task.isCancelled { continuation.yield(.outbox(.due)) }
                        }
                    }
                }
                timer?.cancel()
                tasks.cancelAll()
            }
        }
    }

    /// Converts an event to an event of the outbox, for which it may read the store; `nil` if there is nothing to do.
    private func outboxEvent(_ event: Event) async -> WebhookOutbox.Event? {
        do {
            switch event {
            case .outbox(let event): return event
            case .recorded(let id, let peer): return try await store.isInOutbox(id) ? .found([id], of: peer) : nil
            case .reading:
                let ids = try await store.outbox()
                return ids.isEmpty ? nil : .found(ids, of: nil)
            }
        } catch {
            logger.warning("Could not read which records are to be announced", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Passes an event to the outbox, and logs when the endpoint goes down or recovers.
    private func handle(
        _ event: WebhookOutbox.Event, using random: inout SystemRandomNumberGenerator
    ) -> (actions: [WebhookOutbox.Action], wakeTime: Duration?) {
        let now = uptime
        let (actions, wakeTime, wasDown, isDown) = outbox.withLock { outbox in
            let wasDown = outbox.isDown
            let actions = outbox.handle(event, at: now, using: &random)
            return (actions, outbox.wakeTime, wasDown, outbox.isDown)
        }
        if case .ended(_, .delivered) = event { meter.announced(true) }
        if case .ended(let id, .gone) = event {
            logger.warning("A record was deleted before it was announced", metadata: ["upload": "\(id)"])
        }
        if case .ended(let id, .failed(let failure)) = event {
            meter.announced(false)
            logger.info("Could not announce a record", metadata: ["upload": "\(id)", "error": "\(failure)"])
            if isDown, !wasDown {
                logger.warning(
                    "The endpoint of the webhook accepts no messages; it is asked again from time to time",
                    metadata: ["url": "\(webhook.shownURL)", "error": "\(failure)"])
            }
        }
        if wasDown, !isDown {
            logger.notice(
                "The endpoint of the webhook accepts messages again", metadata: ["url": "\(webhook.shownURL)"])
        }
        return (actions, wakeTime)
    }

    private func settle(_ id: UploadID) async {
        do {
            try await store.settle(id)
        } catch {
            logger.warning(
                "Could not note that a record was announced; it will be announced again",
                metadata: ["upload": "\(id)", "error": "\(error)"])
        }
    }

    private func attempt(_ id: UploadID) async {
        let message: Webhook.Message
        do {
            guard let found = try await self.message(about: id) else {
                continuation.yield(.outbox(.ended(id, .gone)))
                return
            }
            message = found
        } catch {
            guard !Task.isCancelled else { return }
            meter.storeFailed(.read, error)
            logger.warning(
                "Could not read a record to announce it", metadata: ["upload": "\(id)", "error": "\(error)"])
            continuation.yield(.outbox(.ended(id, .unreadable("The record could not be read: \(error)"))))
            return
        }
        let delivery: WebhookOutbox.AttemptEnd
        do {
            let status = try await webhook.post(message)
            delivery = (200..<300).contains(status) ? .delivered : .failed(Self.reason(status))
        } catch {
            delivery = .failed("\(error)")
        }
        guard Task.isCancelled else {
            continuation.yield(.outbox(.ended(id, delivery)))
            return
        }
        // A record whose attempt was interrupted by the shutdown stays in the outbox for the next start.
        if delivery == .delivered { await settle(id) }
    }

    private static func reason(_ status: Int) -> String {
        (300..<400).contains(status)
            ? "The endpoint responded with \(status), and redirects are not followed."
            : "The endpoint responded with \(status)."
    }

    /// Makes the message about a record; `nil` if the record was deleted.
    private func message(about id: UploadID) async throws -> Webhook.Message? {
        guard let record = try await store.openRecord(id) else { return nil }
        guard record.size <= Webhook.maximumRecordBytes else { return webhook.message(about: id, nil, at: Date()) }
        var bytes: [UInt8] = []
        while Int64(bytes.count) < record.size {
            let piece = try await record.read(at: Int64(bytes.count), count: 64 << 10)
            guard piece.readableBytes > 0 else {
                throw UploadStoreError(.unavailable, "The record of upload \(id) is shorter than it was.")
            }
            bytes += piece.readableBytesView
        }
        return webhook.message(about: id, bytes, at: Date())
    }

    // MARK: - Showing

    /// The metrics of the webhook, for `GET /metrics`.
    var measurements: [(metric: ReceiverMetric, value: Double)] {
        let outbox = outbox.withLock { $0 }
        return [
            (.webhooksPending, Double(outbox.pendingCount)), (.webhooksStuck, Double(outbox.stuckCount)),
            (.webhookIsDown, outbox.isDown ? 1 : 0),
        ]
    }

    /// The response to `GET /webhooks`.
    func response() throws -> Response {
        let outbox = outbox.withLock { $0 }
        let (now, uptime) = (Date(), uptime)
        let list = WebhookList(
            url: webhook.shownURL, isDown: outbox.isDown, pending: outbox.pendingCount,
            delivered: outbox.deliveredCount, failedAttempts: outbox.failedCount, stuckCount: outbox.stuckCount,
            stuck: outbox.stuck(limit: WebhookList.maximumCount).map { stuck in
                WebhookList.Stuck(
                    upload: stuck.id, attempts: stuck.attempts, failure: stuck.failure,
                    next: stuck.next.map { now.addingTimeInterval(($0 - uptime) / .seconds(1)) })
            })
        return Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder.forResponses.encode(list))))
    }
}

/// The body of `GET /webhooks`: counts since the start, and the stuck records.
struct WebhookList: Encodable {
    /// A record whose message failed.
    struct Stuck: Encodable {
        let upload: UploadID
        /// The number of failed attempts since the receiver started.
        let attempts: Int
        /// The reason why the last attempt failed.
        let failure: String
        /// The time of the next attempt; `nil` while the endpoint is down.
        let next: Date?
    }

    let url: String
    /// Whether the endpoint accepts no messages at all.
    let isDown: Bool
    /// The number of records whose message was not delivered yet.
    let pending: Int
    let delivered: Int
    let failedAttempts: Int
    let stuckCount: Int
    /// The oldest stuck records.
    let stuck: [Stuck]

    /// The maximum number of stuck records in the response.
    static let maximumCount = 100
}
