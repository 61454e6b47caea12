import PostcardForm
import Synchronization

/// Tells the program how far an attempt is, one step at a time: steps come from several tasks and threads.
final class ProgressTeller: Sendable {
    private let progress: (@Sendable (UploadProgress) -> Void)?
    private let attempt: Int
    private let body: FormLayout?
    private let watch: IdleWatch

    /// Held from the decision that a step is told until it has been, so that none overtakes another.
    private let turn = Mutex(())

    init(
        _ progress: (@Sendable (UploadProgress) -> Void)?, attempt: Int, of body: FormLayout?, watch: IdleWatch
    ) {
        self.progress = progress
        self.attempt = attempt
        self.body = body
        self.watch = watch
    }

    /// Takes note of an event, and tells of it where it carries the upload forward.
    func note(_ event: TransportEvent) {
        guard let progress, let layout = body, case .sent(let body) = event else {
            watch.note(event)
            return
        }
        turn.withLock { _ in
            if watch.note(event) { progress(UploadProgress(attempt: attempt, body: body, of: layout)) }
        }
    }

    /// The attempt is over: nothing is told of it any more once this returns.
    func end() {
        turn.withLock { _ in watch.end() }
    }
}
