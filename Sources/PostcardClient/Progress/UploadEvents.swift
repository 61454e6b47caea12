/// The steps of an upload, told while it goes on.
///
/// ```swift
/// for try await event in client.events(of: form, to: url) {
///     switch event {
///     case .sending(let progress): show(progress.fraction)
///     case .retrying(let retry): show(retry.error.message)
///     case .done(let response): show(try response.decode(Pet.self))
///     default: break
///     }
/// }
/// ```
///
/// Every iteration is an upload of its own: it begins with the first event that is asked for. Whoever leaves the loop
/// before its end cancels the upload, and so does the cancellation of the task that iterates. A reader that is slower
/// than the upload misses progress that is out of date, and nothing else.
public struct UploadEvents: AsyncSequence, Sendable {
    public typealias Element = UploadEvent

    /// Does an upload under a key of its own, or the given one, and tells of every step but `done`.
    typealias Upload =
        @Sendable (_ key: IdempotencyKey?, _ tell: @escaping @Sendable (UploadEvent) -> Void) async throws ->
        UploadResponse

    private let upload: Upload
    private var key: IdempotencyKey?

    init(_ upload: @escaping Upload) {
        self.upload = upload
    }

    /// The same steps, where every iteration is the same upload to a server that heeds an `Idempotency-Key`. A key that
    /// the request has of its own stays.
    func under(_ key: IdempotencyKey) -> UploadEvents {
        var events = self
        events.key = key
        return events
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator { [upload, key] in try await upload(key, $0) }
    }

    /// One upload under way.
    public struct Iterator: AsyncIteratorProtocol {
        private let run: Run

        init(_ upload: @escaping @Sendable (@escaping @Sendable (UploadEvent) -> Void) async throws -> UploadResponse) {
            run = Run(upload)
        }

        /// The next step; `nil` behind `done`.
        ///
        /// - Throws: What ``UploadClient/upload(_:to:method:headerFields:progress:)`` throws.
        public mutating func next() async throws -> UploadEvent? {
            try await run.next()
        }

        /// The next step; `nil` behind `done`.
        ///
        /// - Throws: What ``UploadClient/upload(_:to:method:headerFields:progress:)`` throws.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UploadEvent? {
            try await run.next()
        }
    }

    /// Begins an upload when it is first asked for a step, and ends it when nobody asks any more.
    private final class Run {
        private let upload: @Sendable (@escaping @Sendable (UploadEvent) -> Void) async throws -> UploadResponse
        private let queue = UploadEventQueue()
        private var task: Task<Void, Never>?

        init(_ upload: @escaping @Sendable (@escaping @Sendable (UploadEvent) -> Void) async throws -> UploadResponse) {
            self.upload = upload
        }

        deinit {
            task?.cancel()
        }

        func next() async throws -> UploadEvent? {
            let task = start()
            return try await withTaskCancellationHandler {
                try await queue.next()
            } onCancel: {
                // The upload then ends with an error, for which the loop waits: nothing is left running behind it.
                task.cancel()
            }
        }

        private func start() -> Task<Void, Never> {
            if let task { return task }
            let begun = Task { [upload, queue] in
                do {
                    queue.put(.done(try await upload(queue.put)))
                    queue.end(nil)
                } catch {
                    queue.end(error)
                }
            }
            task = begun
            return begun
        }
    }
}
