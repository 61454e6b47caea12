import Foundation
import NIOCore
import NIOPosix
import PostcardTestSupport
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
            .childChannelOption(.autoRead, value: false)
            .bind(host: "127.0.0.1", port: 0) { ConnectionHold.add(to: $0) }
        let port = listener.channel.localAddress?.port ?? 0
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/uploads"))
        let server = RawServer(url: url, requests: RequestLog())
        return try await listener.executeThenClose { connections in
            async let serving: Void = serve(connections, log: server.requests, script)
            let result: Swift.Result<Result, any Error>
            do {
                result = .success(try await work(server))
            } catch {
                result = .failure(error)
            }
            // Closed rather than cancelled, so that no connection is accepted and then let fall.
            try? await listener.channel.close()
            try await serving
            return try result.get()
        }
    }

    /// Runs a server that never answers on the first connection, and reads whole and takes what comes on later ones.
    ///
    /// - Parameter work: What is done with the server; the gate opens once the head has come that is not answered.
    static func runLeavingFirstWithoutResponse(
        while work: @escaping @Sendable (RawServer, _ firstArrived: Gate) async throws -> Void
    ) async throws {
        let firstArrived = Gate()
        try await run { connection in
            if connection.number == 0 {
                defer { firstArrived.open() }
                guard try await connection.readHead() != nil else { return }
                firstArrived.open()
                _ = try await connection.readToEnd()
            } else {
                _ = try await connection.readRequest()
                try await connection.respond("201 Created", body: "taken")
            }
        } while: {
            try await work($0, firstArrived)
        }
    }

    private static func serve(
        _ connections: NIOAsyncChannelInboundStream<any Channel>, log: RequestLog,
        _ script: @escaping @Sendable (RawConnection) async throws -> Void
    ) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            var number = 0
            for try await channel in connections {
                // A connection that breaks is for the script's test to judge, not the server's end.
                group.addTask { [number] in try? await serve(channel, number, log: log, script) }
                number += 1
            }
            group.cancelAll()
        }
    }

    /// Reads nothing from a connection before a handler accepts it: one that arrives as the server ends would otherwise
    /// be wrapped and dropped, which NIO does not allow.
    private static func serve(
        _ channel: any Channel, _ number: Int, log: RequestLog,
        _ script: @escaping @Sendable (RawConnection) async throws -> Void
    ) async throws {
        let connection = try await channel.eventLoop.submit {
            try NIOAsyncChannel(
                wrappingChannelSynchronously: channel,
                configuration: NIOAsyncChannel.Configuration(
                    isOutboundHalfClosureEnabled: true, inboundType: ByteBuffer.self, outboundType: ByteBuffer.self))
        }.get()
        try await connection.executeThenClose { inbound, outbound in
            try await ConnectionHold.end(on: channel)
            try await script(RawConnection(inbound, outbound, number: number, log: log))
        }
    }
}
