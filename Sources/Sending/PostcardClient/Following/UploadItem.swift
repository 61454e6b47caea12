#if canImport(Observation)
public import Foundation
public import HTTPTypes
public import Observation
public import PostcardForm

/// An upload for a row of a list on the screen.
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
/// An item cancels its upload when it is deallocated.
@Observable @MainActor
public final class UploadItem: Identifiable {
    /// The identity of the item in a list.
    public nonisolated let id = UUID()

    /// The name on the screen.
    public let name: String

    /// The state of the upload.
    public private(set) var state = State.waiting

    /// The progress of the current attempt; `nil` before its first byte.
    public private(set) var progress: UploadProgress?

    /// The state of an upload.
    public enum State: Sendable {
        /// The upload has not started, or waits for other uploads of its list to end.
        case waiting
        /// The form's files are being checked.
        case preparing
        /// There is no network; the upload continues when there is one.
        case waitingForNetwork
        /// The form is being sent.
        case sending
        /// The whole form was sent, and the server has not responded yet.
        case awaitingResponse
        /// An attempt failed; the next one starts after a delay.
        case retrying(UploadRetry)
        /// The server has accepted the form.
        case done(UploadResponse)
        /// The upload failed.
        case failed(any Error)
        /// The upload was cancelled.
        case cancelled
    }

    @ObservationIgnored private let events: UploadEvents
    @ObservationIgnored private var task: Task<Void, Never>?
    /// The list that starts the item, if the item belongs to a list.
    @ObservationIgnored weak var list: UploadList?

    /// Makes an item whose upload waits until ``start()`` is called.
    ///
    /// - Parameters:
    ///   - form: The form.
    ///   - url: The URL that the form is sent to, `http` or `https`.
    ///   - name: The name on the screen. Defaults to the name of the form's first file.
    ///   - client: The client that sends the form.
    ///   - headerFields: Further header fields. An `Idempotency-Key` is added if there is none, so that servers
    ///     recognize retries.
    public convenience init(
        _ form: MultipartForm, to url: URL, name: String? = nil, client: UploadClient = UploadClient(),
        headerFields: HTTPFields = HTTPFields()
    ) {
        self.init(
            client.events(of: form, to: url, headerFields: headerFields),
            name: name ?? form.parts.lazy.compactMap(\.filename).first ?? url.lastPathComponent)
    }

    /// Makes an item from the events of an upload. The upload waits until ``start()`` is called.
    ///
    /// - Parameters:
    ///   - events: The events of the upload. ``retry()`` iterates over them again with the same `Idempotency-Key`, so
    ///     that a server can recognize retries.
    ///   - name: The name on the screen.
    public init(_ events: UploadEvents, name: String) {
        self.events = events.under(IdempotencyKey())
        self.name = name
    }

    deinit {
        task?.cancel()
    }

    /// The fraction of the body sent, from 0 to 1; `nil` if the body's length is not known.
    public var fraction: Double? {
        if case .done = state { return 1 }
        return progress.map(\.fraction) ?? 0
    }

    /// The current speed in bytes per second; `nil` if nothing is being sent, or if the speed was not measured yet.
    public var bytesPerSecond: Double? { isSending ? progress?.bytesPerSecond : nil }

    /// The time to send the rest of the body at the current speed, without the server's response; `nil` if unknown.
    public var timeRemaining: Duration? { isSending ? progress?.timeRemaining : nil }

    /// The error of the failed upload, or of the failed attempt before a retry; `nil` if there is none.
    public var error: (any Error)? {
        switch state {
        case .failed(let error): error
        case .retrying(let retry): retry.error
        default: nil
        }
    }

    /// Whether the upload has ended, successfully or not.
    public var isEnded: Bool {
        switch state {
        case .done, .failed, .cancelled: true
        case .waiting, .preparing, .waitingForNetwork, .sending, .awaitingResponse, .retrying: false
        }
    }

    /// Whether the upload has started and not ended.
    var isRunning: Bool { task != nil }

    private var isSending: Bool {
        if case .sending = state { true } else { false }
    }

    /// Starts the upload. Does nothing if it has already started.
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

    /// Cancels the upload. Does nothing if it has ended.
    public func cancel() {
        if let task { return task.cancel() }
        if case .waiting = state { state = .cancelled }
    }

    /// Sends the form again if the upload failed or was cancelled. Does nothing if the server has accepted the form.
    public func retry() {
        switch state {
        case .failed(let error):
            if (error as? UploadError)?.delivery == .accepted { return }
        case .cancelled: break
        case .waiting, .preparing, .waitingForNetwork, .sending, .awaitingResponse, .retrying, .done: return
        }
        state = .waiting
        progress = nil
        if let list { list.fill() } else { start() }
    }

    /// Waits until the upload has ended, successfully or not. Returns at once if the upload has not started.
    public func finish() async {
        await task?.value
    }

    private func note(_ event: UploadEvent) {
        if let step = event.progress { progress = step }
        switch event {
        case .preparing: state = .preparing
        case .waitingForNetwork: state = .waitingForNetwork
        case .sending: state = .sending
        case .awaitingResponse: state = .awaitingResponse
        case .retrying(let retry): state = .retrying(retry)
        case .done(let response): state = .done(response)
        }
    }

    private func end(_ error: (any Error)?) {
        task = nil
        if let error {
            state = error is CancellationError ? .cancelled : .failed(error)
        } else if !isEnded {
            state = .cancelled
        }
        list?.fill()
    }
}

extension UploadItem {
    /// Makes an item that sends nothing, for a preview of a row or for a test.
    ///
    /// ```swift
    /// #Preview { Row(item: .preview(.sending, progress: .preview(0.4))) }
    /// ```
    ///
    /// - Parameters:
    ///   - state: The state of the upload.
    ///   - name: The name on the screen.
    ///   - progress: The progress of the current attempt. Defaults to `nil`: the first byte was not sent yet.
    public static func preview(
        _ state: State = .sending, name: String = "photo.jpg", progress: UploadProgress? = nil
    ) -> UploadItem {
        let item = UploadItem(UploadEvents { _, _ in throw CancellationError() }, name: name)
        item.state = state
        item.progress = progress
        return item
    }
}
#endif
