import Foundation
import HTTPTypes
import NIOCore
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

@testable import PostcardReceiver
@testable import PostcardReception
@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct LiveEventsTests {
    private static func account(_ listeners: Int = 64, clientShare: Double = 1) -> ShareAccount {
        var options = UploadOptions()
        options.clientShare = clientShare
        var limits = ShareLimits(options, connections: 100)
        limits[.listeners] = listeners
        return ShareAccount(limits)
    }

    private static func id(_ number: Int) throws -> UploadID {
        let text = String(number)
        return try #require(UploadID(String(repeating: "0", count: 26 - text.count) + text))
    }

    @Test
    func `received and deleted uploads are published as they happen, with their requests`() async throws {
        try await withReceiver { receiver in
            let listener = try await EventListener.listening(to: receiver)
            let response = try await receiver.curl("-F", "이름=초코", "\(receiver.url)/uploads")
            let record = try UploadRecord(json: response.output)
            let told = try await onThread { try listener.text(until: "event: request\n", and: "\n\n") }
            #expect(told.contains("event: uploaded\ndata: \(response.text)\n\n"))
            #expect(told.contains("\"upload\":\"\(record.id)\""))
            _ = try await receiver.curl("-X", "DELETE", receiver.url + record.url)
            let deletion = try await onThread { try listener.text(until: "event: deleted\n", and: "\n\n") }
            #expect(deletion.contains("data: {\"id\":\"\(record.id)\"}"))
        }
    }

    @Test func `an upload that was deleted before its request ended is not announced`() async throws {
        let live = LiveEvents(shares: Self.account())
        func record(_ number: Int) throws -> UploadRecord {
            UploadRecord(id: try Self.id(number), received: Date(), fields: [], files: [], parts: [])
        }
        // Before the first listener.
        live.publish(.deleted(try Self.id(1)))
        let (events, listener) = try live.listen(on: nil)
        live.publish(.deleted(try Self.id(2)))
        for number in 1...3 { live.publish(.uploaded(try record(number))) }
        live.publish(.deleted(try Self.id(3)))
        live.publish(.uploaded(try record(3)))
        listener.finish()
        var told: [String] = []
        for await event in events { told.append(String(String(buffer: event).prefix { $0 != "\n" })) }
        #expect(told == ["event: deleted", "event: uploaded", "event: deleted"])
    }

    @Test func `a proxy is asked not to buffer events, and what it buffers anyway is filled at once`() async throws {
        try await withReceiver { receiver in
            let port = receiver.port
            let beginning = try await onThread {
                let socket = try RawSocket(port: port)
                try socket.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
                return try socket.receive(until: ": listening\n\n")
            }
            let response = try RawResponse(Array(beginning.utf8))
            #expect(response.headers["x-accel-buffering"] == "no")
            #expect(response.headers["cache-control"] == "no-store")
            #expect(response.body.utf8.count > 2 << 10)
            // Everything before is a comment, which clients ignore.
            #expect(response.body.contains("\n\n") && !response.body.contains("event:"))
        }
    }

    @Test func `the listeners of many clients of a proxy have room, and those of one leave it`() async throws {
        try await withReceiver({ $0.connections.trustedProxies = ["127.0.0.1"].compactMap { TrustedProxy($0) } }) {
            receiver in
            let port = receiver.port
            func listening(for client: Int) async throws -> (socket: RawSocket, head: String) {
                try await onThread {
                    let socket = try RawSocket(port: port)
                    try socket.send("GET /events HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.\(client)\r\n\r\n")
                    return (socket, try socket.receive(until: "\r\n\r\n"))
                }
            }
            var open: [RawSocket] = []
            for client in 1...40 {
                let next = try await listening(for: client)
                #expect(next.head.contains(" 200 "))
                open.append(next.socket)
            }
            var last = try await listening(for: 100)
            while last.head.contains(" 200 ") {
                open.append(last.socket)
                last = try await listening(for: 100)
            }
            #expect(last.head.contains(" 429 "))
            #expect(try await listening(for: 101).head.contains(" 200 "))
        }
    }

    @Test func `an upload that is sent again under its key is published once`() async throws {
        try await withReceiver { receiver in
            let listener = try await EventListener.listening(to: receiver)
            let request = Form.request(body: Form.small, fields: ["Idempotency-Key: k"])
            let first = try await receiver.exchange(request)
            _ = try await receiver.exchange(request)
            _ = try await receiver.curl("-X", "DELETE", receiver.url + (first.headers["location"] ?? ""))
            let told = try await onThread { try listener.text(until: "event: deleted\n", and: "\n\n") }
            #expect(told.components(separatedBy: "event: uploaded\n").count == 2)
            #expect(told.components(separatedBy: "event: request\n").count == 3)
        }
    }

    @Test
    func `a listener does not keep the receiver from ending`() async throws {
        try await withReceiver { receiver in
            let listener = try await EventListener.listening(to: receiver)
            await receiver.shutDown()
            // The last chunk, and then the end of the connection.
            #expect(try await onThread { try listener.rest() }.hasSuffix("0\r\n\r\n"))
        }
    }

    @Test
    func `there is room for a number of listeners, and for another one when one is gone`() throws {
        let live = LiveEvents(shares: Self.account(2))
        let first = try live.listen(on: nil)
        let second = try live.listen(on: nil)
        #expect {
            try live.listen(on: nil)
        } throws: {
            ($0 as? UploadProblem)?.code == "too-many-listeners" && ($0 as? UploadProblem)?.retryAfterSeconds != nil
        }
        first.listener.finish()
        _ = try live.listen(on: nil)
        _ = second
    }

    @Test(.enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."))
    func `the listeners of one address leave room for another`() async throws {
        try await withReceiver { receiver in
            let port = receiver.port
            func listening(from address: String) async throws -> (socket: RawSocket, head: String) {
                try await onThread {
                    let socket = try RawSocket(port: port, from: address)
                    try socket.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
                    return (socket, try socket.receive(until: "\r\n\r\n"))
                }
            }
            var open: [RawSocket] = []
            var last = try await listening(from: "127.0.0.1")
            while last.head.contains(" 200 ") {
                open.append(last.socket)
                last = try await listening(from: "127.0.0.1")
            }
            #expect(open.count == 29)
            #expect(last.head.contains(" 429 "))
            // It may have arrived with its head.
            var body = last.head
            if !body.hasSuffix("}\n") {
                body += try await onThread { [socket = last.socket] in try socket.receive(until: "}\n") }
            }
            #expect(body.contains("too-many-listeners-of-client"))
            #expect(body.contains("{\"name\":\"maximumListenersOfClient\",\"value\":29}"))
            #expect(try await listening(from: "127.0.0.2").head.contains(" 200 "))
        }
    }

    @Test
    func `a listener that is too far behind is disconnected after the waiting events`() async throws {
        let live = LiveEvents(shares: Self.account(1), maximumWaitingEvents: 3)
        let (events, _) = try live.listen(on: nil)
        for index in 0..<5 { live.publish(.deleted(try Self.id(index))) }
        var count = 0
        for await event in events {
            #expect(String(buffer: event).hasPrefix("event: deleted\n"))
            count += 1
        }
        #expect(count == 3)
        _ = try live.listen(on: nil)
    }

    @Test func `a listener for which too many bytes wait is disconnected, and bytes that were read do not count`()
        async throws
    {
        let bytes = try #require(LiveEvent.deleted(try Self.id(0)).message).readableBytes
        let live = LiveEvents(shares: Self.account(), maximumWaitingBytes: 3 * bytes)
        let (events, _) = try live.listen(on: nil)
        var reader = events.makeAsyncIterator()
        for index in 0..<10 {
            live.publish(.deleted(try Self.id(index)))
            #expect(await reader.next() != nil)
        }
        for index in 10..<15 { live.publish(.deleted(try Self.id(index))) }
        for _ in 0..<3 { #expect(await reader.next() != nil) }
        #expect(await reader.next() == nil)
    }

    @Test func `a very long record disconnects listeners instead of being published`() async throws {
        let live = LiveEvents(shares: Self.account())
        let (events, _) = try live.listen(on: nil)
        for (index, count) in [10, 1 << 20, 10].enumerated() {
            let field = UploadRecord.Field(name: "a", value: String(repeating: "x", count: count))
            live.publish(
                .uploaded(UploadRecord(id: try Self.id(index), received: Date(), fields: [field], files: [])))
        }
        let count = await events.reduce(into: 0) { count, _ in count += 1 }
        #expect(count == 1)
    }
}
