#if canImport(Observation)
public import Foundation
public import HTTPTypes
public import Observation
public import PostcardForm

/// One upload as a row of a list shows it.
///
/// ```swift
/// struct Row: View {
///     let item: UploadItem
///
///     var body: some View {
///         ProgressView(item.name, value: item.fraction ?? 0)
///         if let error = item.error { Text(error.localizedDescription) }
///     }
/// }
/// ```
///
/// An item that nobody holds any more cancels its upload.
@Observable @MainActor
public final class UploadItem: Identifiable {
    /// By which a list tells it from others.
    public nonisolated let id = UUID()

    /// What it is called on the screen.
    public let name: String

    /// How it stands.
    public private(set) var state = State.waiting

    /// How far the present attempt is; `nil` before its first byte.
    public private(set) var progress: UploadProgress?

    /// How an upload stands.
    public enum State: Sendable {
        /// It has not begun, or waits for its turn.
        case waiting
        /// The form's files are looked at.
        case preparing
        /// There is no network; it goes on when there is one.
        case waitingForNetwork
        /// The form is being sent.
        case sending
        /// The whole form has been sent, and the server has not answered yet.
        case awaitingAnswer
        /// An attempt failed, and the next one comes after a while.
        case retrying(UploadRetry)
        /// The server has accepted the form.
        case done(UploadResponse)
        /// It failed.
        case failed(any Error)
        /// It was cancelled.
        case cancelled
    }

    @ObservationIgnored private let events: UploadEvents
    @ObservationIgnored private var task: Task<Void, Never>?
    /// Says whose turn it is, where the item is one of a list's.
    @ObservationIgnored weak var list: UploadList?

    /// Makes an item, which waits until ``start()`` is called.
    ///
    /// - Parameters:
    ///   - form: The form.
    ///   - url: Where it goes, `http` or `https`.
    ///   - name: What it is called on the screen; the name of the form's first file unless given.
    ///   - client: Who sends it.
    ///   - headerFields: Further header fields. An `Idempotency-Key` is set unless there is one, so that a server
    ///     can tell that a retry is the same upload.
    public convenience init(
        _ form: MultipartForm, to url: URL, name: String? = nil, client: UploadClient = UploadClient(),
        headerFields: HTTPFields = HTTPFields()
    ) {
        self.init(
            client.events(of: form, to: url, headerFields: headerFields),
            name: name ?? form.parts.lazy.compactMap(\.filename).first ?? url.lastPathComponent)
    }

    /// Makes an item of an upload's events, which waits until ``start()`` is called.
    ///
    /// - Parameters:
    ///   - events: The upload; ``retry()`` iterates over them anew, with the same `Idempotency-Key`, so that a server
    ///     can tell that it is the same upload.
    ///   - name: What it is called on the screen.
    public init(_ events: UploadEvents, name: String) {
        self.events = events.under(IdempotencyKey())
        self.name = name
    }

    deinit {
        task?.cancel()
    }

    /// The share of the body that was sent, from 0 to 1; `nil` where its length is not known.
    public var fraction: Double? {
        if case .done = state { return 1 }
        return progress.map(\.fraction) ?? 0
    }

    /// How fast it goes; `nil` where it does not, or that cannot be told yet.
    public var bytesPerSecond: Double? { isSending ? progress?.bytesPerSecond : nil }

    /// How long the rest takes at that speed, the server's answer not counted; `nil` where that cannot be told.
    public var timeRemaining: Duration? { isSending ? progress?.timeRemaining : nil }

    /// Why it failed, or why it is tried again.
    public var error: (any Error)? {
        switch state {
        case .failed(let error): error
        case .retrying(let retry): retry.error
        default: nil
        }
    }

    /// Whether it has ended, well or not.
    public var isOver: Bool {
        switch state {
        case .done, .failed, .cancelled: true
        case .waiting, .preparing, .waitingForNetwork, .sending, .awaitingAnswer, .retrying: false
        }
    }

    /// Whether it has begun and has not ended.
    var isRunning: Bool { task != nil }

    private var isSending: Bool {
        if case .sending = state { true } else { false }
    }

    /// Begins it, unless it has begun.
    public func start() {
        guard case .waiting = state, task == nil else { return }
        state = .preparing
        task = Task { [weak self, events] in
            do {
                for try await event in events { self?.note(event) }
                self?.end(nil)
            } catch {
                self?.end(error)
            }
        }
    }

    /// Ends it. One that is over stays what it is.
    public func cancel() {
        if let task { return task.cancel() }
        if case .waiting = state { state = .cancelled }
    }

    /// Sends it again, where it failed or was cancelled. What the server has accepted is never sent again.
    public func retry() {
        switch state {
        case .failed(let error):
            if (error as? UploadError)?.delivery == .accepted { return }
        case .cancelled: break
        case .waiting, .preparing, .waitingForNetwork, .sending, .awaitingAnswer, .retrying, .done: return
        }
        state = .waiting
        progress = nil
        if let list { list.fill() } else { start() }
    }

    /// Waits until it has ended, well or not; of one that has not begun, it returns at once.
    public func finish() async {
        await task?.value
    }

    private func note(_ event: UploadEvent) {
        if let step = event.progress { progress = step }
        switch event {
        case .preparing: state = .preparing
        case .waitingForNetwork: state = .waitingForNetwork
        case .sending: state = .sending
        case .awaitingAnswer: state = .awaitingAnswer
        case .retrying(let retry): state = .retrying(retry)
        case .done(let response): state = .done(response)
        }
    }

    private func end(_ error: (any Error)?) {
        task = nil
        if let error {
            state = error is CancellationError ? .cancelled : .failed(error)
        } else if !isOver {
            state = .cancelled
        }
        list?.fill()
    }
}
#endif
