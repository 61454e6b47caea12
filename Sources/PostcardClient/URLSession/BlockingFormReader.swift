import Dispatch
import PostcardForm
import Synchronization

/// Reads a form's body from a thread that may block, and remembers why it could not.
///
/// URLSession takes a body from an `InputStream`, which is read synchronously. Where the form holds streams of
/// its own, which are asynchronous, the reading thread waits for a task.
///
/// Unchecked, because `reader` is not Sendable: it is used by the one thread that calls ``read(into:)``, and
/// while that thread waits, by the one task that it waits for. Once ``cancel()`` ends the waiting, the state is
/// `ended` and the thread does not touch the reader again. All else is behind the mutex.
final class BlockingFormReader: @unchecked Sendable {
    private let reader: FormReader
    private let state: Mutex<State>

    private struct State {
        var activity = Activity.reading
        var contentRanges: [Range<Int64>] = []
        /// The length of the body, once its last byte has been read.
        var length: Int64?
    }

    private enum Activity {
        case reading
        /// A task fetches the next bytes, and signals when it has ended.
        case preparing(Task<Void, Never>?, DispatchSemaphore)
        /// The task has ended; whether there are more bytes.
        case prepared(Bool)
        /// There is nothing more to read: the body is over, reading failed, or nobody wants it.
        case ended((any Error)?)

        var isEnded: Bool {
            if case .ended = self { true } else { false }
        }
    }

    /// - Throws: `FormError` where the body cannot be read, as with a stream that has been read before.
    init(_ layout: FormLayout) throws(FormError) {
        reader = try layout.reader()
        state = Mutex(State())
    }

    /// Why the body could not be read to its end.
    var failure: (any Error)? {
        state.withLock { if case .ended(let error) = $0.activity { error } else { nil } }
    }

    /// How far the body is where a number of its bytes, which have all been read, has been sent.
    func progress(at bytesSent: Int64) -> BodyProgress {
        state.withLock { state in
            BodyProgress(
                bytesSent: bytesSent, contentRanges: state.contentRanges, isWhole: bytesSent == state.length)
        }
    }

    /// Fills a buffer, waiting for a stream where it must.
    ///
    /// - Returns: The number of bytes; 0 at the end of the body; `nil` where reading failed or was cancelled.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        do {
            guard try isReadable() else { return 0 }
            let count = try reader.read(into: buffer)
            state.withLock { state in
                state.contentRanges = reader.contentRanges
                if reader.isAtEnd { state.length = reader.position }
            }
            return count
        } catch {
            end(error)
            return nil
        }
    }

    /// Ends the reading: a thread that waits for bytes is let go.
    func cancel() {
        let interrupted = state.withLock { state in
            defer { if !state.activity.isEnded { state.activity = .ended(CancellationError()) } }
            if case .preparing(let task, let semaphore) = state.activity { return (task, semaphore) as Waiting? }
            return nil
        }
        interrupted?.task?.cancel()
        interrupted?.semaphore.signal()
    }

    private typealias Waiting = (task: Task<Void, Never>?, semaphore: DispatchSemaphore)

    /// Whether there are bytes, waiting for them where a stream has to make them.
    private func isReadable() throws -> Bool {
        let isEnded = try state.withLock {
            guard case .ended(let error) = $0.activity else { return false }
            if let error { throw error }
            return true
        }
        if isEnded { return false }
        guard reader.needsPreparation else { return true }
        return try waitForStream()
    }

    private func waitForStream() throws -> Bool {
        let semaphore = DispatchSemaphore(value: 0)
        let isCancelled = state.withLock { state in
            if state.activity.isEnded { return true }
            state.activity = .preparing(nil, semaphore)
            return false
        }
        if isCancelled { throw CancellationError() }
        let task = Task { await self.prepare(signalling: semaphore) }
        let isStillWanted = state.withLock { state in
            if case .preparing = state.activity { state.activity = .preparing(task, semaphore) }
            return !state.activity.isEnded
        }
        if !isStillWanted { task.cancel() }
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

    private func prepare(signalling semaphore: DispatchSemaphore) async {
        do {
            let isReadable = try await reader.prepare()
            state.withLock { if !$0.activity.isEnded { $0.activity = .prepared(isReadable) } }
        } catch {
            end(error)
        }
        semaphore.signal()
    }

    private func end(_ error: any Error) {
        state.withLock { if !$0.activity.isEnded { $0.activity = .ended(error) } }
    }
}
