import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization

/// Limits how long a connection may delay the server's shutdown, and how many of its bytes are buffered.
///
/// During a shutdown, Hummingbird itself waits for requests in progress without a limit.
struct ShutdownConnection<Base: ServerChildChannel>: ServerChildChannel {
    let base: Base
    /// How long requests may continue after the shutdown began.
    let timeout: Duration

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
        do {
            try channel.pipeline.syncOperations.addHandler(ConnectionCut(), position: .first)
            try channel.syncOptions?.setOption(.recvAllocator, value: SharedReceiveBuffers())
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return base.setup(channel: channel, logger: logger)
    }

    func handle(value: Base.Value, logger: Logger) async {
        // A task group with a second task for the shutdown would cost several kilobytes per connection.
        let serving = Task { await base.handle(value: value, logger: logger) }
        await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                await serving.value
            } onGracefulShutdown: {
                cut(value.channel, servedBy: serving)
            }
        } onCancel: {
            serving.cancel()
        }
    }

    /// Closes a connection after ``timeout``, unless its requests have ended before.
    private func cut(_ channel: any Channel, servedBy serving: Task<Void, Never>) {
        let cut = channel.eventLoop.scheduleTask(in: TimeAmount(timeout)) {
            channel.pipeline.fireUserInboundEventTriggered(ConnectionCut.Event())
            // The connection is closed first. Otherwise the cancelled task makes an incomplete body
            // seem complete.
            channel.closeFuture.whenComplete { _ in serving.cancel() }
        }
        Task {
            await serving.value
            cut.cancel()
        }
    }
}

/// Closes the connection as soon as an ``Event`` is fired in its pipeline, without waiting for other handlers.
private final class ConnectionCut: ChannelInboundHandler {
    typealias InboundIn = NIOAny

    struct Event: Sendable {}

    private let count = SharedReceiveBuffers.Count()

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is Event else { return context.fireUserInboundEventTriggered(event) }
        context.close(promise: nil)
    }
}

@available(*, unavailable)
extension ConnectionCut: Sendable {}

/// Chooses the sizes of the buffers into which connections are read. A connection has four buffers for its next bytes,
/// and about thirteen that may wait for its route. The buffers are therefore smaller while there are many connections.
struct SharedReceiveBuffers: RecvByteBufferAllocator {
    private static let connections = Atomic<Int>(0)
    private static let maximumBytes = 64 << 10
    private static let minimumBytes = 4 << 10
    /// Buffers shrink, down to `minimumBytes`, while their size times the number of connections exceeds this number.
    private static let sharedBytes = 2 << 20

    private var adaptive = AdaptiveRecvByteBufferAllocator(
        minimum: 64, initial: 2 << 10, maximum: SharedReceiveBuffers.maximumBytes)

    /// Counts a connection until this object is released.
    final class Count: Sendable {
        init() { SharedReceiveBuffers.connections.add(1, ordering: .relaxed) }
        deinit { SharedReceiveBuffers.connections.subtract(1, ordering: .relaxed) }
    }

    private var size: Int {
        var share = Self.maximumBytes
        let connections = Self.connections.load(ordering: .relaxed)
        // The size is a power of two, like all capacities.
        while share > Self.minimumBytes, share * connections > Self.sharedBytes { share /= 2 }
        return min(adaptive.nextBufferSize() ?? share, share)
    }

    func nextBufferSize() -> Int? { size }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { allocator.buffer(capacity: size) }

    mutating func record(actualReadBytes: Int) -> Bool { adaptive.record(actualReadBytes: actualReadBytes) }
}
