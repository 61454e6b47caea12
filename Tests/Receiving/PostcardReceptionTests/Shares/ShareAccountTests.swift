import HTTPTypes
import NIOCore
import NIOEmbedded
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

@testable import PostcardReception

@Suite(.timeLimit(.minutes(10)))
struct ShareAccountTests {
    private static func account(
        _ resource: SharedResource, _ total: Int, share: Double = 0.25, patience: Duration = .seconds(10)
    ) -> ShareAccount {
        var options = UploadOptions()
        options.clientShare = share
        var limits = ShareLimits(options, connections: 100)
        limits[resource] = total
        return ShareAccount(limits, patience: patience)
    }

    static let codes: [(resource: SharedResource, code: String, limit: String)] = [
        (.connections, "too-many-connections", "maximumConnections"),
        (.proxiedConnections, "too-many-connections", "maximumConnections"),
        (.requests, "too-many-requests", "maximumConcurrentRequests"),
        (.uploads, "too-many-uploads", "maximumConcurrentUploads"),
        (.textBytes, "too-much-text", "maximumHeldBytes"),
        (.unfinishedUploads, "too-many-unfinished-uploads", "maximumUnfinished"),
        (.unfinishedBytes, "too-many-unfinished-uploads", "maximumUnfinishedBytes"),
        (.responses, "too-many-answers", "maximumConcurrentRequests"),
        (.responseBytes, "too-many-answers", "maximumHeldResponseBytes"),
        (.listeners, "too-many-listeners", "maximumListeners"),
        (.screenings, "too-many-screenings", "maximumConcurrentScreenings"),
    ]

    @Test(arguments: codes)
    func `a refusal says whose share of what is used up, and when to try again`(
        resource: SharedResource, code: String, limit: String
    ) {
        let own = resource.shareUsedUp(limit: 7)
        #expect(own.status == .tooManyRequests)
        #expect(own.code.rawValue == code + "-of-client")
        #expect(own.limit == UploadProblem.Limit(name: limit + "OfClient", value: 7))
        let all = resource.usedUp(total: 100)
        #expect(all.status == .serviceUnavailable)
        #expect(all.code.rawValue == code)
        #expect(all.limit == UploadProblem.Limit(name: limit, value: 100))
        for problem in [own, all] { #expect(problem.head.headerFields[.retryAfter] != nil) }
    }

    @Test func `each refusal is counted once`() throws {
        for resource in SharedResource.allCases {
            let meter = UploadMeter()
            var limits = ShareLimits(clientShare: 1)
            limits[resource] = resource.unit
            let account = ShareAccount(limits, meter: meter)
            let hold = try account.take(resource.unit, of: resource, for: TestPeers.all[0])
            for _ in 0..<2 {
                #expect(throws: UploadProblem.self) { try account.take(of: resource, for: TestPeers.all[1]) }
            }
            #expect(meter.current.refused == 2, "\(resource)")
            withExtendedLifetime(hold) {}
        }
    }

    @Test func `what is held is given back with its object`() throws {
        let account = Self.account(.uploads, 8)
        do {
            let hold = try account.take(of: .uploads, for: TestPeers.all[0])
            try hold.grow(by: 2)
            #expect(account.free(of: .uploads) == 5)
            #expect(throws: UploadProblem.self) { try hold.grow(by: 2) }
        }
        #expect(account.free(of: .uploads) == 8)
    }

    @Test func `the oldest connection of the address that has most is closed for a newcomer, if it is old enough`()
        throws
    {
        for (patience, isClosed) in [(Duration.zero, true), (.seconds(3600), false)] {
            let account = Self.account(.requests, 3, patience: patience)
            let channels = (0..<3).map { _ in EmbeddedChannel() }
            for channel in channels { try channel.connect(to: SocketAddress(unixDomainSocketPath: "/a")).wait() }
            let holds = try zip([1, 0, 2], channels).map { peer, channel in
                try account.take(of: .requests, for: TestPeers.all[peer], on: channel)
            }
            let problem = #expect(throws: UploadProblem.self) { try account.take(of: .requests, for: TestPeers.all[3]) }
            #expect(problem?.code == "too-many-requests")
            for channel in channels { channel.embeddedEventLoop.run() }
            #expect(channels.map(\.isActive) == [!isClosed, true, true])
            // An address that has something is no newcomer.
            #expect(throws: UploadProblem.self) { try account.take(of: .requests, for: TestPeers.all[1]) }
            for channel in channels { channel.embeddedEventLoop.run() }
            #expect(channels.map(\.isActive) == [!isClosed, true, true])
            withExtendedLifetime(holds) {}
        }
    }

    @Test func `a task that is cancelled while it waits leaves what others hold to those behind it`() async throws {
        let account = Self.account(.screenings, 1)
        var holding: ShareAccount.Hold? = try await account.wait(for: 1...1, of: .screenings, for: nil).hold
        #expect(holding != nil)
        let cancelled = Task { _ = try await account.wait(for: 1...1, of: .screenings, for: nil) }
        try await eventually { account.waitingCount(for: .screenings) == 1 }
        let waiting = Task { _ = try await account.wait(for: 1...1, of: .screenings, for: nil) }
        try await eventually { account.waitingCount(for: .screenings) == 2 }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        holding = nil
        try await waiting.value
        #expect(account.free(of: .screenings) == 1)
    }
}
