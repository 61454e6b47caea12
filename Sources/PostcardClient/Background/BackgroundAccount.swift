import Foundation
import HTTPTypes
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Keeps account of background uploads: in memory what moves, in the folder what must outlive the program.
///
/// What happens to a task is told by the session's delegate, on one queue, one event after the other.
final class BackgroundAccount: Sendable {
    let folder: UploadsFolder
    private let lock: Mutex<FolderLock?>
    let maximumResponseBytes: Int
    /// For the account's own files alone.
    let state: Mutex<State>

    struct State {
        var entries: [UUID: Entry] = [:]
        var problems: [BackgroundUploadError]
        var listeners: [UUID: AsyncStream<Void>.Continuation] = [:]
        var isClosed = false
    }

    /// Reads the folder.
    init(_ directory: URL, maximumResponseBytes: Int) throws(BackgroundUploadError) {
        folder = try UploadsFolder(directory)
        lock = Mutex(try FolderLock(directory))
        folder.sweep()
        let contents = try folder.read()
        self.maximumResponseBytes = maximumResponseBytes
        var state = State(problems: contents.problems)
        for manifest in contents.manifests {
            let isOpen =
                switch manifest.state {
                case .ready, .started: true
                case .done, .failed, .cancelled: false
                }
            state.entries[manifest.id] = Entry(manifest: manifest, phase: isOpen ? .lost : .over)
        }
        self.state = Mutex(state)
    }

    var problems: [BackgroundUploadError] { state.withLock { $0.problems } }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Every upload, oldest first.
    var uploads: [BackgroundUpload] {
        state.withLock { $0.entries.values.map(\.upload) }
            .sorted { ($0.added, $0.id.uuidString) < ($1.added, $1.id.uuidString) }
    }

    func upload(_ id: UUID) -> BackgroundUpload? {
        state.withLock { $0.entries[id]?.upload }
    }

    /// Rings at once, and then whenever something changed; several changes may ring once.
    func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let id = UUID()
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.listeners.removeValue(forKey: id) }
        }
        let isClosed = state.withLock { state in
            if !state.isClosed { state.listeners[id] = continuation }
            return state.isClosed
        }
        if isClosed { continuation.finish() } else { continuation.yield() }
        return stream
    }

    func ring() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield() }
    }

    /// Lets go of the folder; what is told from here on is not heard.
    func close() {
        let listeners = state.withLock { state in
            state.isClosed = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        lock.withLock { $0 = nil }
        for listener in listeners { listener.finish() }
    }
}

extension BackgroundAccount {
    /// Takes an upload whose body and manifest are in the folder.
    func add(_ manifest: UploadManifest) {
        state.withLock { $0.entries[manifest.id] = Entry(manifest: manifest, phase: .waiting(isCancelled: false)) }
        ring()
    }

    /// The uploads that no task has and that did not end.
    var lost: [UploadManifest] {
        state.withLock { state in
            state.entries.values.compactMap { if case .lost = $0.phase { $0.manifest } else { nil } }
        }
    }

    /// Makes an upload ready to be begun anew.
    ///
    /// - Throws: ``BackgroundUploadError`` where it cannot be.
    func claim(_ id: UUID) throws(BackgroundUploadError) -> UploadManifest {
        let manifest = try state.withLock { state throws(BackgroundUploadError) in
            if state.isClosed { throw BackgroundUploadError.closed }
            guard let entry = state.entries[id] else { throw BackgroundUploadError.unknown(id) }
            switch entry.phase {
            case .waiting, .carried: throw BackgroundUploadError.notRestartable(id, "it is under way")
            case .lost: break
            case .over:
                if case .done = entry.manifest.state {
                    throw BackgroundUploadError.notRestartable(id, "the server has taken it")
                }
            }
            state.entries[id]?.phase = .waiting(isCancelled: false)
            return entry.manifest
        }
        ring()
        return manifest
    }

