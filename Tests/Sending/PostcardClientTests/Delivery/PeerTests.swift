import Crypto
import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardWire
import PostcardSendingSupport
import PostcardTestSupport
import Testing

/// Servers that other projects wrote, with forms as large as a film: `POSTCARD_PEER_MB` says how large, by default 4.
@Suite(.timeLimit(.minutes(15))) struct PeerTests {
    private static let megabytes = ProcessInfo.processInfo.environment["POSTCARD_PEER_MB"].flatMap { Int($0) } ?? 4

    @Test(arguments: Carrier.allCases, [ResumptionVersion.interop3, .interop5, .interop6])
    func `a form with two breaks arrives whole at the server of swift-nio-extras`(
        carrier: Carrier, version: ResumptionVersion
    ) async throws {
        let folder = try TemporaryFolder()
        let size = Self.megabytes * 1_000_000
        var form = MultipartForm()
        form.append(fileAt: try folder.file("film.mov", size: size), named: "film")
        let body = try await form.layout().bytes()
        let cuts = Cuts(at: [size / 3, size / 4 * 3])
        let sent = form
        try await ReferenceServer.run { server in
            try await FaultProxy.run(before: server.url) {
                cuts.fault(of: $0)
            } while: { proxy in
                let response = try await ResumptionTests.client(carrier, [version]).upload(sent, to: proxy.uploads)
                #expect(response.status == .created && response.attempts == 3)
                #expect(cuts.left == 0)
                #expect(Set(proxy.seen.compactMap { $0["Idempotency-Key"] }).count == 1)
            }
            #expect(server.received.map(\.sha256) == [Array(SHA256.hash(data: body))])
        }
    }
}
