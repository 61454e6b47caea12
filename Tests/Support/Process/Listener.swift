package import NIOCore
import NIOPosix

/// Runs a server on a free port of this machine, and ends it after something was done with the port.
///
/// - Parameters:
///   - loop: The event loop of the server and its connections.
///   - addHandlers: Adds the handlers of a connection, on its event loop.
///   - work: Uses the port.
package func withListener<Result>(
    on loop: any EventLoop, _ addHandlers: @escaping @Sendable (any Channel) throws -> Void,
    while work: (Int) async throws -> Result
) async throws -> Result {
    let listener = try await ServerBootstrap(group: loop)
        .childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture { try addHandlers(channel) }
        }
        .bind(host: "127.0.0.1", port: 0).get()
    do {
        guard let port = listener.localAddress?.port else { throw ProgramFailure("The server has no port.") }
        let result = try await work(port)
        try await listener.close()
        return result
    } catch {
        try? await listener.close()
        throw error
    }
}
