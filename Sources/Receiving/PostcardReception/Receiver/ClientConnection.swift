import HTTPTypes
import NIOCore
import PostcardStore
import Synchronization

/// The connection of a request at a server of which only its bodies are known.
final class ClientConnection: RequestConnection {
    let peer: PeerAddress?
    let report = UploadReport()
    let body: BodyHandover
    /// The interim response that was to be sent later. A request has at most one.
    private let announcement = Mutex<Task<Void, any Error>?>(nil)
    private let send: (@Sendable (HTTPResponse) async throws -> Void)?

    init(from address: String?, _ body: BodyHandover, inform send: (@Sendable (HTTPResponse) async throws -> Void)?) {
        peer = address.flatMap { IPAddress(text: $0) }.map { PeerAddress($0) }
        self.body = body
        self.send = send
    }

    /// The server closes its connections itself.
    var channelToClose: (any Channel)? { nil }

    var informs: Bool { send != nil }

    func inform(_ head: HTTPResponse) async throws { try await send?(head) }

    func inform(_ head: HTTPResponse, after delay: Duration) -> @Sendable () -> Void {
        let task = Task { [send] in
            try await Task.sleep(for: delay)
            try await send?(head)
        }
        announcement.withLock { $0 = task }
        return { task.cancel() }
    }

    /// Waits for an interim response that is being sent, which must not follow the final one.
    func settle() async {
        let task = announcement.withLock { $0 }
        task?.cancel()
        _ = await task?.result
    }

    /// The time without bytes after which an ended request is interrupted, and the number of such times after which it is
    /// in any case.
    private static let (quietTime, attempts) = (Duration.milliseconds(50), 4)

    func closeWhenQuiet(while isEnded: @escaping @Sendable () -> Bool) {
        Task { [body] in
            for _ in 0..<Self.attempts where isEnded() && body.quietTime < Self.quietTime {
                try? await Task.sleep(for: Self.quietTime)
            }
            if isEnded() { body.end(with: RequestInterruption.disconnected(CancellationError())) }
        }
    }

    func close() { body.end(with: RequestInterruption.disconnected(CancellationError())) }
}
