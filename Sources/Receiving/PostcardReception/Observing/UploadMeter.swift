package import CoreMetrics
import PostcardFoundation
import PostcardStore
import Synchronization

/// Counts uploads, for `/status` and for swift-metrics.
package final class UploadMeter: Sendable {
    /// The counts since the start.
    package struct Counts: Sendable, Encodable {
        package var underWay = 0
        package var received = 0
        /// The number of forms that were received again under the same key, and created no second record.
        package var repeated = 0
        package var files = 0
        package var bodyBytes: Int64 = 0
        /// The number of uploads removed because of their age or the size of all uploads.
        package var removed = 0
        package var refused = 0
        package var refusals: [String: Int] = [:]
    }

    package enum StoreOperation: String, Sendable {
        case store, read, delete, sweep
    }

    private let factory: any MetricsFactory
    private let counts = Mutex(Counts())
    private let counters: LabeledCounters
    private let received: Counter
    private let repeated: Counter
    private let files: Counter
    private let bytes: Counter
    private let size: Recorder
    private let duration: Timer
    private let inProgress: Meter

    /// - Parameter factory: Makes the metrics. Defaults to the factory that the app has chosen for the process.
    package init(factory: any MetricsFactory = MetricsSystem.factory) {
        self.factory = factory
        counters = LabeledCounters(factory)
        received = Counter(label: ReceiverMetric.uploadsReceived.rawValue, factory: factory)
        repeated = Counter(label: ReceiverMetric.uploadsRepeated.rawValue, factory: factory)
        files = Counter(label: ReceiverMetric.filesReceived.rawValue, factory: factory)
        bytes = Counter(label: ReceiverMetric.bytesReceived.rawValue, factory: factory)
        size = Recorder(label: ReceiverMetric.uploadSize.rawValue, factory: factory)
        duration = Timer(
            label: ReceiverMetric.uploadDuration.rawValue, preferredDisplayUnit: .seconds, factory: factory)
        inProgress = Meter(label: ReceiverMetric.uploadsInProgress.rawValue, factory: factory)
    }

    package var current: Counts { counts.withLock { $0 } }

    /// Counts an upload that begins. Call ``ended(bodyBytes:after:)`` afterwards, whether the upload succeeds or fails.
    func begins() {
        counts.withLock { $0.underWay += 1 }
        inProgress.increment()
    }

    /// Counts the end of an upload. `bodyBytes` is the size of the form; `nil` for a request with only a part of a
    /// form. The bytes of that part are counted when the whole form is read.
    func ended(bodyBytes: Int64?, after time: Duration) {
        counts.withLock { counts in
            counts.underWay -= 1
            counts.bodyBytes += bodyBytes ?? 0
        }
        inProgress.decrement()
        if let bodyBytes {
            bytes.increment(by: bodyBytes)
            size.record(bodyBytes)
        }
        duration.recordNanoseconds(Int64(time / .nanoseconds(1)))
    }

    func received(_ upload: CommittedUpload) {
        counts.withLock { counts in
            guard !upload.isRepetition else {
                counts.repeated += 1
                return
            }
            counts.received += 1
            counts.files += upload.record.files.count
        }
        guard !upload.isRepetition else { return repeated.increment() }
        received.increment()
        files.increment(by: upload.record.files.count)
    }

    package func refused(_ problem: UploadProblem) {
        counts.withLock { counts in
            counts.refused += 1
            counts.refusals[problem.code.rawValue, default: 0] += 1
        }
        counters.increment(.refusals, [("code", problem.code.rawValue)])
    }

    /// Counts an upload that was removed because of a limit of the store.
    package func removed(because reason: String) {
        counts.withLock { $0.removed += 1 }
        counters.increment(.uploadsRemoved, [("reason", reason)])
    }

    /// Reports the total size of all uploads.
    package func stores(bytes: Int128) {
        Meter(label: ReceiverMetric.storedBytes.rawValue, factory: factory).set(Double(bytes))
    }

    /// Counts an attempt to deliver the message about a record to a webhook's endpoint.
    package func announced(_ isDelivered: Bool) {
        counters.increment(isDelivered ? .webhooksDelivered : .webhooksFailed, [])
    }

    package func storeFailed(_ operation: StoreOperation, _ error: any Error) {
        let known: [UploadStoreError.Code] = [.full, .unavailable, .damaged]
        // The store of an app may use any codes.
        let code = (error as? UploadStoreError).flatMap { known.contains($0.code) ? $0.code.rawValue : nil } ?? "other"
        counters.increment(.storeErrors, [("operation", operation.rawValue), ("code", code)])
    }
}

