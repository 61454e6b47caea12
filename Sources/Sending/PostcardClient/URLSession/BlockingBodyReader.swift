import Dispatch
import PostcardForm
import Synchronization

/// Reads a request's body on a thread that may block, and stores the error if reading fails.
///
/// URLSession reads a body from an `InputStream`, synchronously. A form's own streams are asynchronous, so the reading
/// thread waits for a task that reads them.
///
/// URLSession may retain a stream long after its request has ended. So ``cancel()`` closes the form's files: after the
/// read in progress, or at once if there is none.
final class BlockingBodyReader: Sendable {
    private let state: Mutex<State>

    private struct State {
        /// The reader; `nil` while a thread reads, and after the end of the body.
        var reader: Held?
        var activity = Activity.reading
    }

    /// A box that makes the reader Sendable, which it is not by itself. Only the thread that calls ``read(into:)``
    /// uses the reader, and takes it out of the state for that time. While the thread waits for a task, only the task
    /// uses the reader. If ``cancel()`` ends the wait, the thread does not use the reader again.
    private struct Held: @unchecked Sendable {
        let reader: UploadBodyReader
    }

    private enum Activity {
        case reading
        /// A task waits for the next bytes, and signals the semaphore when they are ready.
        case preparing(Task<Void, Never>?, DispatchSemaphore)
        /// The task has ended. The value is `true` if there are more bytes.
        case prepared(Bool)
        /// No bytes are left to read, because the body has ended, reading has failed, or reading was cancelled.
        case ended((any Error)?)

        var isEnded: Bool {
            if case .ended = self { true } else { false }
        }
    }

    /// Makes a reader for a request's body.
    ///
    /// - Throws: `FormError` if the body cannot be read, such as a body with a stream that was read before.
    init(_ body: UploadBody) throws(FormError) {
        state = Mutex(State(reader: Held(reader: try body.reader())))
    }

    /// The error that reading the body failed with; `nil` if there is none.
    var failure: (any Error)? {
        state.withLock { if case .ended(let error) = $0.activity { error } else { nil } }
    }

    /// Fills a buffer with bytes of the body, waiting for a stream if needed.
    ///
    /// - Returns: The number of bytes; 0 at the end of the body; `nil` if reading failed or was cancelled.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        do {
            guard let held = try takeReader() else { return 0 }
            defer { putBack(held) }
            let reader = held.reader
            guard try isReadable(reader) else { return 0 }
            return try reader.read(into: buffer)
        } catch {
            end(error)
            return nil
        }
    }

    /// Takes the reader out of the state for a read. Returns `nil` if the body has ended.
    private func takeReader() throws -> Held? {
        try state.withLock { state in
            if case .ended(let error) = state.activity {
                if let error { throw error }
                return nil
            }
            // Another thread is reading, and two threads must not share the bytes.
            guard let held = state.reader else { throw CancellationError() }
            state.reader = nil
            return held
        }
    }

    private func putBack(_ held: Held) {
        state.withLock { if !$0.activity.isEnded { $0.reader = held } }
    }

    /// Ends reading. If a thread waits for bytes, its wait ends too.
    func cancel() {
        let interrupted = state.withLock { state in
            defer {
                if !state.activity.isEnded { state.activity = .ended(CancellationError()) }
                state.reader = nil
            }
            if case .preparing(let task, let semaphore) = state.activity { return (task, semaphore) as Waiting? }
            return nil
        }
        interrupted?.task?.cancel()
        interrupted?.semaphore.signal()
    }

    private typealias Waiting = (task: Task<Void, Never>?, semaphore: DispatchSemaphore)

    /// Waits for bytes if needed. Returns `false` at the end of the body.
    private func isReadable(_ reader: UploadBodyReader) throws -> Bool {
        guard reader.needsPreparation else { return true }
        // Only the task uses the reader while this thread waits for the task.
        nonisolated(unsafe) let reader = reader
        return try waitForStream { try await reader.prepare() }
    }

    private func waitForStream(_ prepare: @escaping @Sendable () async throws -> Bool) throws -> Bool {
        let semaphore = DispatchSemaphore(value: 0)
        let isCancelled = state.withLock { state in
            if state.activity.isEnded { return true }
            state.activity = .preparing(nil, semaphore)
            return false
        }
        if isCancelled { throw CancellationError() }
        let task = Task { await self.run(prepare, signalling: semaphore) }
        let isStillNeeded = state.withLock { state in
            if case .preparing = state.activity { state.activity = .preparing(task, semaphore) }
            return !state.activity.isEnded
        }
        if !isStillNeeded { task.cancel() }
        semaphore.wait()
        return try state.withLock { state in
            switch state.activity {
            case .prepared(let isReadable):
                state.activity = isReadable ? .reading : .ended(nil)
                return isReadable
            case .ended(let error?):
                throw error
            case .ended(nil), .reading, .preparing:
                return false
            }
        }
    }

    private func run(
        _ prepare: @Sendable () async throws -> Bool, signalling semaphore: DispatchSemaphore
    ) async {
        do {
            let isReadable = try await prepare()
            state.withLock { if !$0.activity.isEnded { $0.activity = .prepared(isReadable) } }
        } catch {
            end(error)
        }
        semaphore.signal()
    }

    private func end(_ error: any Error) {
        state.withLock { state in
            if !state.activity.isEnded { state.activity = .ended(error) }
            state.reader = nil
        }
    }
}
