public import PostcardQueue

/// What the Live Activity shows: how many of the entries that are being sent have arrived.
public struct DiaryProgress: Codable, Hashable, Sendable {
    public let sent: Int
    public let count: Int
    /// The fraction of all bytes that was sent, in hundredths: a Live Activity may only be updated now and then.
    public let percent: Int

    init(_ uploads: [QueuedUpload]) {
        count = uploads.count
        sent = uploads.count { if case .done = $0.state { true } else { false } }
        let total = uploads.reduce(0.0) { $0 + Double($1.totalBytes) }
        let bytes = uploads.reduce(0.0) { $0 + $1.fraction * Double($1.totalBytes) }
        percent = total > 0 ? Int(bytes / total * 100) : 0
    }

    public var fraction: Double { Double(percent) / 100 }
    public var text: String { DiaryText.sentOf.localized("\(sent)", "\(count)") }
}

/// Decides when a Live Activity begins, changes and ends.
public struct ActivityPlan: Sendable {
    public enum Step: Sendable, Equatable {
        case none
        case start(DiaryProgress)
        case update(DiaryProgress)
        case end(DiaryProgress)
    }

    /// The entries that the activity is about, and what it shows of them.
    private var entries: Set<QueuedUpload.ID> = []
    private var shown: DiaryProgress?

    public init() {}

    /// Decides what to do after a change of the queue.
    ///
    /// - Parameters:
    ///   - uploads: The entries of the queue.
    ///   - isAllowed: Whether the user allows Live Activities.
    public mutating func step(for uploads: [QueuedUpload], isAllowed: Bool) -> Step {
        // A paused entry may stay so for days, and an activity of the system ends after eight hours.
        let open = uploads.filter { !$0.state.isEnded && $0.state != .paused }
        guard let shown else {
            guard isAllowed, !open.isEmpty else { return .none }
            entries = Set(open.map(\.id))
            return .start(show(uploads))
        }
        entries.formUnion(open.map(\.id))
        if open.isEmpty || !isAllowed {
            let last = progress(uploads)
            (self.shown, entries) = (nil, [])
            return .end(last)
        }
        let progress = progress(uploads)
        return progress == shown ? .none : .update(show(uploads))
    }

    /// Notes that the system has not begun the activity.
    public mutating func refuse() { (shown, entries) = (nil, []) }

    private mutating func show(_ uploads: [QueuedUpload]) -> DiaryProgress {
        let progress = progress(uploads)
        shown = progress
        return progress
    }

    private func progress(_ uploads: [QueuedUpload]) -> DiaryProgress {
        DiaryProgress(uploads.filter { entries.contains($0.id) })
    }
}

#if os(iOS)
public import ActivityKit

/// The Live Activity, of which the app and the extension that shows it have the same type.
public struct DiaryActivity: ActivityAttributes {
    public typealias ContentState = DiaryProgress

    public init() {}
}
#endif
