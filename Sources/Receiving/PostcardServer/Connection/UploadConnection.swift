package import HTTPTypes
package import NIOCore
import NIOHTTPTypes
package import PostcardReception
package import PostcardStore

/// An event whose promise succeeds once all parts of the response are in the socket.
struct ResponseFlush: Sendable {}

/// The connection of a request, and what is kept until the request ends.
package final class UploadConnection: RequestConnection {
    /// The connection of the request that the current task handles; `nil` on another server than
    /// ``HummingbirdCore/HTTPServerBuilder/uploads(options:)``. Only routes, middleware and the extensions of
    /// `Request` read this, because Hummingbird passes them nothing but the app's own context. They pass the connection
    /// on.
    @TaskLocal package static var current: UploadConnection?

    package let channel: any Channel

    package var channelToClose: (any Channel)? { channel }

    package var informs: Bool { true }

    /// Whether the channel is one stream of an HTTP/2 connection. The parent of a whole connection is the listening
    /// channel.
    package var isStream: Bool { channel.parent?.parent != nil }

    /// The client that the request is from: the other end of the connection, or who a trusted proxy says it is.
    private let client: RequestClient

    /// The client that the request counts for, or `nil` if clients cannot be distinguished.
    package var peer: PeerAddress? { client.peer }

    /// The address of the client, or `nil` if it is not known.
    package var clientAddress: IPAddress? { client.address }

    /// What became of the request.
    package let report = UploadReport()

    /// Files that are removed once the response has been sent.
    let files = TemporaryFiles()

    init(channel: any Channel, client: RequestClient) {
        self.channel = channel
        self.client = client
    }

    convenience init(channel: any Channel) {
        self.init(channel: channel, client: RequestClient(from: ConnectionPeer(channel)))
    }

    /// Waits until the response written so far is in the client's socket. If the client reads nothing, it waits until
    /// the connection is closed.
    func flushed() async throws {
        do {
            try await channel.triggerUserOutboundEvent(ResponseFlush())
        } catch ChannelError.operationUnsupported {
            // Other servers have their own way of waiting.
        }
    }

    /// How long a stream may leave the refusal of its request unread.
    private static let patience = TimeAmount.milliseconds(500)

    /// Closes a stream whose client opens no window for the refusal of its request: such streams must not add up.
    ///
    /// - Returns: What to cancel once the refusal is in the socket; `nil` for a whole connection.
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

/// Ends a request because another one wants the lock of its upload.
extension UploadConnection {
    /// The time without bytes after which an ended request is cut off, and the time after which it is in any case: a
    /// client may send on, byte by byte, and the request that ended it waits.
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
