import Foundation
import PostcardWire
import PostcardTestSupport
import Testing

@testable import PostcardConformance

/// What the suite finds in servers that exist.
@Suite(.timeLimit(.minutes(15))) struct KnownServersTests {
    private static func expect(_ report: ConformanceReport, toViolateOnly known: [Int: String]) {
        let violated = report.results.filter { $0.outcome == .violated }
        for result in violated where known[result.check.number] == nil {
            let check = result.check
            Issue.record("\(check.number) \(check.level.rawValue): \(check.sentence): \(result.seen)")
        }
        for number in known.keys.sorted() where !violated.contains(where: { $0.check.number == number }) {
            Issue.record("\(number) is not violated any more")
        }
        for result in report.results where result.outcome == .unchecked {
            Issue.record("\(result.check.number) could not be checked: \(result.seen)")
        }
    }

    private static func suite(for server: ReceivingServer) throws -> ConformanceSuite {
        var suite = ConformanceSuite(server: try #require(ServerAddress(server.uploads.absoluteString)))
        // Nothing is waited for that long, however busy the machine is.
        suite.settings.timeout = .seconds(60)
        suite.settings.quietTime = .milliseconds(200)
        return suite
    }

    @Test(arguments: [ResumptionVersion.interop3, .interop5, .interop6, .interop8, .interop9, .newest])
    func `postcard serve violates nothing in any version`(version: ResumptionVersion) async throws {
        let server = try await ReceivingServer()
        var suite = try Self.suite(for: server)
        suite.settings.version = version
        Self.expect(try await suite.run(), toViolateOnly: [:])
        _ = try await server.end()
    }

    @Test func `a limit with too many digits is left out`() async throws {
        let server = try await ReceivingServer("--max-body", "1000TB")
        let checks = ConformanceSuite.checks.filter { (301...325).contains($0.number) }
        Self.expect(try await Self.suite(for: server).run(checks), toViolateOnly: [:])
        _ = try await server.end()
    }

    /// What the server of swift-nio-extras does otherwise in the checks of MUST and MUST NOT: it was written for the
    /// versions 3, 5 and 6 of the draft.
    private static let deviationsOfSwiftNIO: [Int: String] = [
        202: "It drops the upload after an append at a wrong offset.",
        203: "It drops the upload after an append at a wrong offset.",
        676: "It drops the upload after an append at a wrong offset.",
        753: "It drops the upload after an append at a wrong offset.",
    ]

    @Test func `the server of swift-nio-extras violates what its versions of the draft do not say`() async throws {
        let numbers = Set(Self.deviationsOfSwiftNIO.keys)
        let report = try await ResumableUploadServer.run { address in
            var suite = ConformanceSuite(server: address)
            suite.content = .octets
            suite.settings.version = .interop6
            suite.settings.settlingTimes = [.milliseconds(150)]
            return try await suite.run(ConformanceSuite.checks.filter { numbers.contains($0.number) })
        }
        Self.expect(report, toViolateOnly: Self.deviationsOfSwiftNIO)
        #expect(!report.conforms)
    }
}
