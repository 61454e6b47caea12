import PostcardForm
import PostcardFoundation
import Synchronization
import SystemPackage

/// Copies files that the system deletes soon.
enum LoadedFile {
    /// A path for a new file in a folder, which is created if it does not exist.
    ///
    /// - Parameters:
    ///   - folder: The folder. Defaults to the folder for files that parts own.
    ///   - name: A filename whose extension is used for the new file. The new name is otherwise generated, so that
    ///     files of the same name do not collide.
    static func place(in folder: URL?, for name: String) throws -> URL {
        let folder = try FormPart.makeFolder(folder ?? PreparationFolder.forOwnedFiles())
        let dot = name.lastIndex(of: ".")
        let suffix = dot.map { name[$0...].dropFirst() } ?? ""
        // An extension with other characters than letters and digits must not be in the path.
        let isPlain = !suffix.isEmpty && suffix.utf8.count <= 16 && suffix.allSatisfy { $0.isLetter || $0.isNumber }
        return folder.appending(component: UUID().uuidString + (isPlain ? ".\(suffix)" : ""))
    }

    /// Copies a file. Only the owner can read the copy. On one volume of an Apple platform the copy is a clone, which
    /// needs neither time nor space.
    ///
    /// - Parameter freeBytes: Returns the number of free bytes at a folder.
    /// - Throws: ``PictureError`` with code ``PictureError/Code/full`` if there is too little space; the system's
    ///   errors.
    static func copy(
        _ file: URL, to folder: URL?, freeBytes: (URL) -> Int64? = FreeSpace.bytes
    ) throws -> URL {
        let copy = try place(in: folder, for: file.lastPathComponent)
        // A copy of a symbolic link would point to a file that is deleted soon, so the link's target is copied.
        let file = file.resolvingSymlinksInPath()
        let folder = copy.deletingLastPathComponent()
        if let (needed, free) = FreeSpace.shortage(ofCopying: file, to: folder, freeBytes: freeBytes) {
            throw PictureError.full(file.lastPathComponent, needed: needed, free: free)
        }
        do {
            try FileManager.default.copyItem(at: file, to: copy)
            // A document may be a folder. Removing a folder needs its search permission.
            let type = try FileManager.default.attributesOfItem(atPath: copy.path)[.type] as? FileAttributeType
            let isFolder = type == .typeDirectory
            try FileManager.default.setAttributes(
                [.posixPermissions: isFolder ? 0o700 : 0o600], ofItemAtPath: copy.path)
        } catch {
            // Copying may have failed half way, such as on a full disk.
            remove(copy)
            throw error
        }
        return copy
    }

    static func remove(_ file: URL) {
        try? FileManager.default.removeItem(at: file)
    }
}

/// A file that is written chunk by chunk, as a callback receives the chunks.
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

    /// Creates a file in a folder, not on the caller's actor.
    @concurrent
    static func create(in folder: URL?, for name: String) async throws -> ReceivedFile {
        try ReceivedFile(at: LoadedFile.place(in: folder, for: name))
    }

    deinit {
        state.withLock { if case .open(let descriptor) = $0 { try? descriptor.close() } }
    }

    /// Appends a chunk, unless the file is closed. Closes the file if writing fails.
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

    /// Closes and removes the file, not on the caller's actor.
    @concurrent
    func discard() async {
        state.withLock { state in
            if case .open(let descriptor) = state { try? descriptor.close() }
            state = .closed
        }
        LoadedFile.remove(url)
    }
}

/// Waits for the result that a call reports to a callback. The waiting task is resumed once, by the callback or by the
/// task's cancellation. So it is resumed even if a cancelled call never reports a result.
///
/// The system is asked not to suspend the app during the call. If the app were suspended during a copy, the system
/// might end the app, and the picked item would be lost.
final class CallbackResult<Value: Sendable>: Sendable {
    private let state = Mutex(State.idle)
    private let discard: @Sendable (Value) -> Void
    private let activity: ExpiringActivity

    private enum State {
        case idle
        case waiting(CheckedContinuation<Value, any Error>, cancel: (@Sendable () -> Void)?)
        case over(isCancelled: Bool)
    }

    /// Makes a result that waits for one call.
    ///
    /// - Parameters:
    ///   - activity: Asks the system not to suspend the app during the call.
    ///   - discard: Called with a result that no task waits for.
    init(
        within activity: ExpiringActivity = .shared,
        discarding discard: @escaping @Sendable (Value) -> Void = { _ in }
    ) {
        self.activity = activity
        self.discard = discard
    }

    /// Starts the call and waits for its result. Can be used only once.
    ///
    /// - Parameter start: Starts the call, and returns a closure that cancels it. The call reports to ``finish(_:)``.
    /// - Throws: The error that the call reports; `CancellationError` if the task is cancelled first; ``PictureError``
    ///   with code ``PictureError/Code/suspended`` if the system suspends the app first.
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

    /// Reports the call's result. Later results are discarded.
    func finish(_ result: Result<Value, any Error>) {
        if let continuation = end(isCancelled: false)?.continuation { return continuation.resume(with: result) }
        if case .success(let value) = result { discard(value) }
    }

    /// Cancels the call and ends the wait with an error. Does nothing if the result is known.
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
        // The call was cancelled during its start.
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
