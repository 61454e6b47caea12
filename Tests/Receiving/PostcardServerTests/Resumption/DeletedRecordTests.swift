import Foundation
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct DeletedRecordTests {
    /// Deletes the first record that appears, as soon as it can be deleted.
    private static func deleteRecord(of receiver: RunningReceiver) async throws -> Int {
        try await onThread {
            let deadline = ContinuousClock.now + .seconds(100)
            var record: String?
            while record == nil, .now < deadline { record = try receiver.records.first }
            let path = "/uploads/" + (try #require(record))
            var status = 404
            while status == 404, .now < deadline {
                let socket = try RawSocket(port: receiver.port)
                try socket.send("DELETE \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                status = try RawResponse(socket.receiveAll()).status
            }
            return status
        }
    }

    @Test func `a record that is deleted before its response is kept leaves none`() async throws {
        try await withCurlSender { sender, receiver in
            for _ in 0..<10 {
                let body = Form.small.utf8
                let created = try await sender.create(body, isComplete: false)
                let location = try #require(created.head.fields["location"])
                async let deletion = Self.deleteRecord(of: receiver)
                let last = try await sender.append([], at: Int64(body.count), isComplete: true, to: location)
                #expect(last.status == 201)
                #expect(try await deletion == 204)
                #expect(try await sender.head(location).status == 404)
            }
            #expect(try receiver.records.isEmpty)
            #expect(receiver.unfinished.isEmpty)
        }
    }
}