    /// Gives back what was claimed and could not be begun.
    func release(_ manifest: UploadManifest) {
        state.withLock { state in
            let isOpen =
                switch manifest.state {
                case .ready, .started: true
                case .done, .failed, .cancelled: false
                }
            state.entries[manifest.id] = Entry(manifest: manifest, phase: isOpen ? .lost : .over)
        }
        ring()
    }

    /// Notes that a task is about to carry an upload.
    ///
    /// - Returns: Whether it is still wanted.
    func begin(_ task: URLSessionTask, _ id: UUID) throws(BackgroundUploadError) -> Bool {
        guard var manifest = state.withLock({ $0.isClosed ? nil : $0.entries[id]?.manifest }) else { return false }
        manifest.attempts += 1
        manifest.state = .started
        try folder.write(manifest)
        let isWanted = state.withLock { state in
            guard case .waiting(let isCancelled) = state.entries[id]?.phase else { return false }
            state.entries[id] = Entry(manifest: manifest, phase: .carried(Carriage(task: task)))
            return !isCancelled
        }
        if !isWanted { try end(id, .cancelled) }
        ring()
        return isWanted
    }

    /// Takes a task that went on while the program was gone.
    func adopt(_ task: URLSessionTask) {
        guard let id = task.uploadID else { return }
        if upload(id) == nil { remake(id, from: task) }
        state.withLock { $0.carry(task, id) }
        ring()
    }

    /// A task is under way whose manifest is gone or unreadable: its request says most of what stood there.
    private func remake(_ id: UUID, from task: URLSessionTask) {
        guard let manifest = UploadManifest(id, task) else { return }
        do {
            try folder.makeRoom(for: id)
            try folder.write(manifest)
        } catch {
            note(error)
        }
        state.withLock { $0.entries[id] = Entry(manifest: manifest, phase: .lost) }
    }

    /// Gives an upload up.
    ///
    /// - Returns: The task to cancel, where one is under way.
    func cancel(_ id: UUID) throws(BackgroundUploadError) -> URLSessionTask? {
        let (task, isLost) = try state.withLock { state throws(BackgroundUploadError) in
            if state.isClosed { throw BackgroundUploadError.closed }
            guard let entry = state.entries[id] else { throw BackgroundUploadError.unknown(id) }
            switch entry.phase {
            case .waiting:
                state.entries[id]?.phase = .waiting(isCancelled: true)
                return (nil as URLSessionTask?, false)
            case .carried(var carriage):
                carriage.cause = carriage.cause ?? .cancelled
                state.entries[id]?.phase = .carried(carriage)
                return (carriage.task, false)
            case .lost:
                return (nil, true)
            case .over:
                return (nil, false)
            }
        }
        if isLost { try end(id, .cancelled) }
        return task
    }

    /// Forgets an upload and its body.
    ///
    /// - Returns: The task to cancel, where one is under way.
    func remove(_ id: UUID) throws(BackgroundUploadError) -> URLSessionTask? {
        let entry = try state.withLock { state throws(BackgroundUploadError) in
            if state.isClosed { throw BackgroundUploadError.closed }
            return state.entries.removeValue(forKey: id)
        }
        try folder.remove(id)
        ring()
        if case .carried(let carriage) = entry?.phase { return carriage.task }
        return nil
    }

    /// Writes down how an upload ended, and then shows it.
    func end(_ id: UUID, _ end: UploadManifest.State) throws(BackgroundUploadError) {
        guard var manifest = state.withLock({ $0.isClosed ? nil : $0.entries[id]?.manifest }) else { return }
        manifest.state = end
        defer {
            state.withLock { state in
                if state.entries[id] != nil { state.entries[id] = Entry(manifest: manifest, phase: .over) }
            }
            ring()
        }
        try folder.write(manifest)
        if case .done = end { folder.removeBody(id) }
    }

    func note(_ problem: BackgroundUploadError) {
        state.withLock { $0.problems.append(problem) }
    }
}
