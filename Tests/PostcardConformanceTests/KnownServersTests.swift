import Foundation
import PostcardTestSupport
import Testing

@testable import PostcardConformance

/// What the suite finds in servers that exist.
@Suite(.timeLimit(.minutes(15))) struct KnownServersTests {
    /// What `postcard serve` does otherwise than the draft says, and why.
    private static let deviationsOfServe: [Int: String] = [:]

    /// What the server of swift-nio-extras does otherwise: it has the texts of older versions.
    private static let deviationsOfSwiftNIO: [Int] = []

    @Test func `postcard serve violates nothing but what is listed with a reason`() async throws {
        let server = try await ReceivingServer()
        let address = try #require(ServerAddress(server.uploads.absoluteString))
        let report = try await ConformanceSuite(server: address).run()
        let violated = report.results.filter { $0.outcome == .violated }
        for result in violated where Self.deviationsOfServe[result.check.number] == nil {
            Issue.record("\(result.check.number) \(result.check.level) \(result.check.sentence): \(result.seen)")
        }
        for number in Self.deviationsOfServe.keys where !violated.contains(where: { $0.check.number == number }) {
            Issue.record("\(number) is right by now")
        }
        for result in report.results where result.outcome == .unchecked {
            Issue.record("\(result.check.number) could not be checked: \(result.seen)")
        }
        _ = try await server.end()
    }

    @Test func `the server of swift-nio-extras violates what it was not written for`() async throws {
        let report = try await ResumableUploadServer.run { address in
            var suite = ConformanceSuite(server: address)
            suite.content = .octets
            return try await suite.run()
        }
        let violated = report.results.filter { $0.outcome == .violated }.map(\.check.number)
        #expect(Set(violated).isSuperset(of: Self.deviationsOfSwiftNIO))
        #expect(!report.conforms)
    }
}