/// Counters with labels. Each counter is made once.
package final class LabeledCounters: Sendable {
    private let factory: any MetricsFactory
    private let counters = Mutex<[String: Counter]>([:])

    package init(_ factory: any MetricsFactory) {
        self.factory = factory
    }

    /// - Parameter labels: Names and values. Each label must have a fixed set of values.
    package func increment(_ metric: ReceiverMetric, _ labels: [(String, String)], by amount: Int64 = 1) {
        let key = ([metric.rawValue] + labels.map(\.1)).joined(separator: "\n")
        let counter = counters.withLock { counters in
            if let counter = counters[key] { return counter }
            let counter = Counter(label: metric.rawValue, dimensions: labels, factory: factory)
            counters[key] = counter
            return counter
        }
        counter.increment(by: amount)
    }
}

/// The metrics of a receiver, named as in Prometheus: base units, and `_total` for values that only grow.
package enum ReceiverMetric: String, CaseIterable, Sendable {
    case uploadsReceived = "postcard_uploads_received_total"
    case uploadsRepeated = "postcard_uploads_repeated_total"
    case uploadsInProgress = "postcard_uploads_in_progress"
    case filesReceived = "postcard_files_received_total"
    case bytesReceived = "postcard_received_bytes_total"
    case uploadDuration = "postcard_upload_duration_seconds"
    case uploadSize = "postcard_upload_size_bytes"
    case refusals = "postcard_refusals_total"
    case storeErrors = "postcard_store_errors_total"
    case uploadsRemoved = "postcard_uploads_removed_total"
    case storedBytes = "postcard_stored_bytes"
    case storeFreeBytes = "postcard_store_free_bytes"
    case damagedUploads = "postcard_store_damaged_uploads"
    case webhooksDelivered = "postcard_webhooks_delivered_total"
    case webhooksFailed = "postcard_webhook_failures_total"
    case webhooksPending = "postcard_webhooks_pending"
    case webhooksStuck = "postcard_webhooks_stuck"
    case webhookIsDown = "postcard_webhook_endpoint_down"
    case shareUsed = "postcard_share_used"
    case shareLimit = "postcard_share_limit"
    case shareWaiting = "postcard_share_waiting"
    case fileWorkWaiting = "postcard_file_work_waiting"
    case startTime = "postcard_start_time_seconds"

    /// A description of what the metric measures, in one line.
    package var help: String {
        switch self {
        case .uploadsReceived: "Forms that became records."
        case .uploadsRepeated: "Forms that were received again under the same key, and made no second record."
        case .uploadsInProgress: "Requests whose form, or part of one, is being received."
        case .filesReceived: "Files of the forms that became records."
        case .bytesReceived: "Bytes of all forms that were read, including those that were refused."
        case .uploadDuration: "Time from the first byte of a form, or of a part of one, to its end."
        case .uploadSize: "Size of the forms that were read, including those that were refused."
        case .refusals: "Refused requests, by the code of the problem."
        case .storeErrors: "Operations of the store that failed, by operation and by the code of the error."
        case .uploadsRemoved: "Uploads that were removed to keep the limits of age and size, by the limit."
        case .storedBytes: "Size of all uploads, if it is limited."
        case .storeFreeBytes: "Bytes that are free on the disk of the store."
        case .damagedUploads: "Uploads that are set aside because they are damaged."
        case .webhooksDelivered: "Records whose message the endpoint of the webhook has accepted."
        case .webhooksFailed: "Attempts to send a message to the endpoint of the webhook that failed."
        case .webhooksPending: "Records that are still to be announced to the endpoint of the webhook."
        case .webhooksStuck: "Records whose message has failed, and is sent again later."
        case .webhookIsDown: "1 while the endpoint of the webhook accepts no messages, else 0."
        case .shareUsed: "How much of a shared resource clients hold, by resource."
        case .shareLimit: "How much of a shared resource there is, by resource."
        case .shareWaiting: "Requests that wait for a shared resource, by resource."
        case .fileWorkWaiting: "Operations on files that wait for a thread."
        case .startTime: "When the receiver started, in seconds since 1970."
        }
    }
}
