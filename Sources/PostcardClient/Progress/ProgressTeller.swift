import PostcardForm
import Synchronization

/// Tells the program how far an attempt is, one step at a time: steps come from several tasks and threads.
///
/// It tells no more often than a screen can use. The first step, the end of each part and the last step are always
/// told, and what was withheld is told when its time has come.
final class ProgressTeller: Sendable {
    private let tell: (@Sendable (UploadEvent) -> Void)?
    private let attempt: Int
    private let interval: Duration
    private let layout: FormLayout?

    /// Held from the decision that a step is told until it has been, so that none overtakes another.
    private let turn: Mutex<State>

    private struct State {
        /// How far the attempt has been: sent again to another place, the form is told of once.
        var highest: Int64
        var meter = SpeedMeter()
        var isWhole = false
        var endedParts = 0
        var lastTold: ContinuousClock.Instant?
        var withheld: BodyProgress?
    }

    /// - Parameters:
    ///   - tell: Who is told; nobody where it is `nil`.
    ///   - attempt: Which attempt it is, from 1.
    ///   - interval: The least time between two steps told.
    ///   - layout: What is sent.
    ///   - reached: How many bytes of it have been told of: an upload that goes on does not fall back.
    init(
        _ tell: (@Sendable (UploadEvent) -> Void)?, attempt: Int, interval: Duration, of layout: FormLayout?,
        beyond reached: Int64 = -1
    ) {
        turn = Mutex(State(highest: reached))
        self.tell = tell
        self.attempt = attempt
        self.interval = interval
        self.layout = layout
    }

    /// How many bytes have been told of.
    var highest: Int64 { turn.withLock { $0.highest } }

    /// How often ``flush()`` wants to be called; `nil` where nobody is told anything.
    var flushInterval: Duration? { tell == nil ? nil : max(interval, .milliseconds(10)) }

    /// Takes note of an event, and tells of it where it carries the upload forward.
    ///
    /// - Parameters:
    ///   - event: What the transport reports.
    ///   - request: What it carries.
    ///   - watch: Who keeps account of it.
    func note(_ event: TransportEvent, of request: UploadRequest, watchedBy watch: AttemptWatch) {
        guard let tell else {
            watch.note(event)
            return
        }
        turn.withLock { state in
            guard watch.note(event) else { return }
            switch event {
            case .waitingForNetwork: tell(.waitingForNetwork)
            case .sent(let body):
                guard let layout, let body = request.body.flatMap({ body.counted(in: layout, ifOf: $0) }) else { break }
                advance(&state, to: body, of: layout, telling: tell)
            case .received: break
            }
        }
    }

    /// Tells of a step that came too soon after the one before.
    func flush() {
        guard let tell, let layout else { return }
        turn.withLock { state in
            guard let body = state.withheld, let lastTold = state.lastTold, .now - lastTold >= interval else { return }
            self.tell(of: body, layout, &state, at: .now, to: tell)
        }
    }

    /// A request is over: nothing is told of it any more once this returns.
    func end(_ watch: AttemptWatch) {
        turn.withLock { state in
            watch.end()
            if let tell, let layout, let body = state.withheld {
                self.tell(of: body, layout, &state, at: .now, to: tell)
            }
        }
    }

    private func advance(
        _ state: inout State, to body: BodyProgress, of layout: FormLayout, telling tell: (UploadEvent) -> Void
    ) {
        let isWhole = body.isWhole(layout)
        guard body.bytesSent > state.highest || (body.bytesSent == state.highest && isWhole && !state.isWhole) else {
            return
        }
        state.highest = body.bytesSent
        state.isWhole = isWhole
        let now = ContinuousClock.now
        state.meter.add(body.bytesSent, at: now)
        let endsPart = countEndedParts(&state, body, in: layout)
        if isWhole || endsPart || state.lastTold.map({ now - $0 >= interval }) ?? true {
            self.tell(of: body, layout, &state, at: now, to: tell)
        } else {
            state.withheld = body
        }
    }

    /// Whether a part has ended since the last step.
    private func countEndedParts(_ state: inout State, _ body: BodyProgress, in layout: FormLayout) -> Bool {
        let before = state.endedParts
        while state.endedParts < body.contentRanges.count, body.hasEnded(state.endedParts, in: layout) {
            state.endedParts += 1
        }
        return state.endedParts > before
    }

    private func tell(
        of body: BodyProgress, _ layout: FormLayout, _ state: inout State, at now: ContinuousClock.Instant,
        to tell: (UploadEvent) -> Void
    ) {
        state.lastTold = now
        state.withheld = nil
        let progress = UploadProgress(attempt: attempt, body: body, of: layout, meter: state.meter)
        tell(.sending(progress))
        if body.isWhole(layout) { tell(.awaitingAnswer(progress)) }
    }
}

extension BodyProgress {
    /// The same counted from the start of the whole body, where a slice of it is sent; `nil` where it says nothing of
    /// the whole.
    func counted(in whole: FormLayout, ifOf sent: FormLayout) -> BodyProgress? {
        guard sent.isSlice else { return self }
        guard bytesSent > 0 || (sent.start == 0 && sent.contentLength != 0) else { return nil }
        let start = sent.start
        return BodyProgress(
            bytesSent: start + bytesSent,
            contentRanges: start == 0
                ? contentRanges : contentRanges.map { $0.lowerBound + start..<$0.upperBound + start })
    }

    /// Whether the whole body has been sent.
    func isWhole(_ layout: FormLayout) -> Bool {
        isWhole || bytesSent == layout.contentLength
    }

    /// Whether the content of a part has been sent to its end. That of a stream of unknown length ends where the
    /// next part begins.
    func hasEnded(_ index: Int, in layout: FormLayout) -> Bool {
        guard index < contentRanges.count, contentRanges[index].upperBound <= bytesSent else { return false }
        return layout.parts[index].contentLength != nil || index + 1 < contentRanges.count || isWhole
    }
}
