public import HTTPTypes
public import PostcardForm
public import PostcardFoundation

/// Many uploads, a few at a time. Their outcomes are delivered in the order in which they end.
///
/// ```swift
/// let batch = client.uploadEach(photos, to: url, maximumConcurrentUploads: 3) { photo in
///     var form = MultipartForm()
///     form.append(fileAt: photo, named: "petImage")
///     return form
/// }
/// for await outcome in batch {
///     switch outcome.result {
///     case .success(let response): print(photos[outcome.index], response.status)
///     case .failure(let error): print(photos[outcome.index], error)
///     }
/// }
/// ```
///
/// The uploads start when the first outcome is requested. Leaving the loop early cancels the remaining uploads.
/// Cancelling the task that iterates cancels them too, and the loop still delivers the outcomes of the uploads that
/// were running. A batch runs once: each outcome is delivered to one loop.
public struct UploadBatch: AsyncSequence, Sendable {
    public typealias Element = UploadOutcome

    private let run: BatchRun

    init(_ run: BatchRun) {
        self.run = run
    }

    /// The progress of the batch.
    public var progress: UploadBatchProgress { run.progress }

    /// Cancels the running uploads. Uploads that have not started never start, and have no outcome.
    public func cancel() {
        run.cancel()
    }

    /// Cancels one upload, whose outcome is then `CancellationError`. Does nothing if the upload has ended.
    ///
    /// - Parameter index: The index of the upload in the sequence of items, from 0.
    public func cancel(_ index: Int) {
        run.cancel(index)
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(run)
    }

    /// An iterator over the outcomes of a batch, for use by one task only.
    public struct Iterator: AsyncIteratorProtocol {
        private let reader: Reader

        init(_ run: BatchRun) {
            reader = Reader(run)
        }

        /// The outcome of the next upload that ends; `nil` if all have ended.
        public mutating func next() async -> UploadOutcome? {
            await reader.run.next()
        }

        /// The outcome of the next upload that ends; `nil` if all have ended.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> UploadOutcome? {
            await reader.run.next()
        }
    }

    /// Cancels the batch when the caller leaves the loop.
    private final class Reader {
        let run: BatchRun

        init(_ run: BatchRun) {
            self.run = run
        }

        deinit {
            run.cancel()
        }
    }
}

extension UploadClient {
    /// Sends a form for each item, a few at a time.
    ///
    /// Each form is made when its upload can start, so a thousand photos do not need memory for a thousand forms.
    ///
    /// - Parameters:
    ///   - items: The items to make forms from, such as the URLs of photos. The sequence may be infinite.
    ///   - url: The URL that the forms are sent to, `http` or `https`.
    ///   - method: The method of the requests. Defaults to POST.
    ///   - headerFields: Further header fields of every request.
    ///   - maximumConcurrentUploads: The maximum number of uploads at a time. Defaults to 3, as in a queue.
    ///   - stopsAtFirstFailure: Whether one failure cancels the other uploads. Defaults to `false`.
    ///   - progress: Called often, by the tasks that send, with the progress in order. It should return at once.
    ///   - form: Makes the form of an item. If it throws an error, that error is the outcome of the item.
    /// - Returns: The outcomes, in the order in which the uploads end. The uploads start when the first is requested.
    public func uploadEach<Items: Sequence & Sendable>(
        _ items: Items, to url: URL, method: HTTPRequest.Method = .post, headerFields: HTTPFields = HTTPFields(),
        maximumConcurrentUploads: Int = 3, stopsAtFirstFailure: Bool = false,
        progress: (@Sendable (UploadBatchProgress) -> Void)? = nil,
        form: @escaping @Sendable (Items.Element) async throws -> MultipartForm
    ) -> UploadBatch where Items.Element: Sendable {
        let run = BatchRun(
            items, maximumConcurrentUploads: maximumConcurrentUploads, stopsAtFirstFailure: stopsAtFirstFailure,
            reportingTo: progress
        ) { item in
            events(of: try await form(item), to: url, method: method, headerFields: headerFields)
        }
        return UploadBatch(run)
    }

