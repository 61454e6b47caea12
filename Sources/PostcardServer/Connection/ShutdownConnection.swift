import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle

/// Limits how long a connection may hold up the server's shutdown.
///
/// During a shutdown Hummingbird waits for requests in progress, however long they take.
struct ShutdownConnection<Base: ServerChildChannel>: ServerChildChannel {
    let base: Base
    /// How long requests may go on once the shutdown has begun.
    let timeout: Duration

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
        do {
            try channel.pipeline.syncOperations.addHandler(ConnectionCut(), position: .first)
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return base.setup(channel: channel, logger: logger)
    }

    func handle(value: Base.Value, logger: Logger) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await base.handle(value: value, logger: logger) }
            group.addTask {
                do {
                    try await gracefulShutdown()
                    try await Task.sleep(for: timeout)
                    value.channel.pipeline.fireUserInboundEventTriggered(ConnectionCut.Event())
                    // Cancelled before it is closed, a body would seem to end where it was cut off.
                    try await value.channel.closeFuture.get()
                } catch {
                    // The connection has ended before.
                }
            }
            await group.next()
            group.cancelAll()
        }
    }
}

/// Closes a connection at once on its event, without waiting for what other handlers still want to send or read.
private final class ConnectionCut: ChannelInboundHandler {
    typealias InboundIn = NIOAny

    struct Event: Sendable {}

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is Event else { return context.fireUserInboundEventTriggered(event) }
        context.close(promise: nil)
    }
}

@available(*, unavailable)
extension ConnectionCut: Sendable {}
