#if canImport(Observation)
public import Foundation
public import HTTPTypes
public import Observation
public import PostcardForm

/// The uploads of a screen. A few of them run at a time.
///
/// ```swift
/// @State private var uploads = UploadList()
///
/// List(uploads.items) { Row(item: $0) }
///     .onChange(of: photos) { for photo in photos { uploads.add(form(of: photo), to: url) } }
/// ```
///
/// A list releases its items when it is deallocated, which cancels their uploads.
@Observable @MainActor
public final class UploadList {
    /// The uploads, in the order in which they were added.
    public private(set) var items: [UploadItem] = []

    /// The client that sends the forms.
    public let client: UploadClient

    /// The maximum number of uploads at a time.
    public let maximumConcurrentUploads: Int

    /// Makes an empty list.
    ///
    /// - Parameters:
    ///   - client: The client that sends the forms.
    ///   - maximumConcurrentUploads: The maximum number of uploads at a time. Defaults to 3; more are seldom faster on
    ///     phones.
    public init(client: UploadClient = UploadClient(), maximumConcurrentUploads: Int = 3) {
        self.client = client
        self.maximumConcurrentUploads = max(maximumConcurrentUploads, 1)
    }

    /// Adds an upload, which starts when fewer than ``maximumConcurrentUploads`` are running.
    ///
    /// - Parameters:
    ///   - form: The form.
    ///   - url: The URL that the form is sent to, `http` or `https`.
    ///   - name: The name on the screen. Defaults to the name of the form's first file.
    ///   - headerFields: Further header fields. An `Idempotency-Key` is added if there is none.
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

    /// The fraction of the uploads that was sent, from 0 to 1. Cancelled and failed uploads do not count. Each other
    /// upload has the same weight, because the length of an upload is unknown until it starts.
    public var fraction: Double {
        let counted = items.filter { item in
            switch item.state {
            case .failed, .cancelled: false
            default: true
            }
        }
        guard !counted.isEmpty else { return 0 }
        return counted.reduce(0) { $0 + ($1.fraction ?? 0) } / Double(counted.count)
    }

    /// The current speed of all uploads together.
    public var bytesPerSecond: Double {
        items.reduce(0) { $0 + ($1.bytesPerSecond ?? 0) }
    }

    /// Cancels all uploads that have not ended.
    public func cancelAll() {
        // The waiting uploads are cancelled first, because they would start when running uploads end.
        for item in items where !item.isRunning { item.cancel() }
        for item in items { item.cancel() }
    }

    /// Sends the forms of all failed uploads again. Cancelled uploads are not sent again.
    public func retryAll() {
        for item in items {
            if case .failed = item.state { item.retry() }
        }
    }

    /// Removes an upload from the list, and cancels it.
    public func remove(_ item: UploadItem) {
        guard let index = items.firstIndex(where: { $0.id == item.id }) else { return }
        items.remove(at: index)
        item.list = nil
        item.cancel()
        fill()
    }

    /// Removes the uploads that the server has accepted.
    public func clear() {
        items.removeAll { if case .done = $0.state { true } else { false } }
    }

    /// Waits until all uploads have ended, including uploads that are added during the wait.
    public func finish() async {
        while true {
            fill()
            guard let item = items.first(where: \.isRunning) else { return }
            await item.finish()
        }
    }

    /// Starts waiting uploads, up to ``maximumConcurrentUploads``.
    func fill() {
        var room = maximumConcurrentUploads - items.count(where: \.isRunning)
        for item in items where room > 0 && !item.isRunning {
            item.start()
            if item.isRunning { room -= 1 }
        }
    }
}
#endif
