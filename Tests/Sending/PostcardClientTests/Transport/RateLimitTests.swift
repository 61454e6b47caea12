import Foundation
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct RateLimitTests {
    /// A clock that sleeps until it is cancelled, and says when it begins to.
    private struct EndlessClock: Clock {
        let inner = ContinuousClock()
        let asleep: AsyncStream<Void>.Continuation

        var now: ContinuousClock.Instant { inner.now }
        var minimumResolution: Duration { inner.minimumResolution }

        func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
            asleep.yield()
            try await Task.sleep(for: .seconds(86_400))
        }
    }

    private static func form(in folder: TemporaryFolder) throws -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: try folder.file("a.bin", size: 5_000), named: "file")
        form.append(SendingTests.stream(of: 1, length: nil), named: "log", filename: "log.txt")
        return form
    }

    @Test(arguments: Carrier.allCases)
    func `a form is sent no faster than its limit, byte for byte`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let clock = ManualClock()
        let body = try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created")
        } while: { server in
            var client = UploadClient(transport: carrier.transport())
            client.network.rateLimit = RateLimit(bytesPerSecond: 1_000, clock: clock)
            try await client.upload(form, to: server.url)
            return try #require(server.requests.whole.first?.body)
        }
        #expect(body == (try await form.layout().bytes()))
        // All but the two bursts that need not wait.
        let least = Duration.milliseconds(body.count - 100)
        let seconds = clock.now.sinceStart
        #expect(least - .milliseconds(50) <= seconds && seconds <= .milliseconds(body.count))
    }

    @Test(arguments: Carrier.allCases)
    func `the uploads of a client share its limit`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let clock = ManualClock()
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil { try await connection.respond("201 Created") }
        } while: { server in
            var client = UploadClient(transport: carrier.transport())
            client.network.rateLimit = RateLimit(bytesPerSecond: 10_000, clock: clock)
            let limited = client
            try await withThrowingTaskGroup { group in
                for _ in 0..<4 { group.addTask { try await limited.upload(form, to: server.url) } }
                try await group.waitForAll()
            }
            let bytes = server.requests.whole.map(\.body.count).reduce(0, +)
            #expect(bytes > 60_000)
            #expect(clock.now.sinceStart >= .milliseconds((bytes - 1_000) / 10 - 500))
        }
    }

    @Test(arguments: Carrier.allCases)
    func `an upload that waits for its turn can be cancelled`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let (asleep, clockSleeps) = AsyncStream.makeStream(of: Void.self)
        try await RawServer.run { connection in
            guard let head = try await connection.readHead() else { return }
            #expect(try await connection.readBody(of: head) == nil)
        } while: { server in
            var client = UploadClient(transport: carrier.transport())
            client.network.rateLimit = RateLimit(bytesPerSecond: 100, clock: EndlessClock(asleep: clockSleeps))
            let limited = client
            let upload = Task { try await limited.upload(form, to: server.url) }
            for await _ in asleep { break }
            upload.cancel()
            await #expect(throws: CancellationError.self) { try await upload.value }
        }
    }
}
