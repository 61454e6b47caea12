import Foundation
import NIOCore
import NIOPosix
import Testing

/// A server that speaks plain TCP: what it reads and answers is a script's to say, byte by byte.
struct RawServer: Sendable {
    /// Where it listens.
    let url: URL

    /// Every request's bytes as they came, in the order in which their heads were read.
    let requests: RequestLog

    /// Runs a server while something is done with it.
    ///
    /// - Parameters:
    ///   - script: What happens on each connection; the connection is closed when it returns.
    ///   - work: What is done with the server.
    @discardableResult
    static func run<Result: Sendable>(
        _ script: @escaping @Sendable (RawConnection) async throws -> Void,
        while work: @escaping @Sendable (RawServer) async throws -> Result
    ) async throws -> Result {
        let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .bind(host: "127.0.0.1", port: 0) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel(
                        wrappingChannelSynchronously: channel,
                        configuration: NIOAsyncChannel.Configuration(
                            isOutboundHalfClosureEnabled: true, inboundType: ByteBuffer.self,
                            outboundType: ByteBuffer.self))
                }
            }
        let port = listener.channel.localAddress?.port ?? 0
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/uploads"))
        let server = RawServer(url: url, requests: RequestLog())
        return try await listener.executeThenClose { connections in
            try await withThrowingTaskGroup(of: Result?.self) { group in
                defer { group.cancelAll() }
                group.addTask {
                    try await serve(connections, log: server.requests, script)
                    return nil
                }
                group.addTask { try await work(server) }
                while let result = try await group.next() {
                    if let result { return result }
                }
                throw CancellationError()
            }
        }
    }

    private static func serve(
        _ connections: NIOAsyncChannelInboundStream<NIOAsyncChannel<ByteBuffer, ByteBuffer>>, log: RequestLog,
        _ script: @escaping @Sendable (RawConnection) async throws -> Void
    ) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            for try await channel in connections {
                group.addTask {
                    // A connection that breaks is for the script's test to judge, not the server's end.
                    try? await channel.executeThenClose { inbound, outbound in
                        try await script(RawConnection(inbound, outbound, log: log))
                    }
                }
            }
        }
    }
}
