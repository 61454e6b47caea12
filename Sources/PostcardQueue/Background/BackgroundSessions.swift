import Synchronization

/// The background sessions of this process, by their identifiers: brings together the queue of a session and the system's
/// wake-ups, which may come before the queue is made.
final class BackgroundSessions: Sendable {
    static let shared = BackgroundSessions()

    private struct Entry {
        weak var outbox: BackgroundOutbox?
        /// The system's handlers that wait for a queue.
        var handlers: [@Sendable () -> Void] = []
    }

    private let entries = Mutex<[String: Entry]>([:])

    /// Notes the queue of a session, and passes on the wake-ups that waited for it.
    func add(_ outbox: BackgroundOutbox) throws(UploadQueueError) {
        let identifier = outbox.session.identifier
        let handlers = try entries.withLock { entries throws(UploadQueueError) in
            var entry = entries[identifier] ?? Entry()
            if entry.outbox != nil { throw UploadQueueError.sessionInUse(identifier) }
            entry.outbox = outbox
            defer { entry.handlers = []; entries[identifier] = entry }
            return entry.handlers
        }
        for handler in handlers { outbox.wakeUp(handler) }
    }

    /// Forgets a queue that is closed.
    func remove(_ outbox: BackgroundOutbox) {
        entries.withLock { entries in
            if entries[outbox.session.identifier]?.outbox === outbox { entries[outbox.session.identifier] = nil }
        }
    }

    /// The system has woken the app for a session.
    func wakeUp(_ identifier: String, _ handler: @escaping @Sendable () -> Void) {
        let outbox = entries.withLock { entries -> BackgroundOutbox? in
            if let outbox = entries[identifier]?.outbox { return outbox }
            entries[identifier, default: Entry()].handlers.append(handler)
            return nil
        }
        outbox?.wakeUp(handler)
    }
}
