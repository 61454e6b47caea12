import PostcardForm
import PostcardFoundation
import Synchronization
import SystemPackage

/// Copies of files that the system lends only for a moment.
enum LoadedFile {
    /// A new path in a folder, which is created if it does not exist.
    ///
    /// - Parameters:
    ///   - folder: The folder. Defaults to that of the files that parts own.
    ///   - name: The name of a file whose extension the new one gets. The rest of its name is made up, so that files of
    ///     the same name do not collide.
    static func place(in folder: URL?, for name: String) throws -> URL {
        let folder = try FormPart.makeFolder(folder ?? PreparationFolder.forOwnedFiles())
        let dot = name.lastIndex(of: ".")
        let suffix = dot.map { name[$0...].dropFirst() } ?? ""
        // What is no plain extension has no place in a path.
        let isPlain = !suffix.isEmpty && suffix.utf8.count <= 16 && suffix.allSatisfy { $0.isLetter || $0.isNumber }
        return folder.appending(component: UUID().uuidString + (isPlain ? ".\(suffix)" : ""))
    }

    /// Copies a file. Only its owner can read the copy. On one volume of an Apple platform it is a clone, which takes
    /// neither time nor space.
    ///
    /// - Parameter freeBytes: The bytes that are free in a folder.
    /// - Throws: ``PictureError`` with code ``PictureError/Code/full`` if they are too few; errors of the system.
    static func copy(
        _ file: URL, to folder: URL?, freeBytes: (URL) -> Int64? = FreeSpace.bytes
    ) throws -> URL {
        let copy = try place(in: folder, for: file.lastPathComponent)
        // A link is copied as what it leads to: its copy would lead to a file that is lent no longer.
        let file = file.resolvingSymlinksInPath()
        let folder = copy.deletingLastPathComponent()
        if let (needed, free) = FreeSpace.shortage(ofCopying: file, to: folder, freeBytes: freeBytes) {
            throw PictureError.full(file.lastPathComponent, needed: needed, free: free)
        }
        do {
            try FileManager.default.copyItem(at: file, to: copy)
            // A document may be a folder, which could not be removed without the permission to search it.
            let type = try FileManager.default.attributesOfItem(atPath: copy.path)[.type] as? FileAttributeType
            let isFolder = type == .typeDirectory
            try FileManager.default.setAttributes(
                [.posixPermissions: isFolder ? 0o700 : 0o600], ofItemAtPath: copy.path)
        } catch {
            // A copy that failed half way, on a full disk for example.
            remove(copy)
            throw error
        }
        return copy
    }

    static func remove(_ file: URL) {
        try? FileManager.default.removeItem(at: file)
    }
}

/// A file that is written chunk by chunk, as a callback receives them.
final class ReceivedFile: Sendable {
    let url: URL
    private let state: Mutex<State>

    private enum State {
        case open(FileDescriptor)
        case closed
    }

    init(at url: URL) throws {
        self.url = url
        let options: FileDescriptor.OpenOptions = [.create, .exclusiveCreate, .closeOnExec]
        let descriptor = try FileDescriptor.open(
            FilePath(url.path), .writeOnly, options: options, permissions: [.ownerRead, .ownerWrite])
        state = Mutex(.open(descriptor))
    }

    /// Creates a file in a folder, and not on the caller's actor.
    @concurrent
    static func create(in folder: URL?, for name: String) async throws -> ReceivedFile {
        try ReceivedFile(at: LoadedFile.place(in: folder, for: name))
    }

    deinit {
        state.withLock { if case .open(let descriptor) = $0 { try? descriptor.close() } }
    }

    /// Appends a chunk, unless the file is closed. An error closes it.
    func append(_ chunk: Data) throws {
        try state.withLock { state in
            guard case .open(let descriptor) = state else { return }
            do {
                try descriptor.writeAll(chunk)
            } catch {
                state = .closed
                try? descriptor.close()
                throw error
            }
        }
    }

