#if Server
import CoreMetrics
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Counts uploads, for `/status` and for whatever swift-metrics reports to.
final class UploadMeter: Sendable {
    /// The counts since the start.
    struct Counts: Sendable, Encodable {
        var underWay = 0
        var received = 0
        /// Forms that were received once more under the same key, and made no other record.
        var repeated = 0
        var files = 0
        var bodyBytes: Int64 = 0
        var refused = 0
        var refusals: [String: Int] = [:]
    }

    private let counts = Mutex(Counts())
    private let received = Counter(label: "postcard_uploads_received")
    private let bytes = Counter(label: "postcard_upload_body_bytes")
    private let duration = Timer(label: "postcard_upload_duration")
    private let underWay = Meter(label: "postcard_uploads_under_way")

    /// What is counted now.
    var current: Counts { counts.withLock { $0 } }

    /// An upload begins; ``ended(bodyBytes:after:)`` is to be called whatever becomes of it.
    ///
    /// - Returns: `false` where as many are under way as may be.
    func begins(maximum: Int) -> Bool {
        let isTaken = counts.withLock { counts in
            guard counts.underWay < maximum else { return false }
            counts.underWay += 1
            return true
        }
        if isTaken { underWay.increment() }
        return isTaken
    }

    /// An upload that began is over.
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

    func refused(_ problem: UploadProblem) {
        counts.withLock { counts in
            counts.refused += 1
            counts.refusals[problem.code, default: 0] += 1
        }
        Counter(label: "postcard_uploads_refused", dimensions: [("code", problem.code)]).increment()
    }
}
#endif
