import Foundation
import Synchronization
import Testing

@testable import PostcardQueue

/// What the queues of a process get of the events of their session.
@Suite struct EventRelayTests {
    private final class Received: Sendable {
        private let list = Mutex<[Int64]>([])

        var bytes: [Int64] { list.withLock { $0 } }

        func add(_ event: AttemptEvent) {
            if case .sent(_, let bytes) = event { list.withLock { $0.append(bytes) } }
        }
    }

    private static func event(_ bytes: Int64) -> AttemptEvent {
        .sent(AttemptID(upload: UUID(), number: 1), bytes: bytes)
    }

    private let relay = EventRelay()
    private let first = EventRelay.Token()
    private let second = EventRelay.Token()
    private let old = Received()
    private let new = Received()

    @Test func `events wait until a queue is attached`() {
        relay.report(Self.event(1))
        relay.attach(first) { [old] in old.add($0) }
        relay.report(Self.event(2))
        relay.detach(first)
        relay.report(Self.event(3))
        relay.attach(second) { [new] in new.add($0) }
        #expect(old.bytes == [1, 2] && new.bytes == [3])
    }

    @Test func `an event that comes while a queue is attached comes after those that waited`() async {
        for _ in 0..<500 {
            let (relay, received) = (EventRelay(), Received())
            for number in Int64(1)...5 { relay.report(Self.event(number)) }
            async let attached = relay.attach(EventRelay.Token()) { received.add($0) }
            async let reported: Void = relay.report(Self.event(6))
            _ = await (attached, reported)
            #expect(received.bytes == [1, 2, 3, 4, 5, 6])
        }
    }

    @Test func `of an attempt's progress, only the latest waits for a queue`() {
        let attempt = AttemptID(upload: UUID(), number: 1)
        for bytes in Int64(1)...3 { relay.report(.sent(attempt, bytes: bytes)) }
        relay.report(Self.event(9))
        relay.attach(first) { [old] in old.add($0) }
        #expect(old.bytes == [3, 9])
    }

    @Test func `a queue that is detached late does not detach the one after it`() {
        relay.attach(first) { [old] in old.add($0) }
        relay.attach(second) { [new] in new.add($0) }
        relay.detach(first)
        relay.report(Self.event(1))
        #expect(old.bytes == [] && new.bytes == [1])
    }

    @Test func `a queue that is attached late gets nothing, also after the later one was detached`() {
        relay.attach(second) { [new] in new.add($0) }
        relay.attach(first) { [old] in old.add($0) }
        relay.report(Self.event(1))
        relay.detach(second)
        relay.attach(first) { [old] in old.add($0) }
        relay.report(Self.event(2))
        #expect(old.bytes == [] && new.bytes == [1])
    }
}
