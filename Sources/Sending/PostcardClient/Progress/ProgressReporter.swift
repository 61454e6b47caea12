import PostcardForm
import Synchronization

/// Turns the bytes that a transport reports into the events of an upload, with the progress of each part.
///
/// Events of several tasks and threads become one sequence. The first step of an attempt, the end of each part and the
/// last step are always reported, and other steps at most once per interval. Events are only added to a queue, so that
/// the app's closures are called by other tasks.
final class ProgressReporter: Sendable {
    private let events: UploadEventQueue
    private let interval: Duration
    private let state = Mutex(State())

    fileprivate struct State {
        var attempt = 0
        var isResumed = false
        /// The body of the attempt.
        var body: UploadBody?
        /// The ranges of the parts' contents in the body; `nil` if they become known only while the body is read.
        var contentRanges: [Range<Int64>]?
        /// The largest number of body bytes sent in the attempt. It does not fall if a redirect sends the form again.
        var bytesSent: Int64 = -1
        var hasSentAll = false
        var endedParts = 0
        var meter = SpeedMeter()
        var lastReport: ContinuousClock.Instant?
        /// Whether the latest step was withheld, because it came too soon after the step before.
        var isWithheld = false
    }

    /// Makes a reporter that puts its events into a queue.
    ///
    /// - Parameters:
    ///   - events: The queue that receives the events.
    ///   - interval: The minimum time between two steps.
    init(to events: UploadEventQueue, interval: Duration) {
        self.events = events
        self.interval = interval
    }

    /// The time between calls of ``flush(at:)``.
    var flushInterval: Duration { max(interval, .milliseconds(10)) }

    /// Begins an attempt.
    ///
    /// - Parameters:
    ///   - number: The number of the attempt, from 1.
    ///   - body: The whole body of the attempt. Its requests may send slices of this body.
    ///   - resumes: Whether the attempt resumes the one before. Its progress then does not fall.
    func beginAttempt(_ number: Int, of body: UploadBody?, resumes: Bool) {
        state.withLock { state in
            let bytesSent = resumes ? state.bytesSent : -1
            state = State()
            state.attempt = number
            state.isResumed = resumes
            state.body = body
            state.contentRanges = body?.layout.contentRanges
            state.bytesSent = bytesSent
        }
    }

    /// Reports that the upload waits for a network.
    func waitForNetwork() {
        events.put(.waitingForNetwork)
    }

    /// Records that bytes of a request's body were sent. Reports the progress if the upload has advanced.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes of the request's body sent so far.
    ///   - sent: The request's body, which is the whole body or a slice of it.
    func advance(to bytes: Int64, of sent: UploadBody, at now: ContinuousClock.Instant) {
        state.withLock { state in
            guard let body = state.body else { return }
            let start = sent.layout.start
            // Zero bytes are reported only at the start of the form. For a request without content, and for an append
            // of later bytes, they are no progress.
            if sent.layout.isSlice, bytes == 0, start > 0 || sent.contentLength == 0 { return }
            let bytesSent = start + bytes
            let hasSentAll = body.knownLength.map { bytesSent >= $0 } ?? false
            guard bytesSent > state.bytesSent || (bytesSent == state.bytesSent && hasSentAll && !state.hasSentAll)
            else { return }
            state.bytesSent = bytesSent
            state.hasSentAll = hasSentAll
            state.meter.add(bytesSent, at: now)
            let progress = state.progress(of: body)
            let endsPart = state.countEndedParts(progress)
            if hasSentAll || endsPart || state.lastReport == nil {
                report(progress, &state, at: now, isMilestone: true)
            } else if state.lastReport.map({ now - $0 >= interval }) ?? true {
                report(progress, &state, at: now, isMilestone: false)
            } else {
                state.isWithheld = true
            }
        }
    }

    /// Reports the latest step if it was withheld, and if the interval has passed.
    func flush(at now: ContinuousClock.Instant) {
        state.withLock { state in
            guard let lastReport = state.lastReport, now - lastReport >= interval else { return }
            reportWithheld(&state, at: now)
        }
    }

    /// Ends a request. Reports the latest step if it was withheld.
    func endRequest(at now: ContinuousClock.Instant) {
        state.withLock { reportWithheld(&$0, at: now) }
    }

    private func reportWithheld(_ state: inout State, at now: ContinuousClock.Instant) {
        guard state.isWithheld, let body = state.body else { return }
        report(state.progress(of: body), &state, at: now, isMilestone: false)
    }

    private func report(
        _ progress: UploadProgress, _ state: inout State, at now: ContinuousClock.Instant, isMilestone: Bool
    ) {
        state.lastReport = now
        state.isWithheld = false
        events.put(.sending(progress), isReplaceable: !isMilestone)
        if state.hasSentAll { events.put(.awaitingResponse(progress)) }
    }
}

extension ProgressReporter.State {
    fileprivate func progress(of body: UploadBody) -> UploadProgress {
        UploadProgress(
            attempt: attempt, isResumed: isResumed, bytesSent: max(bytesSent, 0), totalBytes: body.knownLength,
            parts: body.parts, contentRanges: contentRanges ?? body.contentRanges, meter: meter)
    }

    /// Counts the parts that were sent to their end.
    ///
    /// - Returns: Whether more parts have ended than at the previous call.
    fileprivate mutating func countEndedParts(_ progress: UploadProgress) -> Bool {
        let before = endedParts
        while endedParts < progress.contentRanges.count, progress.hasEnded(endedParts) { endedParts += 1 }
        return endedParts > before
    }
}
