import Foundation
import Logging
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import SystemPackage
import Testing

/// Requests through proxies count for the clients that the proxies name.
@Suite(.timeLimit(.minutes(10)))
struct ProxiedConnectionTests {
    private static let proxy = ["127.0.0.1"].compactMap { TrustedProxy($0) }
    private static let health = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

    private static func form(for client: String, _ field: String = "X-Forwarded-For") -> String {
        Form.request(body: Form.small, fields: ["\(field): \(client)"])
    }

    /// Starts an upload for a client, and leaves it unfinished.
    private static func stalled(at receiver: RunningReceiver, for client: String) async throws -> RawSocket {
        try await onThread { [port = receiver.port] in
            let socket = try RawSocket(port: port)
            try socket.send(
                Form.head(contentLength: 200_000, fields: ["Expect: 100-continue", "X-Forwarded-For: \(client)"]))
            _ = try socket.receive(until: "100 Continue\r\n\r\n")
            try socket.send("-")
            return socket
        }
    }

    /// The clients in the log of what the body does, in order.
    private func clients(
        _ configure: (inout Receiver) -> Void, _ body: (RunningReceiver) async throws -> Void
    ) async throws -> [String] {
        let lines = CapturedLog.Lines()
        try await withReceiver {
            $0.logger = Logger(label: "test") { _ in CapturedLog(lines: lines) }
            configure(&$0)
        } _: { receiver in
            try await body(receiver)
        }
        return lines.all.filter { $0["method"] != nil }.map { $0["client"].map { "\($0)" } ?? "" }
    }

    @Test func `the client that a trusted proxy names is in the log, and otherwise the other end of the connection`()
        async throws
    {
        func requests(_ receiver: RunningReceiver) async throws {
            for field in ["X-Forwarded-For: 192.0.2.1, 203.0.113.9", "Forwarded: for=\"[2001:db8::1]:4711\""] {
                let response = try await receiver.exchange(Form.request(body: Form.small, fields: [field]))
                #expect(response.status == 201)
            }
            _ = try await receiver.exchange(Self.health)
            _ = try await receiver.exchange("GET / HTTP/1.1\r\nbroken\r\n\r\n")
        }
        let trusting = try await clients({ $0.connections.trustedProxies = Self.proxy }, requests)
        #expect(trusting == ["203.0.113.9", "2001:db8::1", "127.0.0.1", "127.0.0.1"])
        let other = try await clients({ $0.connections.trustedProxies = [TrustedProxy.unixSocket] }, requests)
        #expect(other == Array(repeating: "127.0.0.1", count: 4))
    }

    @Test func `the inspector shows the client that a trusted proxy names`() async throws {
        try await withReceiver({ $0.connections.trustedProxies = Self.proxy }) { receiver in
            _ = try await receiver.exchange(Self.form(for: "203.0.113.9"))
            let shown = try await receiver.curl("\(receiver.url)/requests/1")
            #expect(shown.text.contains(#""client":"203.0.113.9""#))
        }
    }

    @Test func `each client of a trusted proxy has a share of its own`() async throws {
        try await withReceiver {
            $0.connections.trustedProxies = Self.proxy
            $0.uploads.maximumConcurrentUploads = 8
        } _: { receiver in
            var stalled: [RawSocket] = []
            for _ in 1...2 { stalled.append(try await Self.stalled(at: receiver, for: "203.0.113.1")) }
            var refused: RawResponse
            repeat {
                // The server may not have read the start of a stalled upload yet.
                refused = try await receiver.exchange(Self.form(for: "203.0.113.1"))
                for index in stalled.indices where stalled[index].isReadable {
                    stalled[index] = try await Self.stalled(at: receiver, for: "203.0.113.1")
                }
            } while refused.status == 201
            #expect(refused.problem?.code == "too-many-uploads-of-client")
            #expect(try await receiver.exchange(Self.form(for: "203.0.113.2")).status == 201)
            // Whatever a client writes in front, the proxy adds its address.
            #expect(try await receiver.exchange(Self.form(for: "203.0.113.2, 203.0.113.1")).status == 429)
            withExtendedLifetime(stalled) {}
        }
    }

