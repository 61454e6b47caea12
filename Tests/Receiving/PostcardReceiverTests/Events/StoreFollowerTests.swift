import Foundation
import NIOCore
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardReceiver
@testable import PostcardReceivingSupport
@testable import PostcardReception
@testable import PostcardServer

/// Events of one receiver that show what another one did.
@Suite(.timeLimit(.minutes(10)))
struct StoreFollowerTests {
    /// A store that several receivers share.
    private struct SharedStore: ForwardingUploadStore, MaintainedUploadStore {
        let base: MemoryStore
        private let isFailing: Box

        private final class Box: Sendable {
            let value = Mutex(false)
        }

        init() {
            base = MemoryStore(disk: MemoryStore.Disk())
            isFailing = Box()
        }

        func fail(_ isFailing: Bool) { self.isFailing.value.withLock { $0 = isFailing } }

        let dependency = "The memory"
        let sweepInterval = Duration.seconds(3600)
        let followingInterval: Duration? = .milliseconds(20)
        func checkReadiness() async throws {}
        func sweep() async throws {}

        func newestRecords() async throws -> NewestRecords {
            let identifiers = try await identifiers(limit: 1000, after: nil)
            // Read before, so that a call that began earlier does not see what is stored while the store fails.
            if isFailing.value.withLock({ $0 }) { throw UploadStoreError(.unavailable, "It fails.") }
            return NewestRecords(identifiers: identifiers, oldest: nil)
        }
    }

    private static func withTwoReceivers(
        _ body: (SharedStore, RunningReceiver, RunningReceiver) async throws -> Void
    ) async throws {
        let store = SharedStore()
        try await withReceiver(on: store) { first in
            try await withReceiver(on: store) { second in try await body(store, first, second) }
        }
    }

    private static func post(to receiver: RunningReceiver) async throws -> UploadRecord {
        try UploadRecord(json: try await receiver.curl("-F", "이름=초코", "\(receiver.url)/uploads").output)
    }

    @Test func `what any receiver stores and deletes is published once by each`() async throws {
        try await Self.withTwoReceivers { _, first, second in
            _ = try await Self.post(to: second)
            let listener = try await EventListener.listening(to: first)
            var told = ""
            for receiver in [second, first, second] {
                let record = try await Self.post(to: receiver)
                told += try await onThread { try listener.text(until: "event: uploaded\n", and: "\n\n") }
                #expect(told.contains("\"id\":\"\(record.id)\""))
                _ = try await receiver.curl("-X", "DELETE", receiver.url + record.url)
                told += try await onThread { try listener.text(until: "event: deleted\n", and: "\n\n") }
                #expect(told.contains("data: {\"id\":\"\(record.id)\"}"))
            }
            // The last one is from the other receiver, so the store was asked again after all others.
            #expect(told.components(separatedBy: "event: uploaded\n").count == 4)
            #expect(told.components(separatedBy: "event: deleted\n").count == 4)
        }
    }

    @Test func `the request of an upload that another receiver deletes is forgotten`() async throws {
        try await Self.withTwoReceivers { _, first, second in
            let path = "\(first.url)/requests"
            func status(_ number: Int) async throws -> Int {
                try await first.exchange("GET /requests/\(number) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    .status
            }
            // Without a listener the store is not followed. The deletion is noticed by the next request for it.
            let record = try await Self.post(to: first)
            _ = try await second.curl("-X", "DELETE", second.url + record.url)
            #expect(try await status(1) == 404)
            #expect(try await !first.curl(path).text.contains(record.id.text))
            let listener = try await EventListener.listening(to: first)
            let other = try await Self.post(to: first)
            _ = try await onThread { try listener.text(until: "event: uploaded\n", and: "\n\n") }
            #expect(try await status(2) == 200)
            _ = try await second.curl("-X", "DELETE", second.url + other.url)
            _ = try await onThread { try listener.text(until: "event: deleted\n", and: "\n\n") }
            #expect(try await !first.curl(path).text.contains(other.id.text))
        }
    }

    /// How many seconds late the events may be, by the next event that says so.
    private static func behind(_ listener: EventListener) async throws -> (seconds: Int, told: String) {
        let told = try await onThread { try listener.text(until: "event: behind\n", and: "}\n\n") }
        let match = try #require(told.firstMatch(of: #/event: behind\ndata: \{"seconds":(\d+)\}/#))
        return (try #require(Int(match.1)), told)
    }

    @Test func `listeners are told how late the events of others may be, and when that changes`() async throws {
        try await Self.withTwoReceivers { store, first, second in
            let listener = try await EventListener.listening(to: first)
            let usual = try await Self.behind(listener).seconds
            store.fail(true)
            var late = try await Self.behind(listener)
            while late.seconds <= usual { late = try await Self.behind(listener) }
            let record = try await Self.post(to: second)
            #expect(!late.told.contains("event: uploaded"))
            store.fail(false)
            let told = try await onThread { try listener.text(until: "event: uploaded\n", and: "\n\n") }
            #expect(told.contains("\"id\":\"\(record.id)\""))
            while try await Self.behind(listener).seconds >= late.seconds {}
        }
    }

    @Test func `listeners are refused while the store fails, and the store is followed again later`() async throws {
        try await Self.withTwoReceivers { store, first, second in
            store.fail(true)
            let refused = try await first.exchange("GET /events HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(refused.status == 503)
            store.fail(false)
            for _ in 0..<2 {
                let listener = try await EventListener.listening(to: first)
                let record = try await Self.post(to: second)
                let told = try await onThread { try listener.text(until: "event: uploaded\n", and: "\n\n") }
                #expect(told.contains("\"id\":\"\(record.id)\""))
            }
        }
    }

    @Test func `many new records disconnect the listeners instead of being read one by one`() async throws {
        try await Self.withTwoReceivers { store, first, _ in
            let listener = try await EventListener.listening(to: first)
            // None of these may be seen before all of them are there.
            store.fail(true)
            for _ in 0..<101 {
                _ = try await store.beginUpload(under: nil, announcedBytes: nil).commit(fields: [], parts: [])
            }
            store.fail(false)
            let rest = try await onThread { try listener.text(until: "\r\n0\r\n\r\n") }
            #expect(!rest.contains("event: uploaded"))
        }
    }
}
