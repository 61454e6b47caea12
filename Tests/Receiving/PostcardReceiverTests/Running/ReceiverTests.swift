import Foundation
import Logging
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct ReceiverTests {
    @Test
    func `a port that is taken is an error that says so in the system's words`() async throws {
        try await withReceiver { running in
            try await withTemporaryDirectory { directory in
                var receiver = Receiver(directory: directory)
                receiver.port = running.port
                let taken = receiver
                await #expect(throws: Errno.addressInUse) { () async throws -> Void in try await taken.run() }
            }
        }
    }

    @Test func `a receiver whose task is cancelled shuts down, even if clients have just connected`() async throws {
        try await withTemporaryDirectory { directory in
            var receiver = Receiver(directory: directory)
            receiver.port = 0
            receiver.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let cancelled = receiver
            for _ in 0..<5 {
                let (addresses, continuation) = AsyncStream<String>.makeStream()
                let run = Task {
                    defer { continuation.finish() }
                    try await cancelled.run { continuation.yield($0) }
                }
                let port = try #require(await addresses.first { _ in true }.flatMap { URL(string: $0)?.port })
                let clients = try await onThread { try (0..<64).map { _ in try RawSocket(port: port) } }
                run.cancel()
                try await run.value
                withExtendedLifetime(clients) {}
            }
        }
    }
}
