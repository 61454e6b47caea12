package import Logging
package import NIOCore
import SystemPackage

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// How many files and connections the process may have open.
package enum OpenFiles {
    #if canImport(Glibc)
    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
    #else
    private static var resource: Int32 { RLIMIT_NOFILE }
    #endif

    /// Raises the limit to what the system allows. Many systems start with 1,024 or fewer, for programs that cannot
    /// handle more.
    package static func allowAsManyAsPossible() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        #if canImport(Darwin)
        // rlim_max may be infinite, and setrlimit refuses more than OPEN_MAX.
        limit.rlim_cur = min(limit.rlim_max, rlim_t(OPEN_MAX))
        #else
        limit.rlim_cur = limit.rlim_max
        #endif
        // If this fails, the server accepts fewer connections.
        _ = setrlimit(resource, &limit)
    }

    /// The current limit of the process.
    private static var maximum: Int {
        var limit = rlimit()
        // More than a million is as good as no limit.
        return getrlimit(resource, &limit) == 0 ? Int(min(limit.rlim_cur, 1 << 20)) : 1024
    }

    /// For the receiver itself.
    private static let reserve = 64

    /// The maximum number of connections that leaves one file for each, and some for the receiver itself.
    package static var maximumConnections: Int { max((maximum - reserve) / 2, 8) }

    /// How many files the requests of this many connections may have open together.
    package static func forRequests(connections: Int) -> Int { forRequests(connections: connections, of: maximum) }

    /// - Parameter maximum: How many files and connections the process may have open.
    static func forRequests(connections: Int, of maximum: Int) -> Int { max(maximum - reserve - connections, 8) }
}

/// Limits how many connections a server has, so that it does not run out of descriptors, and how many one address has.
///
/// It is the first handler of the listening channel. Connections beyond the maximum wait in the system's queue until
/// another one is closed. Connections beyond an address's share are closed.
package final class ConnectionGate: ChannelDuplexHandler, RemovableChannelHandler, Sendable {
    package typealias InboundIn = any Channel
    package typealias InboundOut = any Channel
    package typealias OutboundIn = Never
    package typealias OutboundOut = Never

    private enum State {
        case open
        /// The maximum number of connections is open.
        case full
        /// The system had no descriptor or no memory for another connection.
        case exhausted
    }

    private struct Count {
        var connections = 0
        var peers = PeerCounts()
        var state = State.open
        var failures = 0
        var refusals = 0
        var lastLine: ContinuousClock.Instant?
    }

    private let maximum: Int
    private let share: Int
    private let logger: Logger
    private let count: NIOLoopBoundBox<Count>

    /// How long to wait if the system cannot accept a connection. NIO would retry immediately.
    private static let pause = TimeAmount.milliseconds(100)

    private init(maximum: Int, share: Int, logger: Logger, eventLoop: any EventLoop) {
        self.maximum = maximum
        self.share = share
        self.logger = logger
        count = NIOLoopBoundBox(Count(), eventLoop: eventLoop)
    }

    /// - Parameters:
    ///   - maximum: The maximum number of connections.
    ///   - share: The maximum number of connections of one address.
    package static func install(on server: any Channel, maximum: Int, share: Int, logger: Logger) async throws {
        try await server.eventLoop.submit {
            let gate = ConnectionGate(maximum: maximum, share: share, logger: logger, eventLoop: server.eventLoop)
            try server.pipeline.syncOperations.addHandler(gate, position: .first)
        }.get()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = unwrapInboundIn(data)
        let peer = PeerAddress(channel.remoteAddress)
        if count.value.peers.hasReached(share, for: peer) {
            channel.close(promise: nil)
            count.value.refusals += 1
            return log()
        }
        count.value.connections += 1
        count.value.peers.add(peer)
        let server = context.channel
        channel.closeFuture.hop(to: context.eventLoop).whenComplete { [self] _ in closed(peer, server) }
        context.fireChannelRead(data)
        if count.value.connections >= maximum { pause(.full, server) }
    }

    private func closed(_ peer: PeerAddress?, _ server: any Channel) {
        count.value.connections -= 1
        count.value.peers.remove(peer)
        if count.value.state == .full { resume(server) }
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
        context.eventLoop.scheduleTask(in: Self.pause) { [self] in resume(server) }
    }

    package func read(context: ChannelHandlerContext) {
        if count.value.state == .open { context.read() }
    }

    /// Stops reading altogether: otherwise the event loop keeps reporting the waiting connections.
    private func pause(_ state: State, _ server: any Channel) {
        count.value.state = state
        try? server.syncOptions?.setOption(.autoRead, value: false)
    }

    private func resume(_ server: any Channel) {
        guard count.value.connections < maximum else {
            count.value.state = .full
            return
        }
        count.value.state = .open
        try? server.syncOptions?.setOption(.autoRead, value: true)
    }

    /// Logs, at most once a second, how many connections were not accepted since the last message.
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
