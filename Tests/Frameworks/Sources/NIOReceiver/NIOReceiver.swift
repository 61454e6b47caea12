import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import PostcardReception
import Settings

private typealias Connection = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

@main
struct NIOReceiver {
    static func main() async throws {
        guard let settings = Settings(CommandLine.arguments) else { return print("PORT FOLDER NAME") }
        let store = try LocalUploadStore(directory: settings.folder)
        var receiver = FormReceiver(store: store, options: settings.options)
        receiver.timeouts = settings.timeouts
        receiver.tokens = settings.tokens.map { BearerTokens($0) }
        receiver.maximumDiscardedBytes = 8 << 20
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: "127.0.0.1", port: settings.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(withErrorHandling: false)
                    try channel.pipeline.syncOperations.addHandler(HTTP1ToHTTPServerCodec(secure: false))
                    return try Connection(wrappingChannelSynchronously: channel)
                }
            }
        try await server.executeThenClose { connections in
            try await withThrowingDiscardingTaskGroup { [receiver] group in
                for try await connection in connections {
                    // A connection that breaks ends alone.
                    group.addTask { try? await serve(connection, by: receiver) }
                }
            }
        }
    }
}

private func serve(_ connection: Connection, by receiver: FormReceiver) async throws {
    try await connection.executeThenClose { parts, outbound in
        let body = RequestBody(parts)
        while let head = try await body.nextHead() {
            // begin
            let address = connection.channel.remoteAddress?.ipAddress
            let response = await receiver.respond(to: head, body, from: address) { interim in
                try await outbound.write(.head(interim))
            }
            try await outbound.write(.head(response.head))
            if !response.body.isEmpty { try await outbound.write(.body(ByteBuffer(bytes: response.body))) }
            try await outbound.write(.end(nil))
            guard response.isRequestRead, head.headerFields[.connection] != "close" else { return }
            // end
        }
    }
}

/// The requests of a connection, one after the other, and the body of the one that is being read. One task at a time reads
/// it: that of the connection, or that of the body while the connection waits for the response.
private final class RequestBody: AsyncSequence, AsyncIteratorProtocol, @unchecked Sendable {
    private var parts: NIOAsyncChannelInboundStream<HTTPRequestPart>.AsyncIterator
    private var isEnded = false

    init(_ parts: NIOAsyncChannelInboundStream<HTTPRequestPart>) {
        self.parts = parts.makeAsyncIterator()
    }

    func nextHead() async throws -> HTTPRequest? {
        while let part = try await parts.next() {
            guard case .head(let head) = part else { continue }
            isEnded = false
            return head
        }
        return nil
    }

    func next() async throws -> ByteBuffer? {
        guard !isEnded else { return nil }
        switch try await parts.next() {
        case .body(let bytes): return bytes
        case .end:
            isEnded = true
            return nil
        case .head, nil:
            isEnded = true
            throw ChannelError.inputClosed
        }
    }

    func makeAsyncIterator() -> RequestBody { self }
}
