import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardTestSupport
import SystemPackage
import Testing

@testable import PostcardReception
@testable import PostcardServer

/// How long a client may stop reading a response.
@Suite(.timeLimit(.minutes(10)))
struct ResponseStallTests {
    static let stalls: [(response: Int, connection: Int, isStream: Bool, rest: Int)] = [
        (0, 0, false, 30), (10, 10, false, 20), (30, 30, false, 0), (40, 45, false, -10),
        // With one response per connection, acknowledged bytes are progress, even if its next part is delayed.
        (500, 10, false, 20),
        (0, 0, true, 30), (10, 10, true, 20), (30, 30, true, 0),
        // Bytes of other streams, or queued before its own: a stream may wait for them, but not forever.
        (29, 0, true, 30), (40, 10, true, 20), (50, 0, true, 10), (60, 0, true, 0), (500, 0, true, -440),
        // Its own parts always count.
        (5, 500, true, 25),
    ]

    @Test(arguments: stalls)
    func `bytes read from a connection count for its only response, and with a limit for each stream`(
        response: Int, connection: Int, isStream: Bool, rest: Int
    ) {
        let stall = ResponseStall(response: .seconds(response), connection: .seconds(connection), isStream: isStream)
        #expect(stall.rest(of: .seconds(30)) == .seconds(rest))
    }

    private static func fileURL(
        bytes count: Int, at receiver: RunningReceiver, _ certificate: String
    ) async throws -> String {
        let file = receiver.directory.appending("..").appending("large.bin").string
        try Data(repeating: 0x78, count: count).write(to: URL(filePath: file))
        let response = try await receiver.curl(
            "--cacert", certificate, "-F", "f=@\(file)", "\(receiver.url)/uploads")
        return try UploadRecord(json: response.output).files[0].url
    }

    private static func asking(_ path: String) -> RawStreams.Fields {
        [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
    }

    @Test func `a stream that is read does not keep an unread stream open`() async throws {
        try await withSecureReceiver {
            // A busy machine may need more than a second for a handshake.
            $0.connections.idleTimeout = .seconds(5)
        } _: { receiver, certificate in
            let url = try await Self.fileURL(bytes: 24_000_000, at: receiver, certificate)
            try await RawStreams.connect(to: receiver.port, receiveBufferBytes: 32 << 10, window: 0) { streams in
                try await streams.openWindow(on: 0)
                for stream: UInt32 in [1, 3] { try await streams.send(Self.asking(url), on: stream) }
                try await streams.openWindow(on: 1)
                while !streams.hasResponse(on: 3) { try await streams.receive(pausing: 100) }
                guard case .reset = try await streams.response(on: 3) else {
                    Issue.record("The stream was not reset.")
                    return
                }
            }
        }
    }
}
