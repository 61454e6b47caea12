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
        /// Forms that were received again under the same key, and made no second record.
        package var repeated = 0
        package var files = 0
        package var bodyBytes: Int64 = 0
        /// Uploads that were removed because they were too old, or all together too large.
        package var removed = 0
        package var refused = 0
        package var refusals: [String: Int] = [:]
    }

    /// What a store was to do when it failed.
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

    /// - Parameter factory: Makes the metrics. Defaults to the one that the app has chosen for the process.
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

    /// The counts so far.
    package var current: Counts { counts.withLock { $0 } }

    /// Counts an upload that begins. Call ``ended(bodyBytes:after:)`` whether it succeeds or fails.
    func begins() {
        counts.withLock { $0.underWay += 1 }
        inProgress.increment()
    }

    /// Counts the end of an upload.
    ///
    /// - Parameter bodyBytes: The size of the form, in bytes; `nil` for a request with a part of a form, whose bytes
    ///   count when the whole form is read.
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
            counts.refusals[problem.code, default: 0] += 1
        }
        counters.increment(.refusals, [("code", problem.code)])
    }

    /// Counts an upload that was removed because of a limit of the store.
    package func removed(because reason: String) {
        counts.withLock { $0.removed += 1 }
        counters.increment(.uploadsRemoved, [("reason", reason)])
    }

    /// Reports the size of all uploads together.
    package func stores(bytes: Int128) {
        Meter(label: ReceiverMetric.storedBytes.rawValue, factory: factory).set(Double(bytes))
    }

    /// Counts an attempt to announce a record to the endpoint of a webhook.
    package func announced(_ isDelivered: Bool) {
        counters.increment(isDelivered ? .webhooksDelivered : .webhooksFailed, [])
    }

    /// Counts an operation of the store that failed.
    package func storeFailed(_ operation: StoreOperation, _ error: any Error) {
        let known: [UploadStoreError.Code] = [.full, .unavailable, .damaged]
        // An app's own store may have any codes.
        let code = (error as? UploadStoreError).flatMap { known.contains($0.code) ? $0.code.rawValue : nil } ?? "other"
        counters.increment(.storeErrors, [("operation", operation.rawValue), ("code", code)])
    }
}

/// Counters with labels, each made once.
package final class LabeledCounters: Sendable {
    private let factory: any MetricsFactory
    private let counters = Mutex<[String: Counter]>([:])

    package init(_ factory: any MetricsFactory) {
        self.factory = factory
    }

    /// - Parameter labels: Names and values. The values must be from a list that does not grow.
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
