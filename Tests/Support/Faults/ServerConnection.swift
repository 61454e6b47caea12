import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix

/// A connection of the proxy to the server, for one request.
struct ServerConnection {
    private typealias Server = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

    private var inbound: NIOAsyncChannelInboundStream<HTTPClientResponsePart>.AsyncIterator
    private let channel: any Channel

    /// Connects, does something, and closes.
    static func open<Result>(
        to server: URL, _ work: (ServerConnection) async throws -> Result
    ) async throws -> Result {
        let connection = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelOption(.socketOption(.so_sndbuf), value: FaultProxy.bufferBytes)
            .connect(host: server.host() ?? "127.0.0.1", port: server.port ?? 80) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    return try Server(wrappingChannelSynchronously: channel)
                }
            }
        return try await connection.executeThenClose { inbound, _ in
            try await work(ServerConnection(inbound: inbound.makeAsyncIterator(), channel: connection.channel))
        }
    }

    /// Sends a request's head; what it expects has been answered.
    func begin(_ head: HTTPRequestHead) async throws {
        var head = head
        head.headers.remove(name: "Expect")
        head.headers.replaceOrAdd(name: "Connection", value: "close")
        try await write(.head(head))
    }

    func write(_ bytes: ByteBuffer) async throws {
        try await write(.body(.byteBuffer(bytes)))
    }

    func end() async throws {
        try await write(.end(nil))
    }

    /// Returns once the part is in the socket, where it stays in the stream even if the client fails.
    private func write(_ part: HTTPClientRequestPart) async throws {
        try await channel.writeAndFlush(part)
    }

    /// The next part of the response.
    mutating func nextPart() async throws -> HTTPClientResponsePart? {
        try await inbound.next(isolation: #isolation)
    }
}
