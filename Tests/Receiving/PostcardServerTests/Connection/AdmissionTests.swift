import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import SystemPackage
import Testing

/// Stalled requests and unused connections leave room for other clients.
@Suite(.timeLimit(.minutes(10)))
struct AdmissionTests {
    private static let large = Form.fileHeader + String(repeating: "x", count: 200_000) + Form.end
    private static let asking = Form.head(contentLength: large.utf8.count, fields: ["Expect: 100-continue"])

    /// Starts an upload whose head the server reads, and sends some bytes of its body, or none.
    private static func stalled(
        at receiver: RunningReceiver, after beginning: String, from address: String = "127.0.0.1"
    ) async throws -> RawSocket {
        try await onThread { [port = receiver.port] in
            let socket = try RawSocket(port: port, from: address)
            try socket.send(asking)
            _ = try socket.receive(until: "100 Continue\r\n\r\n")
            try socket.send(beginning)
            return socket
        }
    }

    private static func upload(to receiver: RunningReceiver, from address: String) async throws -> RawResponse {
        try await onThread { [port = receiver.port] in
            let socket = try RawSocket(port: port, from: address)
            try socket.send(Form.request(body: Form.small))
            return try RawResponse(socket.receiveAll())
        }
    }

    @Test func `requests without a body leave room for another upload`() async throws {
        try await withReceiver {
            $0.uploads.maximumConcurrentUploads = 2
            $0.uploads.clientShare = 1
        } _: { receiver in
            var idle: [RawSocket] = []
            for _ in 0..<6 { idle.append(try await Self.stalled(at: receiver, after: "")) }
            #expect(try await receiver.exchange(Form.request(body: Form.small)).status == 201)
            #expect(try receiver.incoming.isEmpty)
            let response = try await onThread { [socket = idle[0]] in
                try socket.send(Self.large)
                return try socket.receive(until: "\r\n\r\n")
            }
            #expect(response.contains("HTTP/1.1 201"))
        }
    }

    @Test func `a form for which there is no room is refused before its body is asked for`() async throws {
        try await withReceiver {
            $0.uploads.maximumConcurrentUploads = 1
            $0.uploads.clientShare = 1
        } _: { receiver in
            var stalled = try await Self.stalled(at: receiver, after: "-")
            while try await Self.upload(to: receiver, from: "127.0.0.1").status == 201 {
                // The server may not have read the start of the stalled upload yet, or has refused it because of the
                // form that was sent meanwhile.
                if stalled.isReadable { stalled = try await Self.stalled(at: receiver, after: "-") }
            }
            let socket = try RawSocket(port: receiver.port)
            try await socket.send(Self.asking)
            #expect(try await socket.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 503"))
            stalled.abort()
        }
    }

    @Test func `HTTP2 streams without a body leave room for another upload`() async throws {
        try await withSecureReceiver {
            $0.uploads.maximumConcurrentUploads = 2
            $0.uploads.clientShare = 1
        } _: { receiver, _ in
            let fields: RawStreams.Fields = [
                (":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", "/uploads"),
                ("content-type", "multipart/form-data; boundary=b"), ("expect", "100-continue"),
            ]
            try await RawStreams.connect(to: receiver.port) { streams in
                for stream in stride(from: UInt32(1), to: 20, by: 2) {
                    try await streams.send(fields, on: stream, endsStream: false)
                    try await streams.interimResponse(on: stream)
                }
                try await streams.send(fields.dropLast(), on: 21, endsStream: false)
                try await streams.send(Form.small, on: 21)
                guard case .body(let record) = try await streams.response(on: 21) else {
                    Issue.record("The upload was reset.")
                    return
                }
                #expect(try UploadRecord(json: Data(record.utf8)).fields.map(\.value) == ["value"])
            }
        }
    }

