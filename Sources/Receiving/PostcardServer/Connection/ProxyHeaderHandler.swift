import HummingbirdCore
import Logging
import NIOCore
import PostcardReception
import PostcardStore
import Synchronization

/// Reads the PROXY header at the beginning of a connection, before the handlers of TLS and HTTP.
final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private enum State {
        case waiting(ByteBuffer)
        /// The header was read. The connection counts for the limits of the client in the header.
        case open(client: IPAddress?, hold: ShareAccount.Hold?)
        case closed
    }

    private var state = State.waiting(ByteBuffer())
    /// The other end of the connection. It is recorded early, because a health check may end before its header is read.
    private var peer = ConnectionPeer.gone
    private let options: ConnectionOptions
    private let shares: ShareAccount?
    private let refusals: ProxyHeaderRefusals
    private let logger: Logger

    /// - Parameters:
    ///   - shares: Limits the connections of each client. Defaults to `nil`: no limits.
    ///   - refusals: Logs connections without a valid header.
    init(
        options: ConnectionOptions, shares: ShareAccount? = nil, refusals: ProxyHeaderRefusals, logger: Logger
    ) {
        self.options = options
        self.shares = shares
        self.refusals = refusals
        self.logger = logger
    }

    /// The client in the header; `nil` if the header names no client or is incomplete.
    var client: IPAddress? {
        if case .open(let client, _) = state { client } else { nil }
    }

    /// The client in the PROXY header of a connection. `channel` is the connection, or one of its streams.
    static func client(of channel: any Channel) async -> IPAddress? {
        let parent = channel.parent
        let connection = parent?.parent == nil ? channel : parent ?? channel
        return try? await connection.eventLoop.submit {
            try connection.pipeline.syncOperations.handler(type: ProxyHeaderHandler.self).client
        }.get()
    }

    /// The client in the PROXY header, or else the connection's other end. Call it on the connection's event loop.
    static func clientNow(of connection: any Channel) -> IPAddress? {
        let header = try? connection.pipeline.syncOperations.handler(type: ProxyHeaderHandler.self)
        return header?.client ?? IPAddress(connection.remoteAddress)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        peer = ConnectionPeer(context.channel)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch state {
        case .open: context.fireChannelRead(data)
        case .closed: break
        case .waiting(var received):
            guard peer != .gone else {
                state = .closed
                return context.close(promise: nil)
            }
            guard options.isProxy(peer) else {
                return close(context: context, "The connection is not from a trusted proxy")
            }
            received.writeImmutableBuffer(unwrapInboundIn(data))
            state = .waiting(received)
            do throws(ProxyHeader.Refusal) {
                guard let header = try ProxyHeader.read(from: &received) else { return }
                open(header, rest: received, context: context)
            } catch {
                close(context: context, "\(error)")
            }
        }
    }

    private func open(_ header: ProxyHeader, rest: ByteBuffer, context: ChannelHandlerContext) {
        let client: IPAddress? = if case .client(let address) = header { address } else { nil }
        do throws(UploadProblem) {
            let peer = client.map { PeerAddress($0) }
            let hold = try shares?.take(of: .proxiedConnections, for: peer, on: context.channel)
            state = .open(client: client, hold: hold)
        } catch {
            state = .closed
            return context.close(promise: nil)
        }
        if rest.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(rest)) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .waiting = state, case ChannelEvent.inputClosed? = event as? ChannelEvent {
            closeUnfinished(context: context)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .waiting = state { closeUnfinished(context: context) }
        state = .closed
        context.fireChannelInactive()
    }

    /// Closes a connection that ends before its header is complete. A connection without any bytes only tested whether
    /// the port is open, and is not logged.
    private func closeUnfinished(context: ChannelHandlerContext) {
        guard case .waiting(let received) = state, received.readableBytes > 0 else {
            state = .closed
            return context.close(promise: nil)
        }
        close(context: context, "The connection ended in the middle of its PROXY header")
    }

    private func close(context: ChannelHandlerContext, _ reason: String) {
        state = .closed
        refusals.log(reason, from: peer, to: logger)
        context.close(promise: nil)
    }
}

@available(*, unavailable)
extension ProxyHeaderHandler: Sendable {}

/// Logs connections with invalid PROXY headers, at most one line a minute.
final class ProxyHeaderRefusals: Sendable {
    private let line = Mutex(RepeatedLine())

    func log(_ reason: String, from peer: ConnectionPeer, to logger: Logger) {
        let address = if case .address(let address) = peer { "\(address)" } else { "unknown" }
        guard let count = line.withLock({ $0.count(at: .now) }) else { return }
        logger.warning(
            "Closed connections without a valid PROXY header",
            metadata: [
                "reason": "\(reason)", "address": "\(address)", "count": "\(count)",
            ])
    }
}

/// Adds a ``ProxyHeaderHandler`` to each connection of a server, if the options require PROXY headers.
struct ProxiedConnection<Base: ServerChildChannel>: ServerChildChannel {
    let base: Base
    let options: ConnectionOptions
    let shares: ShareAccount?
    private let refusals = ProxyHeaderRefusals()

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
        guard options.usesProxyProtocol else { return base.setup(channel: channel, logger: logger) }
        do {
            // This handler must precede the handlers of TLS and HTTP, which the base adds after it.
            let handler = ProxyHeaderHandler(options: options, shares: shares, refusals: refusals, logger: logger)
            try channel.pipeline.syncOperations.addHandler(handler)
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return base.setup(channel: channel, logger: logger)
    }

    func handle(value: Base.Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}
