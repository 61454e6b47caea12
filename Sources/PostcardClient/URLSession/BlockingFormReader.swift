import Dispatch
import PostcardForm
import Synchronization

/// Reads a form's body from a thread that may block, and remembers why it could not.
///
/// URLSession takes a body from an `InputStream`, which is read synchronously. Where the form holds streams of
/// its own, which are asynchronous, the reading thread waits for a task.
///
/// URLSession may hold on to a stream long after its request is over. The files of the form are closed before: with
/// the reading that was under way when it ended, or at once where none was.
final class BlockingFormReader: Sendable {
    private let state: Mutex<State>

    private struct State {
        /// Here while no thread reads, and nobody has ended it.
        var reader: Held?
        var activity = Activity.reading
        var contentRanges: [Range<Int64>] = []
        /// The length of the body, once its last byte has been read.
        var length: Int64?
    }

    /// Unchecked, because the reader is not Sendable: it is used by the one thread that calls ``read(into:)``, which
    /// takes it out of the state for as long, and while that thread waits, by the one task that it waits for. Once
    /// ``cancel()`` ends the waiting, the state is `ended` and the thread does not touch the reader again.
    private struct Held: @unchecked Sendable {
        let reader: FormReader
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
        state = Mutex(State(reader: Held(reader: try layout.reader())))
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
            guard let held = try takeReader() else { return 0 }
            defer { giveBack(held) }
            let reader = held.reader
            guard try isReadable(reader) else { return 0 }
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

    /// Takes the reader out for a reading; `nil` where the body is over.
    private func takeReader() throws -> Held? {
        try state.withLock { state in
            if case .ended(let error) = state.activity {
                if let error { throw error }
                return nil
            }
            // A second thread would get the bytes of the first.
            guard let held = state.reader else { throw CancellationError() }
            state.reader = nil
            return held
        }
    }

    private func giveBack(_ held: Held) {
        state.withLock { if !$0.activity.isEnded { $0.reader = held } }
    }

    /// Ends the reading: a thread that waits for bytes is let go.
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

    /// Whether there are bytes, waiting for them where a stream has to make them.
    private func isReadable(_ reader: FormReader) throws -> Bool {
        guard reader.needsPreparation else { return true }
        // The task alone uses it until this thread has stopped waiting for it.
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
