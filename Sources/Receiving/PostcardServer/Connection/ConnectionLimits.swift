package import Logging
package import NIOCore
import PostcardReception
import PostcardStore
import SystemPackage

/// Accepts connections within the shares of their addresses, and only as many as there are descriptors.
///
/// The gate is the first handler of the listening channel. Connections beyond an address's share are closed, except
/// those of a proxy, which has many clients. At the total maximum, new connections wait in the system's queue.
package final class ConnectionGate: ChannelDuplexHandler, RemovableChannelHandler, Sendable {
    package typealias InboundIn = any Channel
    package typealias InboundOut = any Channel
    package typealias OutboundIn = Never
    package typealias OutboundOut = Never

    private enum State {
        case open
        /// As many connections are open as are allowed.
        case full
        /// The system had no descriptor or memory for another connection.
        case exhausted
    }

    private struct Count {
        var state = State.open
        /// Whether a task is scheduled that closes old connections.
        var isWaiting = false
        var failures = 0
        var lastLine: NIODeadline?
    }

    private let shares: ShareAccount
    private let options: ConnectionOptions
    private let logger: Logger
    private let count: NIOLoopBoundBox<Count>

    /// How long the gate waits after the system could not accept a connection, because NIO itself retries at once. Also
    /// the interval at which the gate tries to close old connections while it is full.
    private static let pause = TimeAmount.milliseconds(100)

    private init(shares: ShareAccount, options: ConnectionOptions, logger: Logger, eventLoop: any EventLoop) {
        self.shares = shares
        self.options = options
        self.logger = logger
        count = NIOLoopBoundBox(Count(), eventLoop: eventLoop)
    }

    /// - Parameters:
    ///   - shares: Limits the connections, in total and for each client.
    ///   - options: The options that identify connections of proxies.
    package static func install(
        on server: any Channel, shares: ShareAccount, options: ConnectionOptions, logger: Logger
    ) async throws {
        try await server.eventLoop.submit {
            let gate = ConnectionGate(
                shares: shares, options: options, logger: logger, eventLoop: server.eventLoop)
            try server.pipeline.syncOperations.addHandler(gate, position: .first)
        }.get()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = unwrapInboundIn(data)
        let hold: ShareAccount.Hold
        do throws(UploadProblem) {
            let peer = options.isProxy(ConnectionPeer(channel)) ? nil : PeerAddress(channel.remoteAddress)
            hold = try shares.take(of: .connections, for: peer, on: channel)
        } catch {
            return channel.close(promise: nil)
        }
        let server = context.channel
        channel.closeFuture.hop(to: context.eventLoop).whenComplete { [self] _ in closed(hold, server) }
        context.fireChannelRead(data)
        if isFull { waitForRoom(server) }
    }

    private var isFull: Bool { shares.free(of: .connections) <= 0 }

    private func closed(_ hold: consuming ShareAccount.Hold, _ server: any Channel) {
        _ = consume hold
        if count.value.state == .full { resume(server) }
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let exhaustions: [Errno] = [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noBufferSpace, .noMemory]
        guard let failure = error as? IOError, exhaustions.contains(Errno(rawValue: failure.errnoCode)) else {
            return context.fireErrorCaught(error)
        }
        count.value.failures += 1
        let server = context.channel
        log(failure, at: context.eventLoop.now)
        pause(.exhausted, server)
        context.eventLoop.scheduleTask(in: Self.pause) { [self] in resume(server) }
    }

    package func read(context: ChannelHandlerContext) {
        if count.value.state == .open { context.read() }
    }

    /// Stops reading the listening channel. While the channel is read, the event loop reports the waiting connections
    /// again and again.
    private func pause(_ state: State, _ server: any Channel) {
        count.value.state = state
        try? server.syncOptions?.setOption(.autoRead, value: false)
    }

    /// Waits until a connection is closed. Also closes old connections, because a new client may be waiting.
    private func waitForRoom(_ server: any Channel) {
        pause(.full, server)
        guard !count.value.isWaiting else { return }
        count.value.isWaiting = true
        server.eventLoop.scheduleTask(in: Self.pause) { [self] in
            count.value.isWaiting = false
            guard count.value.state == .full, server.isActive else { return }
            shares.makeRoom(in: .connections)
            // Connections that count for the client in a PROXY header have a resource of their own.
            shares.makeRoom(in: .proxiedConnections)
            if isFull { waitForRoom(server) } else { resume(server) }
        }
    }

    private func resume(_ server: any Channel) {
        guard !isFull else { return waitForRoom(server) }
        count.value.state = .open
        try? server.syncOptions?.setOption(.autoRead, value: true)
    }

    /// Logs how many connections the system could not accept since the last message, at most once a second.
    private func log(_ failure: IOError, at now: NIODeadline) {
        if let last = count.value.lastLine, now - last < .seconds(1) { return }
        logger.warning(
            "Could not accept connections",
            metadata: ["failures": "\(count.value.failures)", "error": "\(Errno(rawValue: failure.errnoCode))"])
        count.value.lastLine = now
        count.value.failures = 0
    }
}
