#if canImport(Observation)
public import Foundation
public import HTTPTypes
public import Observation
public import PostcardForm

/// The uploads that a screen shows, a few of them under way at a time.
///
/// ```swift
/// @State private var uploads = UploadList()
///
/// List(uploads.items) { Row(item: $0) }
///     .onChange(of: photos) { for photo in photos { uploads.add(form(of: photo), to: url) } }
/// ```
///
/// A list that nobody holds any more lets go of its items, and with them of their uploads.
@Observable @MainActor
public final class UploadList {
    /// The uploads, in the order in which they were added.
    public private(set) var items: [UploadItem] = []

    /// Who sends them.
    public let client: UploadClient

    /// The most uploads at a time.
    public let concurrency: Int

    /// Makes an empty list.
    ///
    /// - Parameters:
    ///   - client: Who sends the forms.
    ///   - concurrency: The most uploads at a time, 3 unless given: on a phone's network more are seldom faster.
    public init(client: UploadClient = UploadClient(), concurrency: Int = 3) {
        self.client = client
        self.concurrency = max(concurrency, 1)
    }

    /// Adds an upload, which begins when its turn has come.
    ///
    /// - Parameters:
    ///   - form: The form.
    ///   - url: Where it goes, `http` or `https`.
    ///   - name: What it is called on the screen; the name of the form's first file unless given.
    ///   - headerFields: Further header fields. An `Idempotency-Key` is set unless there is one.
    @discardableResult
    public func add(
        _ form: MultipartForm, to url: URL, name: String? = nil, headerFields: HTTPFields = HTTPFields()
    ) -> UploadItem {
        let item = UploadItem(form, to: url, name: name, client: client, headerFields: headerFields)
        item.list = self
        items.append(item)
        fill()
        return item
    }

    /// The share of all that was sent, each upload counting the same, from 0 to 1. Those that failed or were cancelled
    /// count with what they had sent.
    public var fraction: Double {
        guard !items.isEmpty else { return 0 }
        return items.reduce(0) { $0 + ($1.fraction ?? 0) } / Double(items.count)
    }

    /// How fast the uploads go together.
    public var bytesPerSecond: Double {
        items.reduce(0) { $0 + ($1.bytesPerSecond ?? 0) }
    }

    /// Ends all uploads that are not over.
    public func cancelAll() {
        // Those that wait first: otherwise they would get the turn of those that end.
        for item in items where !item.isRunning { item.cancel() }
        for item in items { item.cancel() }
    }

    /// Sends again what failed; what was cancelled stays cancelled.
    public func retryFailed() {
        for item in items {
            if case .failed = item.state { item.retry() }
        }
    }

    /// Takes an upload off the list; one under way is cancelled.
    public func remove(_ item: UploadItem) {
        guard let index = items.firstIndex(where: { $0.id == item.id }) else { return }
        items.remove(at: index)
        item.list = nil
        item.cancel()
        fill()
    }

    /// Takes off the list what the server has accepted.
    public func removeDone() {
        items.removeAll { if case .done = $0.state { true } else { false } }
    }

    /// Waits until all uploads have ended, those added meanwhile included.
    public func finish() async {
        while true {
            fill()
            guard let item = items.first(where: \.isRunning) else { return }
            await item.finish()
        }
    }

    /// Begins those that wait, as far as there is room.
    func fill() {
        var room = concurrency - items.count(where: \.isRunning)
        for item in items where room > 0 && !item.isRunning {
            item.start()
            if item.isRunning { room -= 1 }
        }
    }
}
#endif
