import Hummingbird
import Logging
import PostcardReceiver
import PostcardServer
import ServiceLifecycle

/// Serves an app's routes on a free port while something is done with them.
func withRoutes(
    _ router: Router<BasicRequestContext>, _ body: (_ address: String) async throws -> Void
) async throws {
    try await run(body) { onRunning in
        Application(
            router: router, server: .uploads(),
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in onRunning("http://127.0.0.1:\(channel.localAddress?.port ?? 0)") },
            logger: silentLogger)
    }
}

/// Runs a receiver on a store while something is done with it.
func withReceiver(
    on store: some MaintainedUploadStore, _ body: (_ address: String) async throws -> Void
) async throws {
    var receiver = Receiver(store: store)
    receiver.port = 0
    receiver.logger = silentLogger
    try await run(body) { [receiver] onRunning in try receiver.application { onRunning($0) } }
}

private let silentLogger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

private func run<App: ApplicationProtocol>(
    _ body: (_ address: String) async throws -> Void,
    _ application: (_ onRunning: @escaping @Sendable (String) -> Void) throws -> App
) async throws {
    let (addresses, continuation) = AsyncStream<String>.makeStream()
    let application = try application { continuation.yield($0) }
    let group = ServiceGroup(services: [application], logger: application.logger)
    // Not a child task: SwiftNIO ends the process if a server is cancelled while it accepts a connection.
    let services = Task {
        defer { continuation.finish() }
        try await group.run()
    }
    let result: Result<Void, any Error>
    do {
        if let address = await addresses.first(where: { _ in true }) { try await body(address) }
        result = .success(())
    } catch {
        result = .failure(error)
    }
    await group.triggerGracefulShutdown()
    try await services.value
    try result.get()
}
