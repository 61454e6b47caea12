/// Brings together what the system hands to an app that it wakes, to be called once the session has told
/// everything, with the word that it has. Either may come first.
@MainActor
final class BackgroundEvents {
    private var handlers: [() -> Void] = []
    private var isFinished = false

    nonisolated init() {}

    /// Keeps a handler until the session has told everything.
    func add(_ handler: @escaping () -> Void) {
        handlers.append(handler)
        callIfFinished()
    }

    /// The session has told everything.
    func finish() {
        isFinished = true
        callIfFinished()
    }

    /// One word is good for one waking.
    private func callIfFinished() {
        guard isFinished, !handlers.isEmpty else { return }
        isFinished = false
        let due = handlers
        handlers = []
        for handler in due { handler() }
    }
}
