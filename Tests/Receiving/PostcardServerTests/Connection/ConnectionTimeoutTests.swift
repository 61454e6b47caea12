import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import Testing

@testable import PostcardReception
@testable import PostcardServer

/// The timeouts of a connection by a clock that only the test moves.
struct ConnectionTimeoutTests {
    @Test(arguments: ["", "POST /uploads HTT"])
    func `a connection without a request is closed after the idle timeout, and not earlier`(
        beginning: String
    ) throws {
        let connection = try TimedConnection()
        try connection.send(beginning)
        connection.wait(seconds: 29)
        #expect(connection.isOpen)
        connection.wait(seconds: 1)
        #expect(!connection.isOpen)
    }

    @Test(arguments: [
        ("GET /health HTTP/1.1\r\nHost: a\r\nX: ", "a"), ("GET /health HTTP/1.1\r\nHost: a\r\n", "X: a\r\n"),
        ("POST /uploads?", "a"), ("", "\r\n"), (TimedConnection.request + "GET /health HTTP/1.1\r\nX: ", "a"),
    ])
    func `a head that arrives byte by byte has to be complete within the idle timeout`(
        beginning: String, piece: String
    ) throws {
        let connection = try TimedConnection()
        try connection.send(beginning)
        for _ in 0..<29 {
            connection.wait(seconds: 1)
            try connection.send(piece)
        }
        #expect(connection.isOpen)
        // The head of a request that begins behind another one counts from its next bytes.
        connection.wait(seconds: 2)
        #expect(!connection.isOpen)
    }

    @Test func `a connection is kept between requests for longer than a client may be idle`() throws {
        let connection = try TimedConnection()
        for _ in 0..<3 {
            try connection.send(TimedConnection.request)
            connection.wait(seconds: 74)
            #expect(connection.isOpen)
        }
        connection.wait(seconds: 1)
        #expect(!connection.isOpen && connection.interruption == nil)
    }

    @Test func `a client that stops in the middle of a body is too slow after the idle timeout`() throws {
        let connection = try TimedConnection()
        try connection.send(TimedConnection.head + String(repeating: "x", count: 20_000))
        connection.wait(seconds: 29)
        #expect(connection.interruption == nil)
        connection.wait(seconds: 1)
        guard case .tooSlow(.seconds(30)) = connection.interruption else {
            Issue.record("\(String(describing: connection.interruption))")
            return
        }
    }

    @Test func `a connection that the server closes in the middle of a body is not the end of the body`() throws {
        let connection = try TimedConnection()
        try connection.send(TimedConnection.head + String(repeating: "x", count: 20_000))
        connection.channel.close(promise: nil)
        connection.wait(seconds: 0)
        #expect(!connection.isOpen)
        guard case .disconnected = connection.interruption else {
            Issue.record("\(String(describing: connection.interruption))")
            return
        }
    }

    @Test(arguments: [(500, true), (499, false)])
    func `a client that sends constantly has to reach the minimum rate in each grace period`(
        bytesPerSecond: Int, isFastEnough: Bool
    ) throws {
        let connection = try TimedConnection()
        try connection.send(TimedConnection.head)
        for second in 0..<120 {
            try connection.send(String(repeating: "x", count: bytesPerSecond))
            connection.wait(seconds: 1)
            #expect((connection.interruption == nil) == (isFastEnough || second < 19), "second \(second)")
            if connection.interruption != nil { break }
        }
    }

    @Test func `the time in which the server does not read is not the client's`() throws {
        let connection = try TimedConnection()
        connection.app.isReading = false
        try connection.send(TimedConnection.head + String(repeating: "x", count: 20_000))
        connection.wait(seconds: 3600)
        #expect(connection.isOpen && connection.interruption == nil)
        connection.app.isReading = true
        connection.channel.pipeline.read()
        connection.wait(seconds: 29)
        #expect(connection.interruption == nil)
        connection.wait(seconds: 1)
        #expect(connection.interruption != nil)
    }
}

/// A connection of HTTP/1.1 with the handlers of the receiver, without a socket.
private final class TimedConnection {
    static let request = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
    static let head = "POST /uploads HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"

    let channel = EmbeddedChannel()
    let app = App()

    init() throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
        try pipeline.addHandlers([
            HTTP1ToHTTPServerCodec(secure: false), ConnectionHandler(options: ConnectionOptions()) { _ in }, app,
        ])
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    deinit { _ = try? channel.finish(acceptAlreadyClosed: true) }

    var isOpen: Bool { channel.isActive }

    /// Why the request broke off, if it did.
    var interruption: RequestInterruption? { app.interruption }

    func send(_ text: String) throws {
        guard !text.isEmpty else { return }
        try channel.writeInbound(ByteBuffer(string: text))
    }

    func wait(seconds: Int64) {
        channel.embeddedEventLoop.advanceTime(by: .seconds(seconds))
    }

    /// Answers each request.
    final class App: ChannelInboundHandler {
        typealias InboundIn = HTTPRequestPart
        typealias OutboundOut = HTTPResponsePart

        var isReading = true
        private(set) var interruption: RequestInterruption?

        func channelActive(context: ChannelHandlerContext) {
            context.read()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .end = unwrapInboundIn(data) else { return }
            let head = HTTPResponse(status: .ok, headerFields: [.contentLength: "0"])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }

        func channelReadComplete(context: ChannelHandlerContext) {
            if isReading { context.read() }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            interruption = error as? RequestInterruption
        }
    }
}
