import Synchronization

/// The senders of this process by the identifiers of their sessions. The system may wake the app for a session before
/// the app has made its queue.
final class BackgroundSessionRegistry: Sendable {
    static let shared = BackgroundSessionRegistry()

    private struct Entry {
        weak var sender: BackgroundSender?
        /// The system's completion handlers that wait for the queue.
        var handlers: [@Sendable () -> Void] = []
    }

    private let entries = Mutex<[String: Entry]>([:])

    /// Adds the sender of a session, and passes it the wake-ups that waited for it.
    ///
    /// - Throws: ``UploadQueueError`` with code ``UploadQueueError/Code/inUse`` if the session has a sender.
    func add(_ sender: BackgroundSender) throws(UploadQueueError) {
        let identifier = sender.session.identifier
        let handlers = try entries.withLock { entries throws(UploadQueueError) in
            var entry = entries[identifier] ?? Entry()
            if entry.sender != nil { throw UploadQueueError.sessionInUse(identifier) }
            entry.sender = sender
            defer { entry.handlers = []; entries[identifier] = entry }
            return entry.handlers
        }
        for handler in handlers { sender.wakeUp(handler) }
    }

    /// Removes a sender that is closed.
    func remove(_ sender: BackgroundSender) {
        entries.withLock { entries in
            if entries[sender.session.identifier]?.sender === sender { entries[sender.session.identifier] = nil }
        }
    }

    /// Passes a wake-up to the session's sender, now or when there is one.
    func wakeUp(_ identifier: String, _ handler: @escaping @Sendable () -> Void) {
        let sender = entries.withLock { entries -> BackgroundSender? in
            if let sender = entries[identifier]?.sender { return sender }
            entries[identifier, default: Entry()].handlers.append(handler)
            return nil
        }
        sender?.wakeUp(handler)
    }
}