    @Test(.enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."))
    func `HTTP2 streams beyond an address's share of requests are refused, and leave room for another address`()
        async throws
    {
        try await withSecureReceiver {
            $0.uploads.maximumConcurrentRequests = 8
        } _: { receiver, _ in
            let fields: RawStreams.Fields = [
                (":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", "/uploads"),
                ("content-type", "multipart/form-data; boundary=b"),
            ]
            try await RawStreams.connect(to: receiver.port) { streams in
                for stream: UInt32 in [1, 3] {
                    try await streams.send(fields + [("expect", "100-continue")], on: stream, endsStream: false)
                    try await streams.interimResponse(on: stream)
                }
                try await streams.send(fields, on: 5, endsStream: false)
                guard case .body(let problem) = try await streams.response(on: 5) else {
                    Issue.record("The refused stream was reset.")
                    return
                }
                #expect(problem.contains(#""code":"too-many-requests-of-client""#))
                #expect(problem.contains(#"{"name":"maximumConcurrentRequestsOfClient","value":2}"#))
                try await RawStreams.connect(to: receiver.port, from: "127.0.0.2") { other in
                    try await other.send(fields, on: 1, endsStream: false)
                    try await other.send(Form.small, on: 1)
                    guard case .body(let record) = try await other.response(on: 1) else {
                        Issue.record("The upload was reset.")
                        return
                    }
                    #expect(try UploadRecord(json: Data(record.utf8)).fields.map(\.value) == ["value"])
                }
            }
        }
    }

    @Test(.enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."))
    func `the stalled uploads of one address leave room for another address`() async throws {
        try await withReceiver({ $0.uploads.maximumConcurrentUploads = 8 }) { receiver in
            var stalled: [RawSocket] = []
            for _ in 1...2 { stalled.append(try await Self.stalled(at: receiver, after: "-")) }
            var refused = try await Self.upload(to: receiver, from: "127.0.0.1")
            while refused.status == 201 {
                // The server may not have read the start of a stalled upload yet, or has refused it because of the form
                // that was sent meanwhile.
                for index in stalled.indices where stalled[index].isReadable {
                    stalled[index] = try await Self.stalled(at: receiver, after: "-")
                }
                refused = try await Self.upload(to: receiver, from: "127.0.0.1")
            }
            #expect(refused.status == 429)
            #expect(refused.problem?.code == "too-many-uploads-of-client")
            #expect(refused.problem?.limit?.name == "maximumConcurrentUploadsOfClient")
            #expect(refused.problem?.limit?.value == 2)
            #expect(refused.headers["retry-after"] == "5")
            #expect(try await Self.upload(to: receiver, from: "127.0.0.2").status == 201)
            stalled.removeAll()
            try await Self.untilStored(at: receiver)
            try await eventually { try receiver.incoming.isEmpty }
        }
    }

    @Test func `a stalled upload leaves room for others once its client has been idle for too long`() async throws {
        try await withReceiver {
            $0.uploads.maximumConcurrentUploads = 4
            // The other clients have to keep it on a busy machine too.
            $0.connections.idleTimeout = .seconds(3)
        } _: { receiver in
            var refusal: RawResponse
            repeat {
                let stalled = try await Self.stalled(at: receiver, after: "-")
                try await Self.untilStored(at: receiver)
                refusal = try await RawResponse(stalled.receiveAll())
                // The server may have read the other client's form before the start of the stalled upload.
            } while refusal.problem?.code == "too-many-uploads-of-client"
            #expect(refusal.problem?.code == "too-slow")
        }
    }

    /// Sends forms until one is stored.
    private static func untilStored(at receiver: RunningReceiver) async throws {
        while try await upload(to: receiver, from: "127.0.0.1").status != 201 { try Task.checkCancellation() }
    }

    private static let health = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n"

    private static func answered(at receiver: RunningReceiver, from address: String) async throws -> RawSocket? {
        try await onThread { [port = receiver.port] in
            let socket = try RawSocket(port: port, from: address)
            do {
                try socket.send(health)
                _ = try socket.receive(until: "\r\n\r\nok")
                return socket
            } catch is Errno {
                return nil
            }
        }
    }

    @Test func `connections beyond the maximum wait until one is closed`() async throws {
        try await withReceiver {
            $0.maximumConnections = 2
            $0.uploads.clientShare = 1
        } _: { receiver in
            var open: [RawSocket?] = []
            for _ in 0..<2 { open.append(try await Self.answered(at: receiver, from: "127.0.0.1")) }
            #expect(open.allSatisfy { $0 != nil })
            let waiting = try RawSocket(port: receiver.port)
            try await waiting.send(Self.health)
            #expect(try await onThread { !waiting.hasReceived(within: 200) })
            open.removeFirst()
            let response = try await waiting.receive(until: "\r\n\r\nok")
            #expect(response.contains("200"))
        }
    }

    @Test(.enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."))
    func `the connections of one address leave room for another address`() async throws {
        try await withReceiver({ $0.maximumConnections = 8 }) { receiver in
            var open: [RawSocket?] = []
            for _ in 0..<2 { open.append(try await Self.answered(at: receiver, from: "127.0.0.1")) }
            #expect(open.allSatisfy { $0 != nil })
            #expect(try await Self.answered(at: receiver, from: "127.0.0.1") == nil)
            #expect(try await Self.answered(at: receiver, from: "127.0.0.2") != nil)
            open.removeAll()
            while try await Self.answered(at: receiver, from: "127.0.0.1") == nil { try Task.checkCancellation() }
        }
    }
}
