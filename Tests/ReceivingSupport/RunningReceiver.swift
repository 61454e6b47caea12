import Foundation
package import Hummingbird
import Logging
import NIOCore
package import PostcardReceiver
import PostcardServer
package import PostcardStore
package import PostcardTestSupport
import ServiceLifecycle
package import SystemPackage

/// A receiver on a free port, with its own directory.
package struct RunningReceiver: Sendable {
    package let url: String
    package let directory: FilePath
    /// Ends the receiver as SIGTERM would.
    package let shutDown: @Sendable () async -> Void

    package var port: Int { url.split(separator: ":").last.flatMap { Int($0) } ?? 0 }

    /// The names of the records' folders.
    package var records: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: directory.string).filter { !$0.hasPrefix(".") }
        }
    }

    /// What is being received.
    package var incoming: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: directory.appending(".incoming").string)
        }
    }

    /// How long clients wait, in seconds: a hang is a failure, and a busy machine is none.
    package static let patience = 300

    package func curl(_ arguments: String...) async throws -> Program.Ending {
        try await Program.run("curl", ["-sS", "--max-time", "\(Self.patience)"] + arguments)
    }

    /// Sends bytes as they are and reads what comes back until the server closes.
    package func exchange(_ request: String, closingInput: Bool = false) async throws -> RawResponse {
        try await exchange(Array(request.utf8), closingInput: closingInput)
    }

    package func exchange(_ request: [UInt8], closingInput: Bool = false) async throws -> RawResponse {
        let port = port
        return try await onThread {
            let socket = try RawSocket(port: port)
            try socket.send(request)
            if closingInput { socket.closeInput() }
            return try RawResponse(socket.receiveAll())
        }
    }
}

/// Runs a receiver, and ends it as SIGTERM would.
package func withReceiver(
    _ configure: (inout Receiver) -> Void = { _ in }, _ body: (RunningReceiver) async throws -> Void
) async throws {
    try await withTemporaryDirectory { directory in
        try await withReceiver(in: directory.appending("received"), configure, body)
    }
}

/// Runs a receiver on a store that outlives it.
package func withReceiver(
    on store: some MaintainedUploadStore, _ configure: (inout Receiver) -> Void = { _ in },
    _ body: (RunningReceiver) async throws -> Void
) async throws {
    var receiver = Receiver(store: store)
    receiver.port = 0
    receiver.allowedHosts = ["a"]
    receiver.connections.waitForBusyClients()
    receiver.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    configure(&receiver)
    try await run(receiver, body)
}

/// Runs a receiver on a directory that outlives it.
package func withReceiver(
    in directory: FilePath, _ configure: (inout Receiver) -> Void = { _ in },
    _ body: (RunningReceiver) async throws -> Void
) async throws {
    var receiver = Receiver(directory: directory)
    receiver.port = 0
    // What the tests' requests call it.
    receiver.allowedHosts = ["a"]
    receiver.connections.waitForBusyClients()
    receiver.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    configure(&receiver)
    try await run(receiver, body)
}

extension ConnectionOptions {
    /// Lets clients be as slow as a busy machine makes them.
    fileprivate mutating func waitForBusyClients() {
        idleTimeout = .seconds(120)
        keepAliveTimeout = .seconds(120)
        gracePeriod = .seconds(120)
    }
}

extension Receiver {
    /// The directory of the local store that all tests' receivers have.
    package var directory: FilePath {
        guard case .directory(let path) = storage else { return "" }
        return path
    }
}

private func run(_ receiver: Receiver, _ body: (RunningReceiver) async throws -> Void) async throws {
    let (addresses, continuation) = AsyncStream<String>.makeStream()
    let application = try receiver.application { continuation.yield($0) }
    try await run(application, directory: receiver.directory, addresses, continuation, body)
}

/// Runs an application with the given router.
package func withApplication(
    router: Router<BasicRequestContext>, _ body: (RunningReceiver) async throws -> Void
) async throws {
    let (addresses, continuation) = AsyncStream<String>.makeStream()
    var options = ConnectionOptions()
    options.waitForBusyClients()
    let application = Application(
        router: router, server: .uploads(options: options),
        configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
        onServerRunning: { channel in
            continuation.yield("http://127.0.0.1:\(channel.localAddress?.port ?? 0)")
        },
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    try await run(application, directory: "/nowhere", addresses, continuation, body)
}

private func run(
    _ application: some ApplicationProtocol, directory: FilePath,
    _ addresses: AsyncStream<String>, _ continuation: AsyncStream<String>.Continuation,
    _ body: (RunningReceiver) async throws -> Void
) async throws {
    let group = ServiceGroup(services: [application], logger: application.logger)
    // Not a child task, which would be cancelled with the test: SwiftNIO ends the process if a server is cancelled while
    // it has accepted a connection and not begun to serve it.
    let services = Task {
        defer { continuation.finish() }
        try await group.run()
    }
    if let url = await addresses.first(where: { _ in true }) {
        do {
            try await body(
                RunningReceiver(url: url, directory: directory) { await group.triggerGracefulShutdown() })
        } catch {
            await group.triggerGracefulShutdown()
            try? await services.value
            throw error
        }
    }
    await group.triggerGracefulShutdown()
    try await services.value
}

/// A directory that is gone when the body returns.
package func withTemporaryDirectory(_ body: (FilePath) async throws -> Void) async throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "postcard-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: url) }
    try await body(FilePath(url.path(percentEncoded: false)))
}