    func finish() throws {
        try state.withLock { state in
            guard case .open(let descriptor) = state else { return }
            state = .closed
            try descriptor.close()
        }
    }

    /// Closes and removes the file, and not on the caller's actor.
    @concurrent
    func discard() async {
        state.withLock { state in
            if case .open(let descriptor) = state { try? descriptor.close() }
            state = .closed
        }
        LoadedFile.remove(url)
    }
}

/// Waits for a call that reports to a callback. The task that waits is resumed once, by the callback or by its own
/// cancellation, whichever is first, even if a cancelled call never reports.
///
/// The call runs within an activity: an app that is suspended in the middle of a copy may be ended, and what the user
/// has picked is gone.
final class CallbackResult<Value: Sendable>: Sendable {
    private let state = Mutex(State.idle)
    private let discard: @Sendable (Value) -> Void
    private let activity: ExpiringActivity

    private enum State {
        case idle
        case waiting(CheckedContinuation<Value, any Error>, cancel: (@Sendable () -> Void)?)
        case over(isCancelled: Bool)
    }

    /// - Parameters:
    ///   - activity: How the system is asked not to suspend the app meanwhile.
    ///   - discard: Receives a value that no one waits for any more.
    init(
        within activity: ExpiringActivity = .shared,
        discarding discard: @escaping @Sendable (Value) -> Void = { _ in }
    ) {
        self.activity = activity
        self.discard = discard
    }

    /// Starts the call and waits for its result. To be called once.
    ///
    /// - Parameter start: Starts the call, and returns what cancels it. The call reports to ``finish(_:)``.
    /// - Throws: What the call reports; `CancellationError` if the task is cancelled first; ``PictureError`` with code
    ///   ``PictureError/Code/suspended`` if the system suspends the app first.
    func value(startedBy start: () throws -> @Sendable () -> Void) async throws -> Value {
        guard let grant = await activity.beginConcurrently() else { throw PictureError.suspended }
        let forget = grant.onExpiry { self.abandon(throwing: PictureError.suspended) }
        defer {
            forget()
            grant.end()
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard wait(continuation) else { return continuation.resume(throwing: CancellationError()) }
                do {
                    add(try start())
                } catch {
                    finish(.failure(error))
                }
            }
        } onCancel: {
            abandon(throwing: CancellationError())
        }
    }

    /// Reports the call's result. Any but the first is discarded.
    func finish(_ result: Result<Value, any Error>) {
        if let continuation = end(isCancelled: false)?.continuation { return continuation.resume(with: result) }
        if case .success(let value) = result { discard(value) }
    }

    /// Stops waiting and cancels the call. Does nothing if its result is known.
    func abandon(throwing error: any Error) {
        let ended = end(isCancelled: true)
        ended?.continuation.resume(throwing: error)
        ended?.cancel?()
    }

    private func wait(_ continuation: CheckedContinuation<Value, any Error>) -> Bool {
        state.withLock { state in
            guard case .idle = state else { return false }
            state = .waiting(continuation, cancel: nil)
            return true
        }
    }

    private func add(_ cancel: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            switch state {
            case .idle: return false
            case .waiting(let continuation, _):
                state = .waiting(continuation, cancel: cancel)
                return false
            case .over(let isCancelled): return isCancelled
            }
        }
        // It was cancelled while it was being started.
        if isCancelled { cancel() }
    }

    private func end(
        isCancelled: Bool
    ) -> (continuation: CheckedContinuation<Value, any Error>, cancel: (@Sendable () -> Void)?)? {
        state.withLock { state in
            switch state {
            case .idle:
                state = .over(isCancelled: isCancelled)
                return nil
            case .waiting(let continuation, let cancel):
                state = .over(isCancelled: isCancelled)
                return (continuation, cancel)
            case .over: return nil
            }
        }
    }
}
