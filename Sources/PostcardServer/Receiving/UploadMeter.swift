import CoreMetrics
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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

    private struct State {
        var counts = Counts()
        /// How many uploads of each address are in progress.
        var peers = PeerCounts()
    }

    private let state = Mutex(State())
    private let received = Counter(label: "postcard_uploads_received")
    private let bytes = Counter(label: "postcard_upload_body_bytes")
    private let duration = Timer(label: "postcard_upload_duration")
    private let underWay = Meter(label: "postcard_uploads_under_way")

    package init() {}

    /// The counts so far.
    package var current: Counts { state.withLock { $0.counts } }

    /// Checks whether an upload could begin.
    ///
    /// - Throws: The refusal if all clients or this one have as many uploads in progress as are allowed.
    func checkRoom(for peer: PeerAddress?, _ options: UploadOptions) throws(UploadProblem) {
        if let problem = state.withLock({ Self.problem(of: $0, peer, options) }) { throw problem }
    }

    /// Counts an upload that begins. Call ``ended(for:bodyBytes:after:)`` whether it succeeds or fails.
    ///
    /// - Throws: The refusal if all clients or this one have as many uploads in progress as are allowed.
    func begins(for peer: PeerAddress?, _ options: UploadOptions) throws(UploadProblem) {
        let problem: UploadProblem? = state.withLock { state in
            if let problem = Self.problem(of: state, peer, options) { return problem }
            state.counts.underWay += 1
            state.peers.add(peer)
            return nil
        }
        if let problem { throw problem }
        underWay.increment()
    }

    private static func problem(of state: State, _ peer: PeerAddress?, _ options: UploadOptions) -> UploadProblem? {
        let maximum = options.maximumConcurrentUploads
        guard state.counts.underWay < maximum else { return .tooManyUploads(maximum) }
        let share = PeerAddress.share(options.clientShare, of: maximum)
        return state.peers.hasReached(share, for: peer) ? .tooManyUploadsOfClient(share) : nil
    }

    /// Counts the end of an upload.
    func ended(for peer: PeerAddress?, bodyBytes: Int64, after time: Duration) {
        state.withLock { state in
            state.counts.underWay -= 1
            state.counts.bodyBytes += bodyBytes
            state.peers.remove(peer)
        }
        underWay.decrement()
        bytes.increment(by: bodyBytes)
        duration.recordNanoseconds(Int64(time / .nanoseconds(1)))
    }

    func received(_ upload: CommittedUpload) {
        state.withLock { state in
            guard !upload.isRepetition else {
                state.counts.repeated += 1
                return
            }
            state.counts.received += 1
            state.counts.files += upload.record.files.count
        }
        guard !upload.isRepetition else { return }
        received.increment()
    }

    package func refused(_ problem: UploadProblem) {
        state.withLock { state in
            state.counts.refused += 1
            state.counts.refusals[problem.code, default: 0] += 1
        }
        Counter(label: "postcard_uploads_refused", dimensions: [("code", problem.code)]).increment()
    }
}
