#if AsyncHTTP
import PostcardClient
import Synchronization

/// That the last chunk of a body was handed out, kept for whoever tells of it first: the chunks, when another is
/// asked for, or the transport, when the response comes before anyone asks.
final class BodyEnd: Sendable {
    private let progress = Mutex<BodyProgress?>(nil)

    /// Keeps how far the body is with its last chunk.
    func reach(_ progress: BodyProgress) {
        self.progress.withLock { $0 = progress }
    }

    /// How far the body is, where its last chunk was handed out and nobody has told of it.
    func take() -> BodyProgress? {
        progress.withLock { $0.take() }
    }
}
#endif
