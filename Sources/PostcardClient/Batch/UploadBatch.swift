/// Many uploads, a few at a time, whose outcomes come in the order in which they end.
///
/// ```swift
/// let batch = client.uploadEach(photos, to: url, concurrency: 3) { photo in
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
/// The uploads begin with the first outcome that is asked for. Whoever leaves the loop before its end cancels those
/// that are left, and so does the cancellation of the task that iterates; the loop then still gives the outcomes of
/// those that were under way. A batch runs once: every outcome is given to one loop.
public struct UploadBatch: AsyncSequence, Sendable {
    public typealias Element = UploadOutcome

    private let run: BatchRun

    init(_ run: BatchRun) {
        self.run = run
    }

    /// How far the batch is.
    public var progress: UploadBatchProgress { run.progress }

    /// Ends the uploads under way, and begins no more. Those that never began have no outcome.
    public func cancel() {
        run.cancel()
    }

    /// Ends one upload, or keeps it from beginning; its outcome is `CancellationError`. One that has ended stays what
    /// it is.
    ///
    /// - Parameter index: Its place in the sequence that was given, from 0.
    public func cancel(_ index: Int) {
        run.cancel(index)
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(run)
    }

    /// Gives one outcome after the other. It belongs to one task.
    public struct Iterator: AsyncIteratorProtocol {
        private let reader: Reader

        init(_ run: BatchRun) {
            reader = Reader(run)
        }

        /// The next upload that ends; `nil` where all have.
        public mutating func next() async -> UploadOutcome? {
            await reader.run.next()
        }

        /// The next upload that ends; `nil` where all have.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> UploadOutcome? {
            await reader.run.next()
        }
    }

    /// Notices that a loop was left.
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
