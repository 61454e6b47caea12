import Synchronization

/// The senders of this process, by the identifiers of their sessions. The system may wake the app for a session before
/// the app has made the session's queue.
final class BackgroundSessionRegistry: Sendable {
    static let shared = BackgroundSessionRegistry()

    private struct Entry {
        weak var sender: BackgroundSender?
        /// The system's completion handlers, which wait until the app has made the queue.
        var handlers: [@Sendable () -> Void] = []
    }

    private let entries = Mutex<[String: Entry]>([:])

    /// Adds the sender of a session, and passes the waiting wake-ups to the sender. Replaces an earlier sender of the
    /// session, whose queue the app may not have released yet.
    func add(_ sender: BackgroundSender) {
        let (replaced, handlers) = entries.withLock { entries in
            let entry = entries[sender.session.identifier] ?? Entry()
            entries[sender.session.identifier] = Entry(sender: sender)
            return (entry.sender, entry.handlers)
        }
        replaced?.close(isReplaced: true)
        for handler in handlers { sender.wakeUp(handler) }
    }

    /// Adds the sender of a session, unless the session has a sender. Returns the session's sender.
    func addIfAbsent(_ sender: BackgroundSender) -> BackgroundSender {
        let identifier = sender.session.identifier
        let (sender, handlers) = entries.withLock { entries -> (BackgroundSender, [@Sendable () -> Void]) in
            let entry = entries[identifier] ?? Entry()
            if let present = entry.sender { return (present, []) }
            entries[identifier] = Entry(sender: sender)
            return (sender, entry.handlers)
        }
        for handler in handlers { sender.wakeUp(handler) }
        return sender
    }

    /// Removes a closed sender, unless another sender has replaced it.
    func remove(_ sender: BackgroundSender) {
        entries.withLock { entries in
            if entries[sender.session.identifier]?.sender === sender { entries[sender.session.identifier] = nil }
        }
    }

    /// Records that the queue of a session may have changed. Returns whether the session has a sender.
    func noteChange(of identifier: String) -> Bool {
        guard let sender = entries.withLock({ $0[identifier]?.sender }) else { return false }
        sender.start()
        sender.noteChange()
        return true
    }

    /// Passes a wake-up to the session's sender, now or once it is added. Without a sender in time, calls the handler.
    func wakeUp(_ identifier: String, at time: QueueTime = QueueTime(), _ handler: @escaping @Sendable () -> Void) {
        let once = SingleCall(handler)
        let sender = entries.withLock { entries -> BackgroundSender? in
            if let sender = entries[identifier]?.sender { return sender }
            entries[identifier, default: Entry()].handlers.append { once.call() }
            return nil
        }
        if let sender { return sender.wakeUp { once.call() } }
        let end = time.instant() + BackgroundSession.usualWakeUp
        Task { @concurrent in
            try? await time.sleep(end)
            once.call()
        }
    }
}
