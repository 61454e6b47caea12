package import Logging
package import NIOCore
import SystemPackage

/// Keeps a server from having more connections than it has descriptors for, and one address from having all of them.
///
/// It is the first handler of the channel that accepts connections. Those that it does not accept wait in the
/// system's queue until another one is closed.
package final class ConnectionGate: ChannelDuplexHandler, RemovableChannelHandler, Sendable {
    package typealias InboundIn = any Channel
    package typealias InboundOut = any Channel
    package typealias OutboundIn = Never
    package typealias OutboundOut = Never

    private enum State {
        case open
        /// As many connections are there as may be.
        case full
        /// The system had no descriptor or no memory for another connection.
        case exhausted
    }

    private struct Count {
        var connections = 0
        var peers: [PeerAddress: Int] = [:]
        var state = State.open
        var failures = 0
        var refusals = 0
        var lastLine: ContinuousClock.Instant?
    }

    private let maximum: Int
    private let share: Int
    private let logger: Logger
    private let count: NIOLoopBoundBox<Count>

    /// How long to wait where the system cannot accept a connection. NIO tries again at once.
    private static let pause = TimeAmount.milliseconds(100)

    private init(maximum: Int, share: Int, logger: Logger, eventLoop: any EventLoop) {
        self.maximum = maximum
        self.share = share
        self.logger = logger
        count = NIOLoopBoundBox(Count(), eventLoop: eventLoop)
    }

    /// - Parameters:
    ///   - maximum: The most connections.
    ///   - share: The most connections of one address.
    package static func install(on server: any Channel, maximum: Int, share: Int, logger: Logger) async throws {
        try await server.eventLoop.submit {
            let gate = ConnectionGate(maximum: maximum, share: share, logger: logger, eventLoop: server.eventLoop)
            try server.pipeline.syncOperations.addHandler(gate, position: .first)
        }.get()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = unwrapInboundIn(data)
        let peer = PeerAddress(channel.remoteAddress)
        if let peer, count.value.peers[peer, default: 0] >= share {
            channel.close(promise: nil)
            count.value.refusals += 1
            return log()
        }
        count.value.connections += 1
        if let peer { count.value.peers[peer, default: 0] += 1 }
        let server = context.channel
        channel.closeFuture.hop(to: context.eventLoop).whenComplete { [self] _ in closed(peer, server) }
        context.fireChannelRead(data)
        if count.value.connections >= maximum { pause(.full, server) }
    }

    private func closed(_ peer: PeerAddress?, _ server: any Channel) {
        count.value.connections -= 1
        if let peer, let rest = count.value.peers[peer] { count.value.peers[peer] = rest > 1 ? rest - 1 : nil }
        if count.value.state == .full { goOn(server) }
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let exhaustions: [Errno] = [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noBufferSpace, .noMemory]
        guard let failure = error as? IOError, exhaustions.contains(Errno(rawValue: failure.errnoCode)) else {
            return context.fireErrorCaught(error)
        }
        count.value.failures += 1
        let server = context.channel
        log(failure)
        pause(.exhausted, server)
        context.eventLoop.scheduleTask(in: Self.pause) { [self] in goOn(server) }
    }

    package func read(context: ChannelHandlerContext) {
        if count.value.state == .open { context.read() }
    }

    /// The channel goes on being told of connections that wait unless it reads nothing at all.
    private func pause(_ state: State, _ server: any Channel) {
        count.value.state = state
        try? server.syncOptions?.setOption(.autoRead, value: false)
    }

    private func goOn(_ server: any Channel) {
        guard count.value.connections < maximum else {
            count.value.state = .full
            return
        }
        count.value.state = .open
        try? server.syncOptions?.setOption(.autoRead, value: true)
    }

    /// Says at most once a second what was not accepted since the last time.
    private func log(_ failure: IOError? = nil) {
        let now = ContinuousClock.now
        if let last = count.value.lastLine, last.duration(to: now) < .seconds(1) { return }
        count.value.lastLine = now
        var metadata: Logger.Metadata = ["connections": "\(count.value.connections)"]
        if count.value.failures > 0 { metadata["failures"] = "\(count.value.failures)" }
        if count.value.refusals > 0 { metadata["beyond-share"] = "\(count.value.refusals)" }
        metadata["error"] = failure.map { "\(Errno(rawValue: $0.errnoCode))" }
        count.value.failures = 0
        count.value.refusals = 0
        logger.warning("Could not accept connections", metadata: metadata)
    }
}