    @Test func `clients that name other addresses themselves share what their own address may have`() async throws {
        try await withReceiver({ $0.uploads.maximumConcurrentUploads = 8 }) { receiver in
            var stalled: [RawSocket] = []
            var refused: RawResponse
            repeat {
                let next = try? await Self.stalled(at: receiver, for: "203.0.113.\(stalled.count)")
                stalled += [next].compactMap { $0 }
                refused = try await receiver.exchange(Self.form(for: "203.0.113.200"))
            } while refused.status == 201 && stalled.count < 100
            #expect(refused.problem?.code == "too-many-uploads-of-client")
            withExtendedLifetime(stalled) {}
        }
    }

    @Test(arguments: [true, false])
    func `connections of a trusted proxy are not limited to the share of a client`(isTrusted: Bool) async throws {
        try await withReceiver {
            $0.maximumConnections = 8
            if isTrusted { $0.connections.trustedProxies = Self.proxy }
        } _: { receiver in
            let port = receiver.port
            let answered = try await onThread {
                var open: [RawSocket] = []
                for number in 0..<8 {
                    let socket = try RawSocket(port: port)
                    let request = "GET /health HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.\(number)\r\n\r\n"
                    guard (try? socket.send(request)) != nil,
                        (try? socket.receive(until: "\r\n\r\nok")) != nil
                    else { break }
                    open.append(socket)
                }
                return open.count
            }
            #expect(answered == (isTrusted ? 8 : 2))
        }
    }

    @Test func `the requests of one client of a proxy leave connections for others`() async throws {
        try await withReceiver {
            $0.connections.trustedProxies = Self.proxy
            $0.maximumConnections = 16
        } _: { receiver in
            var stalled: [RawSocket] = []
            var refused: RawResponse
            repeat {
                // The request before may still count, so that this one is refused.
                stalled += [try? await Self.stalled(at: receiver, for: "203.0.113.1")].compactMap { $0 }
                refused = try await receiver.exchange(Self.form(for: "203.0.113.1"))
            } while refused.status == 201 && stalled.count < 15
            #expect(refused.problem?.code == "too-many-requests-of-client")
            #expect(stalled.count < 8)
            #expect(try await receiver.exchange(Self.form(for: "203.0.113.2")).status == 201)
            withExtendedLifetime(stalled) {}
        }
    }

    // MARK: - PROXY protocol

    private static func exchange(
        _ bytes: [UInt8], with receiver: RunningReceiver, inPieces: Bool = false
    ) async throws -> RawResponse {
        guard inPieces else { return try await receiver.exchange(bytes) }
        return try await onThread { [port = receiver.port] in
            let socket = try RawSocket(port: port)
            for byte in bytes { try socket.send([byte]) }
            return try RawResponse(socket.receiveAll())
        }
    }

