import NIOCore
import NIOPosix
import NIOSSL
import PostcardTestSupport

/// A connection of HTTP/2 over TLS on which frames go as they are written (RFC 9113 §4).
package struct RawStreams {
    private struct Frame {
        let type: UInt8
        let flags: UInt8
        let stream: UInt32
        let payload: [UInt8]
    }

    /// What became of a stream.
    package enum Response: Equatable {
        /// The response's body.
        case body(String)
        /// RST_STREAM with this error code.
        case reset(UInt32)
    }

    package struct Ended: Error {}

    package typealias Fields = [(name: String, value: String)]

    private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    private var received = ByteBuffer()
    private var bodies: [UInt32: String] = [:]
    private var responses: [UInt32: Response] = [:]
    private var interims: Set<UInt32> = []

    /// Opens a connection to a port of this machine, and closes it when the body returns.
    ///
    /// - Parameters:
    ///   - receiveBufferBytes: How much the system takes for this end while it is not read.
    ///   - window: How many bytes of each response may be sent before ``openWindow(on:)``.
    ///   - beginning: The bytes before the handshake.
    package static func connect(
        to port: Int, from address: String? = nil, receiveBufferBytes: Int? = nil, window: UInt32 = 65_535,
        beginning: [UInt8] = [],
        _ body: (inout RawStreams) async throws -> Void
    ) async throws {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        configuration.applicationProtocols = ["h2"]
        let tls = try NIOSSLContext(configuration: configuration)
        var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        if let address { bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: address, port: 0)) }
        if let receiveBufferBytes {
            bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: numericCast(receiveBufferBytes))
        }
        let channel = try await bootstrap.connect(host: "127.0.0.1", port: port) { channel in
            channel.eventLoop.makeCompletedFuture {
                let handler = try NIOSSLClientHandler(context: tls, serverHostname: nil)
                try channel.pipeline.syncOperations.addHandler(ConnectionBeginning(beginning))
                try channel.pipeline.syncOperations.addHandler(handler)
                return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
            }
        }
        try await channel.executeThenClose { inbound, outbound in
            var streams = RawStreams(inbound: inbound.makeAsyncIterator(), outbound: outbound)
            try await outbound.write(ByteBuffer(string: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
            // SETTINGS_INITIAL_WINDOW_SIZE
            try await streams.send(type: 4, flags: 0, stream: 0, [0, 4] + bytes(of: window))
            try await body(&streams)
        }
    }

    private init(
        inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator,
        outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    ) {
        self.inbound = inbound
        self.outbound = outbound
    }

    /// Sends a request's header fields, the pseudo ones among them, without any coding.
    package func send(_ fields: Fields, on stream: UInt32, endsStream: Bool = true) async throws {
        var block: [UInt8] = []
        for field in fields { block += [0] + Self.literal(field.name) + Self.literal(field.value) }
        try await send(type: 1, flags: endsStream ? 5 : 4, stream: stream, block)
    }

    /// Sends bytes of a request's body.
    package func send(_ body: String, on stream: UInt32, endsStream: Bool = true) async throws {
        try await send(type: 0, flags: endsStream ? 1 : 0, stream: stream, Array(body.utf8))
    }

    /// Lets the server send as much as it wants on a stream whose window is 0, or on the connection, which is stream 0.
    package func openWindow(on stream: UInt32) async throws {
        let increment: UInt32 = (1 << 31) - (stream == 0 ? 65_536 : 1)
        try await send(type: 8, flags: 0, stream: stream, Self.bytes(of: increment))
    }

    /// Whether a stream has ended.
    package func hasResponse(on stream: UInt32) -> Bool { responses[stream] != nil }

    /// Receives what is there, and then nothing for a while, as a slow client does.
    package mutating func receive(pausing milliseconds: Int32) async throws {
        try await receive()
        try await onThread { RawSocket.pause(milliseconds: milliseconds) }
    }

    /// Waits for a stream's end.
    package mutating func response(on stream: UInt32) async throws -> Response {
        while true {
            if let response = responses[stream] { return response }
            try await receive()
        }
    }

    /// Waits for the head of a response, or of an interim one.
    package mutating func interimResponse(on stream: UInt32) async throws {
        while !interims.contains(stream) { try await receive() }
    }

    private mutating func receive() async throws {
        guard let bytes = try await inbound.next(isolation: #isolation) else { throw Ended() }
        received.writeImmutableBuffer(bytes)
        while let frame = nextFrame() { take(frame) }
        received.discardReadBytes()
    }

    private mutating func take(_ frame: Frame) {
        switch frame.type {
        case 0: bodies[frame.stream, default: ""] += String(decoding: frame.payload, as: UTF8.self)
        case 1: interims.insert(frame.stream)
        // A server that does not want the rest of the request resets the stream after a whole response.
        case 3 where responses[frame.stream] == nil:
            responses[frame.stream] = .reset(frame.payload.reduce(0) { $0 << 8 | UInt32($1) })
        default: break
        }
        guard frame.type <= 1, frame.flags & 1 == 1 else { return }
        responses[frame.stream] = .body(bodies[frame.stream] ?? "")
    }

    private mutating func nextFrame() -> Frame? {
        guard let head = received.getBytes(at: received.readerIndex, length: 9) else { return nil }
        let length = head[..<3].reduce(0) { $0 << 8 | Int($1) }
        guard received.readableBytes >= 9 + length else { return nil }
        received.moveReaderIndex(forwardBy: 9)
        let stream = head[5...].reduce(0) { $0 << 8 | UInt32($1) }
        return Frame(
            type: head[3], flags: head[4], stream: stream, payload: received.readBytes(length: length) ?? [])
    }

    private func send(type: UInt8, flags: UInt8, stream: UInt32, _ payload: [UInt8]) async throws {
        var bytes = ByteBuffer()
        bytes.writeInteger(UInt32(payload.count) << 8 | UInt32(type))
        bytes.writeInteger(flags)
        bytes.writeInteger(stream)
        bytes.writeBytes(payload)
        try await outbound.write(bytes)
    }

    private static func bytes(of number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    /// A string of HPACK (RFC 7541 §5.2), shorter than 127 bytes.
    private static func literal(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + text.utf8 }
}

/// Writes some bytes before all others.
private final class ConnectionBeginning: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    func channelActive(context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        context.fireChannelActive()
    }
}
