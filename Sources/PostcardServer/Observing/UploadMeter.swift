import CoreMetrics
import PostcardFoundation
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
        package var refused = 0
        package var refusals: [String: Int] = [:]
    }

    private let counts = Mutex(Counts())
    private let received = Counter(label: "postcard_uploads_received")
    private let bytes = Counter(label: "postcard_upload_body_bytes")
    private let duration = Timer(label: "postcard_upload_duration")
    private let underWay = Meter(label: "postcard_uploads_under_way")

    package init() {}

    /// The counts so far.
    package var current: Counts { counts.withLock { $0 } }

    /// Counts an upload that begins. Call ``ended(bodyBytes:after:)`` whether it succeeds or fails.
    func begins() {
        counts.withLock { $0.underWay += 1 }
        underWay.increment()
    }

    /// Counts the end of an upload.
    func ended(bodyBytes: Int64, after time: Duration) {
        counts.withLock { counts in
            counts.underWay -= 1
            counts.bodyBytes += bodyBytes
        }
        underWay.decrement()
        bytes.increment(by: bodyBytes)
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
        guard !upload.isRepetition else { return }
        received.increment()
    }

    package func refused(_ problem: UploadProblem) {
        counts.withLock { counts in
            counts.refused += 1
            counts.refusals[problem.code, default: 0] += 1
        }
        Counter(label: "postcard_uploads_refused", dimensions: [("code", problem.code)]).increment()
    }
}
