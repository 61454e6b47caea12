import Foundation
import HTTPTypes
import PostcardReceiver
import PostcardReceivingSupport
import PostcardTestSupport
import SystemPackage
import Testing

@testable import PostcardReception
@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct IdempotencyTests {
    private static func request(_ keys: String..., body: String = Form.small, fields: [String] = []) -> String {
        Form.request(body: body, fields: keys.map { "Idempotency-Key: \($0)" } + fields)
    }

    private static func id(_ response: RawResponse) throws -> UploadID {
        #expect(response.status == 201)
        return try UploadRecord(json: Data(response.body.utf8)).id
    }

    @Test func `a repeated key is answered as the first time, whatever the boundary and the quotes around the key`()
        async throws
    {
        try await withReceiver { receiver in
            let first = try await receiver.exchange(Self.request("\"a-key\""))
            let again = try await receiver.exchange(Self.request("a-key"))
            #expect(first.body == again.body)
            #expect(first.headers["location"] == again.headers["location"])
            let reframed = Form.request(
                body: Form.small.replacing("--b", with: "--other"),
                contentType: "Content-Type: multipart/form-data; boundary=other", fields: ["Idempotency-Key: a-key"])
            #expect(try await receiver.exchange(reframed).body == first.body)
            #expect(try receiver.records.count == 1)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test func `a key names the same record with any token, unless the scope depends on it`() async throws {
        for (keyScope, count): (@Sendable (HTTPFields) -> String, Int) in [
            ({ _ in "" }, 1), ({ $0[.authorization] ?? "" }, 2),
        ] {
            try await withReceiver({ $0.uploads.keyScope = keyScope }) { receiver in
                for token in ["old", "new"] {
                    _ = try Self.id(
                        await receiver.exchange(Self.request("k", fields: ["Authorization: Bearer \(token)"])))
                }
                let records = try receiver.records
                #expect(records.count == count)
            }
        }
    }

    @Test func `another form under a known key is refused with 422 and leaves nothing behind`() async throws {
        try await withReceiver { receiver in
            _ = try Self.id(await receiver.exchange(Self.request("k")))
            let other = try await receiver.exchange(Self.request("k", body: Form.fileHeader + "content" + Form.end))
            #expect(other.status == 422)
            #expect(other.problem?.code == "idempotency-key-reused")
            #expect(try receiver.records.count == 1)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test func `fifty requests of one key at once make one record`() async throws {
        try await withReceiver { receiver in
            let body = Form.fileHeader + String(repeating: "x", count: 300_000) + Form.end
            let ids = try await withThrowingTaskGroup { group in
                for _ in 0..<50 {
                    group.addTask { try Self.id(await receiver.exchange(Self.request("k", body: body))) }
                }
                return try await group.reduce(into: Set<UploadID>()) { $0.insert($1) }
            }
            #expect(ids.count == 1)
            #expect(try receiver.records == ids.map(\.text))
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test func `a key is known across a restart, and free once its record is deleted`() async throws {
        try await withTemporaryDirectory { directory in
            var first: UploadID?
            try await withReceiver(in: directory) { receiver in
                first = try Self.id(await receiver.exchange(Self.request("k")))
            }
            try await withReceiver(in: directory) { receiver in
                let again = try Self.id(await receiver.exchange(Self.request("k")))
                #expect(again == first)
                _ = try await receiver.curl("-X", "DELETE", "\(receiver.url)/uploads/\(again)")
                let second = try Self.id(await receiver.exchange(Self.request("k")))
                #expect(second != first)
                #expect(try receiver.records == [second.text])
            }
        }
    }

    @Test func `a retry may come while the first request is still being received, and whichever ends first is kept`()
        async throws
    {
        try await withReceiver { receiver in
            let request = Array(Self.request("k").utf8)
            let port = receiver.port
            let slow = try await onThread {
                let socket = try RawSocket(port: port)
                try socket.send(Array(request.dropLast(20)))
                return Unsent(socket: socket, rest: Array(request.suffix(20)))
            }
            let retried = try Self.id(await receiver.exchange(Self.request("k")))
            let first = try await onThread {
                try slow.socket.send(slow.rest)
                return try RawResponse(slow.socket.receiveAll())
            }
            #expect(try Self.id(first) == retried)
            #expect(try receiver.records == [retried.text])
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test func `a request that is aborted once all of it is sent makes one record with its retries`() async throws {
        try await withReceiver { receiver in
            let body = Form.fileHeader + String(repeating: "x", count: 300_000) + Form.end
            for number in 0..<50 {
                let port = receiver.port
                let request = Self.request("k\(number)", body: body)
                try await onThread {
                    let socket = try RawSocket(port: port)
                    try socket.send(request)
                    // Some are gone at once, and some while the form is stored.
                    if number % 2 == 0 { _ = socket.hasReceived(within: Int32(number % 5)) }
                    socket.abort()
                }
                let retried = try Self.id(await receiver.exchange(request))
                #expect(try Self.id(await receiver.exchange(request)) == retried)
            }
            #expect(try receiver.records.count == 50)
            try await eventually { try receiver.incoming.isEmpty }
        }
    }

    @Test func `an upload that failed leaves its key to the next`() async throws {
        try await withReceiver { receiver in
            let refused = try await receiver.exchange(Self.request("k", body: Form.fileHeader + "cut off"))
            #expect(refused.status == 400)
            _ = try Self.id(await receiver.exchange(Self.request("k")))
        }
    }

    @Test func `a repetition is counted apart from what was received`() async throws {
        try await withReceiver { receiver in
            for _ in 0..<3 { _ = try Self.id(await receiver.exchange(Self.request("k"))) }
            _ = try Self.id(await receiver.exchange(Form.request(body: Form.small)))
            let status = try await receiver.curl("\(receiver.url)/status").text
            #expect(status.contains("\"received\":2,") && status.contains("\"repeated\":2,"))
        }
    }

    private static let longest = String(repeating: "k", count: 255)

    /// Values of the header field, and the keys in them; `nil` where there is none.
    private static let keys: [(value: String, key: String?)] = [
        ("k", "k"), ("!~", "!~"), ("\"!~\"", "!~"), ("a\"b\\c", "a\"b\\c"),
        (#""a\"b\\c""#, #"a"b\c"#), (#""\"""#, "\""), (#""\\""#, "\\"),
        (longest, longest), ("\"\(longest)\"", longest), (longest + "k", nil), ("\"\(longest)k\"", nil),
        ("", nil), ("\"", nil), ("\"\"", nil), ("\"a", nil), ("\"a\"b\"", nil), ("\"a\\b\"", nil), ("\"a\\\"", nil),
        ("a b", nil), ("\"a b\"", nil), ("a\u{1F}", nil), ("a\u{7F}", nil), ("ké", nil),
    ]

    @Test(arguments: keys)
    func `a key is visible ASCII, in quotes with two escapes or without`(value: String, key: String?) {
        #expect(UploadKey.text(of: value) == key)
    }

    @Test(arguments: [
        ["a", "b"], ["\"\""], ["\"a"], ["\"a\"b\""], ["\"a\\b\""], ["a b"], [String(repeating: "k", count: 256)],
        ["ké"],
    ])
    func `a key that is none is refused`(keys: [String]) async throws {
        try await withReceiver { receiver in
            let fields = keys.map { "Idempotency-Key: \($0)" }
            let response = try await receiver.exchange(Form.request(body: Form.small, fields: fields))
            #expect(response.status == 400)
            #expect(response.problem?.code == "malformed-idempotency-key")
            #expect(try receiver.records.isEmpty)
        }
    }
}

/// A connection over which a request is sent in part.
private struct Unsent: @unchecked Sendable {
    // One thread at a time has it.
    let socket: RawSocket
    let rest: [UInt8]
}
