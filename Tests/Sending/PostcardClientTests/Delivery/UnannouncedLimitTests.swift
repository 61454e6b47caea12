import Foundation
import HTTPTypes
import PostcardForm
import PostcardWire
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardClient

/// Proxies with limits that no response names.
@Suite(.timeLimit(.minutes(10))) struct UnannouncedLimitTests {
    /// A server of resumable uploads behind a proxy that lets only small requests pass.
    private final class LimitedServer: Sendable {
        private let state = Mutex((bytes: [[UInt8]](), isWhole: false))
        private let limit: Int
        private let refusal: String?

        /// - Parameters:
        ///   - limit: The largest request that passes, in bytes.
        ///   - refusal: The status of the proxy's refusal; `nil` if it closes the connection.
        init(limit: Int, refusal: String?) {
            self.limit = limit
            self.refusal = refusal
        }

        /// The bodies of the uploads.
        var bodies: [[UInt8]] { state.withLock { $0.bytes } }

        func serve(_ connection: RawConnection) async throws {
            while let request = try await connection.readRequest() {
                guard request.body.count <= limit else {
                    guard let refusal else { return }
                    try await connection.respond(refusal, ["Server": "nginx"], body: "<html></html>")
                    continue
                }
                switch request.method {
                case "OPTIONS":
                    try await connection.respond("204 No Content", ["Accept-Patch": "application/partial-upload"])
                case "POST":
                    state.withLock { $0.bytes.append([]) }
                    try await connection.respond("201 Created", ["Location": "/uploads/a", "Upload-Complete": "?0"])
                case "HEAD":
                    let offset = state.withLock { $0.bytes.last?.count ?? 0 }
                    try await connection.respond(
                        "204 No Content", ["Upload-Offset": "\(offset)", "Upload-Complete": "?0"])
                case "DELETE": try await connection.respond("204 No Content")
                default:
                    let isLast = request.head["Upload-Complete"] == "?1"
                    state.withLock { state in
                        guard let last = state.bytes.indices.last else { return }
                        state.bytes[last] += request.body
                    }
                    try await connection.respond(
                        isLast ? "201 Created" : "204 No Content", ["Upload-Complete": isLast ? "?1" : "?0"])
                }
            }
        }
    }

    private static func client(_ carrier: Carrier) -> UploadClient {
        var client = ResumptionTests.client(carrier)
        client.resumption?.cautiousAppendBytes = 500...4_000
        return client
    }

    @Test(arguments: Carrier.allCases, ["413 Content Too Large", "502 Bad Gateway", nil])
    func `a form passes a limit that no one announced, and the next one knows the size that passed`(
        carrier: Carrier, refusal: String?
    ) async throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm()
        form.append(fileAt: try folder.file("a.jpg", size: 9_000), named: "image")
        let sent = form
        let body = try await form.layout().bytes()
        let limited = LimitedServer(limit: 3_000, refusal: refusal)
        let requests = try await RawServer.run { connection in
            try await limited.serve(connection)
        } while: { server in
            let client = Self.client(carrier)
            for _ in 0..<2 { try await client.upload(sent, to: server.url) }
            return server.requests.whole
        }
        #expect(limited.bodies == [body, body])
        let appends = requests.filter { $0.method == "PATCH" }.map(\.body.count)
        let refused = appends.filter { $0 > 3_000 }
        #expect(refused == [body.count, 4_000])
        let pieces = [Int](repeating: 2_000, count: body.count / 2_000) + [body.count % 2_000]
        #expect(appends.filter { $0 <= 3_000 } == pieces + pieces)
    }

    @Test(arguments: Carrier.allCases)
    func `a server that answers every append with 413 ends the upload with an error`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm()
        form.append(fileAt: try folder.file("a.jpg", size: 9_000), named: "image")
        let sent = form
        let limited = LimitedServer(limit: 0, refusal: "413 Content Too Large")
        let requests = try await RawServer.run { connection in
            try await limited.serve(connection)
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await Self.client(carrier).upload(sent, to: server.url)
            }
            #expect(error.response?.status.code == 413 && error.attempts == 1)
            return server.requests.whole
        }
        let length = try #require(try form.layout().contentLength)
        #expect(
            requests.filter { $0.method == "PATCH" }.map(\.body.count) == [Int(length), 4_000, 2_000, 1_000, 500])
        #expect(requests.count { $0.method == "HEAD" } == 4 && requests.count { $0.method == "POST" } == 1)
        // The server is asked for its limits before the upload is given up.
        #expect(requests.suffix(2).map(\.method) == ["OPTIONS", "DELETE"])
    }

    @Test func `what passes is known for all addresses of an origin, and what a server offers for one`() throws {
        let offers = ResumptionOffers()
        let url = try #require(URL(string: "https://example.org/a"))
        offers.note(.unlisted(inviting: nil), for: url)
        offers.note(appendBytes: 7, for: url)
        for (address, known) in [
            ("https://example.org/a", KnownServer(support: .unlisted(inviting: nil), appendBytes: 7)),
            ("https://EXAMPLE.org:443/b", KnownServer(appendBytes: 7)), ("https://example.com/a", KnownServer()),
        ] {
            #expect(offers.known(for: try #require(URL(string: address))) == known)
        }
    }

    @Test func `what a server offers is asked again after an hour, however often it was used`() throws {
        let offers = ResumptionOffers()
        let url = try #require(URL(string: "https://example.org/a"))
        let start = ContinuousClock.now
        for minutes in stride(from: 0, to: 60, by: 10) {
            offers.note(.unlisted(inviting: nil), for: url, at: start + .seconds(60 * minutes))
        }
        #expect(offers.known(for: url, at: start + .seconds(3599)).support.isUnlisted)
        #expect(offers.known(for: url, at: start + .seconds(3600)).support == .unknown)
    }
}