    /// Sends forms, a few at a time.
    ///
    /// - Parameters:
    ///   - forms: The forms. Each is taken from the sequence when its upload can start.
    ///   - url: The URL that the forms are sent to, `http` or `https`.
    ///   - method: The method of the requests. Defaults to POST.
    ///   - headerFields: Further header fields of every request.
    ///   - maximumConcurrentUploads: The maximum number of uploads at a time. Defaults to 3.
    ///   - stopsAtFirstFailure: Whether one failure cancels the other uploads. Defaults to `false`.
    ///   - progress: Called often, by the tasks that send, with the progress in order. It should return at once.
    /// - Returns: The outcomes, in the order in which the uploads end. The uploads start when the first is requested.
    public func uploadEach(
        _ forms: some Sequence<MultipartForm> & Sendable, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), maximumConcurrentUploads: Int = 3, stopsAtFirstFailure: Bool = false,
        progress: (@Sendable (UploadBatchProgress) -> Void)? = nil
    ) -> UploadBatch {
        uploadEach(
            forms, to: url, method: method, headerFields: headerFields,
            maximumConcurrentUploads: maximumConcurrentUploads,
            stopsAtFirstFailure: stopsAtFirstFailure, progress: progress
        ) { $0 }
    }

    /// Sends the forms of endpoints, a few at a time.
    ///
    /// ```swift
    /// let pets = photos.map { AddPet(name: "초코", photos: [$0]) }
    /// for await outcome in client.uploadEach(pets) {
    ///     let pet = try pets[outcome.index].decode(outcome.result.get())
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - endpoints: The endpoints. Each makes its form when its upload can start.
    ///   - maximumConcurrentUploads: The maximum number of uploads at a time. Defaults to 3.
    ///   - stopsAtFirstFailure: Whether one failure cancels the other uploads. Defaults to `false`.
    ///   - progress: Called often, by the tasks that send, with the progress in order. It should return at once.
    /// - Returns: The outcomes, in the order in which the uploads end. Their responses can be decoded with
    ///   ``UploadEndpoint/decode(_:)``. The uploads start when the first outcome is requested.
    public func uploadEach<Endpoints: Sequence & Sendable>(
        _ endpoints: Endpoints, maximumConcurrentUploads: Int = 3, stopsAtFirstFailure: Bool = false,
        progress: (@Sendable (UploadBatchProgress) -> Void)? = nil
    ) -> UploadBatch where Endpoints.Element: UploadEndpoint {
        let run = BatchRun(
            endpoints, maximumConcurrentUploads: maximumConcurrentUploads, stopsAtFirstFailure: stopsAtFirstFailure,
            reportingTo: progress
        ) { events(of: $0) }
        return UploadBatch(run)
    }
}

/// The progress of a batch: of each running upload, and in total.
public struct UploadBatchProgress: Sendable {
    /// The progress of each running upload, by the index of the upload.
    public internal(set) var items: [Int: UploadProgress] = [:]

    /// The number of uploads that succeeded.
    public internal(set) var succeeded = 0

    /// The number of uploads that failed or were cancelled.
    public internal(set) var failed = 0

    /// The total number of uploads; `nil` if the sequence does not know its count.
    public let count: Int?

    /// The number of bytes sent by all uploads. It never falls, because bytes that a retry sends again are not counted.
    public internal(set) var bytesSent: Int64 = 0

    /// The largest number of bytes, and the largest fraction of the body, that each running upload has sent.
    private var farthest: [Int: (bytes: Int64, fraction: Double)] = [:]

    init(count: Int?) {
        self.count = count
        fraction = count.map { $0 > 0 ? 0 : 1 }
    }

    /// The fraction of the uploads that have ended, from 0 to 1. A running upload counts with the fraction of its body
    /// sent. The value never falls. It is `nil` if ``count`` is `nil`.
    public private(set) var fraction: Double?

    /// Recomputes the fraction without lowering it: the sum of the same numbers in another order can be slightly lower.
    private mutating func raiseFraction() {
        guard let count, let before = fraction else { return }
        let running = farthest.values.reduce(0) { $0 + $1.fraction }
        fraction = max(before, min((Double(succeeded + failed) + running) / Double(max(count, 1)), 1))
    }

    mutating func note(_ progress: UploadProgress, of index: Int) {
        items[index] = progress
        let before = farthest[index] ?? (0, 0)
        bytesSent += max(progress.bytesSent - before.bytes, 0)
        farthest[index] = (max(progress.bytesSent, before.bytes), max(progress.fraction ?? 0, before.fraction))
        raiseFraction()
    }

    mutating func note(_ outcome: UploadOutcome) {
        items[outcome.index] = nil
        farthest[outcome.index] = nil
        switch outcome.result {
        case .success: succeeded += 1
        case .failure: failed += 1
        }
        raiseFraction()
    }
}

/// The result of one upload of a batch.
public struct UploadOutcome: Sendable {
    /// The index of the upload in the sequence of items, from 0.
    public let index: Int

    /// The response, or the error that the upload failed with. The error is one that
    /// ``UploadClient/upload(_:to:method:headerFields:progress:)`` throws, `CancellationError` if the upload was
    /// cancelled, or an error of the closure that makes the forms.
    public let result: Result<UploadResponse, any Error>
}
