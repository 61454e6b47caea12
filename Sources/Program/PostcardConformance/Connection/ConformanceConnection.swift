import Foundation
import NIOCore
import NIOPosix
import NIOSSL

/// A connection on which any bytes can be written, and on which interim responses are seen.
///
/// HTTP libraries write only well-formed requests, and pass over responses such as 104.
final class ConformanceConnection: Sendable {
    let address: ServerAddress
    private let channel: any Channel
    private let inbox: ResponseInbox

    private init(_ address: ServerAddress, _ channel: any Channel, _ inbox: ResponseInbox) {
        self.address = address
        self.channel = channel
        self.inbox = inbox
    }

    private static let security = Result {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.applicationProtocols = ["http/1.1"]
        return try NIOSSLContext(configuration: configuration)
    }

    /// - Throws: `ConnectionFailure` if no connection is open within the timeout.
    static func open(
        to address: ServerAddress, timeout: Duration
    ) async throws(ConnectionFailure) -> ConformanceConnection {
        let inbox = ResponseInbox()
        do {
            let context = address.isSecure ? try security.get() : nil
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connectTimeout(TimeAmount(timeout))
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        if let context {
                            try channel.pipeline.syncOperations.addHandler(handler(context, address.host))
                        }
                        try channel.pipeline.syncOperations.addHandler(InboxHandler(inbox))
                    }
                }
                .connect(host: address.host, port: address.port).get()
            return ConformanceConnection(address, channel, inbox)
        } catch {
            throw ConnectionFailure("no connection to \(address.host), port \(address.port): \(reason(error))")
        }
    }

    /// What of an error is of interest to a person.
    private static func reason(_ error: any Error) -> String {
        if let error = error as? NIOConnectionError {
            if let attempt = error.connectionErrors.first { return reason(attempt.error) }
            return error.dnsAError == nil && error.dnsAAAAError == nil ? "it has no address" : "there is no such host"
        }
        // The text of an IOError names functions of SwiftNIO.
        return (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
    }

    private static func handler(_ context: NIOSSLContext, _ host: String) throws -> NIOSSLClientHandler {
        do {
            return try NIOSSLClientHandler(context: context, serverHostname: host)
        } catch let error as NIOSSLExtraError where error == .cannotUseIPAddressInSNI {
            return try NIOSSLClientHandler(context: context, serverHostname: nil)
        }
    }

    /// Whether the server has not closed the connection.
    var isOpen: Bool { inbox.isOpen }

    /// Says which method the next response answers.
    func beginRequest(_ method: String) {
        inbox.beginRequest(isHead: method == "HEAD")
    }

    /// Writes bytes, without waiting until the server reads them: it may respond first.
    func send(_ bytes: some Sequence<UInt8>) {
        channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    }

    /// The next response, interim or final.
    ///
    /// - Returns: `nil` at the deadline.
    /// - Throws: `ConnectionFailure` if the connection has ended.
    func next(before deadline: ContinuousClock.Instant) async throws(ConnectionFailure) -> RawResponse? {
        try await inbox.next(before: deadline, on: channel.eventLoop)
    }

    /// Waits until the server has closed the connection.
    ///
    /// - Returns: `false` if it has not by the deadline.
    func waitForEnd(before deadline: ContinuousClock.Instant) async -> Bool {
        await inbox.waitForEnd(before: deadline, on: channel.eventLoop)
    }

    /// Writes bytes and closes the connection right after them.
    func cut(after bytes: [UInt8], before deadline: ContinuousClock.Instant) async {
        channel.writeAndFlush(ByteBuffer(bytes: bytes)).whenComplete { [channel] _ in channel.close(promise: nil) }
        _ = await waitForEnd(before: deadline)
    }

    func close() {
        channel.close(promise: nil)
    }
}

/// Passes the bytes of a connection to its inbox.
private final class InboxHandler: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    private let inbox: ResponseInbox

    init(_ inbox: ResponseInbox) {
        self.inbox = inbox
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        inbox.receive(unwrapInboundIn(data).readableBytesView)
        if !inbox.isOpen { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        inbox.end()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A reset is another way to close a connection, and what failed before TLS was set up is not.
        inbox.end(error is IOError ? .closed : ConnectionFailure("the connection failed: \(error)"))
        context.close(promise: nil)
    }
}
