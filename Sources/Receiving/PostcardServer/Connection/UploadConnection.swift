package import HTTPTypes
package import NIOCore
import NIOHTTPTypes
package import PostcardReception
package import PostcardStore

/// An event whose promise succeeds when all parts of the response are in the socket.
struct ResponseFlush: Sendable {}

/// The connection of a request, with the objects that are kept until the request ends.
package final class UploadConnection: RequestConnection {
    /// The connection of the request that the current task handles; `nil` on other servers than
    /// ``HummingbirdCore/HTTPServerBuilder/uploads(options:)``. Only routes, middleware and the extensions of `Request`
    /// read this value, because Hummingbird passes them only the app's own context.
    @TaskLocal package static var current: UploadConnection?

    package let channel: any Channel

    package var channelToClose: (any Channel)? { channel }

    package var informs: Bool { true }

    /// Whether the channel is an HTTP/2 stream. A stream's parent is its connection, whose parent is the listening
    /// channel.
    package var isStream: Bool { channel.parent?.parent != nil }

    /// The client of the request: the other end of the connection, or the client that a trusted proxy names.
    private let client: RequestClient

    /// The client whose limits the request uses; `nil` if clients cannot be distinguished.
    package var peer: PeerAddress? { client.peer }

    /// The address of the client; `nil` if it is unknown.
    package var clientAddress: IPAddress? { client.address }

    package let report = UploadReport()

    /// Temporary files, which are removed after the response was sent.
    let files = TemporaryFiles()

    init(channel: any Channel, client: RequestClient) {
        self.channel = channel
        self.client = client
    }

    convenience init(channel: any Channel) {
        self.init(channel: channel, client: RequestClient(from: ConnectionPeer(channel)))
    }

    /// Waits until the response so far is in the client's socket, or the connection is closed.
    func flushed() async throws {
        do {
            try await channel.triggerUserOutboundEvent(ResponseFlush())
        } catch ChannelError.operationUnsupported {
            // Only servers made with `uploads(options:)` support the event. On other servers, the call does not wait.
        }
    }

    /// How long a stream stays open if its client does not read the refusal of its request.
    private static let patience = TimeAmount.milliseconds(500)

    /// Closes a stream later, if its client opens no window for the refusal of its request. Returns the scheduled task,
    /// to be cancelled once the refusal is in the socket; `nil` for a whole connection.
    func cutLater() -> Scheduled<Void>? {
        guard isStream else { return nil }
        return channel.eventLoop.scheduleTask(in: Self.patience) { [channel] in channel.close(promise: nil) }
    }

    package func inform(_ head: HTTPResponse) async throws {
        try await channel.writeAndFlush(HTTPResponsePart.head(head))
    }

    package func inform(_ head: HTTPResponse, after delay: Duration) -> @Sendable () -> Void {
        let scheduled = channel.eventLoop.scheduleTask(in: TimeAmount(delay)) { [channel] in
            channel.writeAndFlush(HTTPResponsePart.head(head), promise: nil)
        }
        return { scheduled.cancel() }
    }
}

/// Ends a request because another request wants the lock of its upload.
extension UploadConnection {
    /// A request that must end is interrupted once no bytes have arrived for `quietTime`. After `longestTime`, it is
    /// always interrupted: its client may continue to send byte by byte while another request waits.
    private static let (quietTime, longestTime) = (Duration.milliseconds(50), Duration.milliseconds(200))

    package func closeWhenQuiet(while isEnded: @escaping @Sendable () -> Bool) {
        let interval = TimeAmount(Self.quietTime)
        let end = channel.eventLoop.now + TimeAmount(Self.longestTime)
        channel.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { [channel] task in
            guard isEnded() else { return task.cancel() }
            let handler = try? channel.pipeline.syncOperations.handler(type: ConnectionHandler.self)
            let now = channel.eventLoop.now
            if let handler, !handler.isQuiet(for: Self.quietTime, at: now), now < end { return }
            channel.close(promise: nil)
            task.cancel()
        }
    }

    package func close() { channel.close(promise: nil) }
}