    @Test(arguments: [false, true])
    func `a PROXY header names the client of all requests of its connection`(inPieces: Bool) async throws {
        let two = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n" + Self.health
        let logged = try await clients({ $0.connections.usesProxyProtocol = true }) { receiver in
            for header in [
                ProxyHeaderBytes.v4(9), ProxyHeaderBytes.v6, ProxyHeaderBytes.header(command: 0x20, family: 0x00, []),
            ] {
                let response = try await Self.exchange(header + Array(two.utf8), with: receiver, inPieces: inPieces)
                #expect(response.text.components(separatedBy: "HTTP/1.1 200").count == 3)
            }
        }
        #expect(
            logged == ["203.0.113.9", "203.0.113.9", "2001:db8::1", "2001:db8::1", "127.0.0.1", "127.0.0.1"])
    }

    @Test func `a proxy that a PROXY header names may name its own client`() async throws {
        let request = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n"
        let logged = try await clients {
            $0.connections.usesProxyProtocol = true
            $0.connections.trustedProxies = ["127.0.0.1", "203.0.113.9"].compactMap { TrustedProxy($0) }
        } _: { receiver in
            for last: UInt8 in [8, 9] {
                _ = try await receiver.exchange(ProxyHeaderBytes.v4(last) + Array(request.utf8))
            }
        }
        #expect(logged == ["203.0.113.8", "192.0.2.7"])
    }

    @Test func `a connection without a valid PROXY header, or not from a trusted proxy, is closed with one line`()
        async throws
    {
        for trusted in ["127.0.0.1", "192.0.2.1"] {
            let lines = CapturedLog.Lines()
            try await withReceiver {
                $0.logger = Logger(label: "test") { _ in CapturedLog(lines: lines) }
                $0.connections.usesProxyProtocol = true
                $0.connections.trustedProxies = [trusted].compactMap { TrustedProxy($0) }
            } _: { receiver in
                let header = trusted == "127.0.0.1" ? [] : ProxyHeaderBytes.v4(9)
                for _ in 0..<3 {
                    let response = try? await receiver.exchange(header + Array(Self.health.utf8))
                    #expect(response?.text ?? "" == "")
                }
            }
            let refusals = lines.all.filter { $0["reason"] != nil }
            #expect(refusals.map { $0["count"] } == ["1"])
            #expect(refusals.first?["address"] == "127.0.0.1")
            #expect(lines.all.allSatisfy { $0["method"] == nil })
        }
    }

    @Test func `a connection that ends before its PROXY header leaves a line only if it began one`() async throws {
        let lines = CapturedLog.Lines()
        try await withReceiver {
            $0.logger = Logger(label: "test") { _ in CapturedLog(lines: lines) }
            $0.connections.usesProxyProtocol = true
        } _: { receiver in
            for beginning in [[], Array(ProxyHeaderBytes.signature.prefix(5))] {
                _ = try? await receiver.exchange(beginning, closingInput: true)
                let count = lines.all.filter { $0["reason"] != nil }.count
                #expect(count == (beginning.isEmpty ? 0 : 1))
            }
        }
    }

    @Test func `health checks that are over before their headers are read leave no line`() async throws {
        let lines = CapturedLog.Lines()
        try await withReceiver {
            $0.logger = Logger(label: "test") { _ in CapturedLog(lines: lines) }
            $0.connections.usesProxyProtocol = true
            $0.connections.trustedProxies = Self.proxy
        } _: { receiver in
            let port = receiver.port
            try await onThread {
                for _ in 0..<50 {
                    let socket = try RawSocket(port: port)
                    try socket.send(ProxyHeaderBytes.header(command: 0x20, family: 0x00, []))
                    socket.abort()
                }
            }
            let response = try await receiver.exchange(ProxyHeaderBytes.v4(9) + Array(Self.health.utf8))
            #expect(response.body == "ok")
        }
        #expect(lines.all.filter { $0["reason"] != nil }.isEmpty)
    }

    @Test func `each client that PROXY headers name has a share of the connections`() async throws {
        try await withReceiver {
            $0.connections.usesProxyProtocol = true
            $0.maximumConnections = 8
        } _: { receiver in
            let port = receiver.port
            let answered = try await onThread {
                var open: [RawSocket] = []
                for last: UInt8 in [1, 1, 1, 2] {
                    let socket = try RawSocket(port: port)
                    try socket.send(ProxyHeaderBytes.v4(last) + Array("GET /health HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                    if (try? socket.receive(until: "\r\n\r\nok")) != nil { open.append(socket) }
                }
                return open.count
            }
            #expect(answered == 3)
        }
    }

    @Test func `a PROXY header is read before the handshake of TLS`() async throws {
        let lines = CapturedLog.Lines()
        try await withSecureReceiver {
            $0.logger = Logger(label: "test") { _ in CapturedLog(lines: lines) }
            $0.connections.usesProxyProtocol = true
        } _: { receiver, _ in
            let fields: RawStreams.Fields = [
                (":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/health"),
            ]
            try await RawStreams.connect(to: receiver.port, beginning: ProxyHeaderBytes.v6) { streams in
                for stream: UInt32 in [1, 3] {
                    try await streams.send(fields, on: stream)
                    #expect(try await streams.response(on: stream) == .body("ok"))
                }
            }
        }
        #expect(lines.all.compactMap { $0["client"] } == ["2001:db8::1", "2001:db8::1"])
    }

    @Test func `streams of HTTP/2 count for the clients that a trusted proxy names`() async throws {
        let lines = CapturedLog.Lines()
        try await withSecureReceiver {
            $0.logger = Logger(label: "test") { _ in CapturedLog(lines: lines) }
            $0.connections.trustedProxies = Self.proxy
        } _: { receiver, _ in
            try await RawStreams.connect(to: receiver.port) { streams in
                for stream: UInt32 in [1, 3] {
                    let fields: RawStreams.Fields = [
                        (":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/health"),
                        ("x-forwarded-for", "203.0.113.\(stream)"),
                    ]
                    try await streams.send(fields, on: stream)
                    #expect(try await streams.response(on: stream) == .body("ok"))
                }
            }
        }
        #expect(lines.all.compactMap { $0["client"] } == ["203.0.113.1", "203.0.113.3"])
    }
}
