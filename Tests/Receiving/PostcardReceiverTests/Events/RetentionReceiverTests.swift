import Foundation
import Logging
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Testing

@testable import PostcardReceiver

@Suite(.timeLimit(.minutes(10)))
struct RetentionReceiverTests {
    @Test func `the request of an upload that makes room for another is not shown any more`() async throws {
        try await withReceiver {
            $0.retention = RetentionPolicy()
            $0.retention?.maximumBytes = 150_000
        } _: { receiver in
            let form = Form.fileHeader + String(repeating: "x", count: 100_000) + Form.end
            let first = try await receiver.exchange(Form.request(body: form))
            let id = try #require(first.headers["location"]?.split(separator: "/").last)
            #expect(try await receiver.curl("\(receiver.url)/requests").text.contains(id))
            #expect(try await receiver.exchange(Form.request(body: form)).status == 201)
            try await eventually { try await !receiver.curl("\(receiver.url)/requests").text.contains(id) }
        }
    }

    @Test func `a download goes on while its upload makes room for another`() async throws {
        let log = CapturedLog.Lines()
        try await withReceiver {
            $0.retention = RetentionPolicy()
            $0.retention?.maximumBytes = 9_000_000
            $0.logger = Logger(label: "test") { _ in CapturedLog(lines: log) }
        } _: { receiver in
            let large = String(repeating: "x", count: 8_000_000)
            let form = Form.fileHeader + large + Form.end
            let first = try await receiver.exchange(Form.request(body: form))
            let path = try #require(first.headers["location"])
            let download = try await onThread {
                let socket = try RawSocket(port: receiver.port)
                try socket.send("GET \(path)/files/0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                return (socket, try socket.receive(upTo: 1000))
            }
            #expect(String(decoding: download.1, as: UTF8.self).hasPrefix("HTTP/1.1 200"))
            let second = try await receiver.exchange(Form.request(body: form))
            #expect(second.status == 201)
            try await eventually {
                try await receiver.curl("-o", "/dev/null", "-w", "%{http_code}", receiver.url + path).text == "404"
            }
            let rest = try await download.0.receiveAll()
            let response = String(decoding: download.1 + rest, as: UTF8.self)
            #expect(response.components(separatedBy: "\r\n\r\n").last == large)
            try await eventually {
                try await receiver.metrics()[#"postcard_uploads_removed_total{reason="quota"}"#] == 1
            }
            #expect(try await receiver.metrics()["postcard_stored_bytes"].map { 8_000_000..<8_100_000 ~= $0 } == true)
            let removed = log.all.filter { $0["reason"] == "quota" }
            #expect(removed.map { $0["upload"] } == [.string(String(path.split(separator: "/").last ?? ""))])
        }
    }

    @Test func `listeners learn that an upload was removed`() async throws {
        try await withReceiver {
            $0.retention = RetentionPolicy()
            $0.retention?.maximumBytes = 1
        } _: { receiver in
            let socket = try await onThread {
                let socket = try RawSocket(port: receiver.port)
                try socket.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
                _ = try socket.receive(until: ": listening\n\n")
                return socket
            }
            let first = try await receiver.exchange(Form.request(body: Form.small))
            _ = try await receiver.exchange(Form.request(body: Form.small))
            let events = try await socket.receive(until: "event: deleted")
            #expect(events.contains("event: uploaded"))
            #expect(first.status == 201)
        }
    }
}
