import Foundation
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// What a ledger knows of attempts after their events.
@Suite struct AttemptLedgerTests {
    private static let id = AttemptID(upload: UUID(), number: 1)
    private static let other = AttemptID(upload: UUID(), number: 1)
    private static let end = AttemptEnd.response(status: 201, headerFields: [:], url: nil, method: nil)

    private static func received(_ text: String) -> AttemptEvent { .received(id, Data(text.utf8)) }

    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var isOpen = true
        let events: [AttemptEvent]
        /// Whether the attempt is forgotten after the first of its events.
        var isForgotten = false
        var body = ""
        var upload: QueuedUpload.ID? = 1
    }

    static let rows = [
        Row(testDescription: "a response in two pieces", events: [received("sto"), received("red")], body: "stored"),
        Row(testDescription: "an end without a body", events: []),
        Row(
            testDescription: "an attempt that nobody knows", isOpen: false, events: [received("late")], body: "late",
            upload: nil),
        Row(
            testDescription: "an attempt that is forgotten in the middle of its response",
            events: [received("sto"), received("red")], isForgotten: true, body: "stored", upload: nil),
        Row(
            testDescription: "a session that ends in between drops what is forgotten",
            events: [received("sto"), .invalidated(.invalid("it broke")), received("red")], isForgotten: true,
            body: "red", upload: nil),
        Row(
            testDescription: "a session that ends in between keeps what is open",
            events: [received("sto"), .invalidated(.invalid("it broke")), received("red")], body: "stored"),
        Row(
            testDescription: "a response that is too long",
            events: [received(String(repeating: "a", count: (64 << 10) - 1)), received("bc")],
            body: String(repeating: "a", count: (64 << 10) - 1) + "b"),
    ]

    @Test(arguments: rows)
    func `an end has the body that was received before it`(row: Row) throws {
        var ledger = AttemptLedger()
        if row.isOpen { ledger.add(recorded: [Self.id: 1]) }
        for (index, event) in row.events.enumerated() {
            #expect(ledger.record(event) == nil)
            if index == 0, row.isForgotten { ledger.forget(Self.id) }
        }
        _ = ledger.record(.ended(Self.id, Self.end))
        #expect(ledger.isEmpty)
        let ended = try #require(ledger.ended.first)
        #expect(ended.upload == row.upload && ended.body == Data(row.body.utf8))
        ledger.removeEnded(1)
        #expect(ledger.ended.isEmpty)
    }

    @Test func `the first bytes of an attempt are reported as the first, and those of an unknown one not at all`() {
        var ledger = AttemptLedger()
        ledger.add(recorded: [Self.id: 1])
        #expect(ledger.record(.sent(Self.id, bytes: 5)) == .init(upload: 1, bytesSent: 5, isFirst: true))
        #expect(ledger.record(.sent(Self.id, bytes: 9)) == .init(upload: 1, bytesSent: 9, isFirst: false))
        #expect(ledger.record(.sent(Self.other, bytes: 9)) == nil)
    }

    @Test func `a lost attempt may have begun, unless only the database knows it since this process compared`() {
        var ledger = AttemptLedger()
        ledger.add(recorded: [Self.id: 1])
        ledger.endLost(comparing: .init(carried: [:], recorded: [Self.id: 1]))
        ledger.add(recorded: [Self.other: 2])
        ledger.endLost(comparing: .init(carried: [:], recorded: [Self.other: 2]))
        #expect(ledger.ended.map(\.hasBegun) == [true, false])
    }

    @Test func `an attempt that could not begin has ended, and resume data stays with its attempt`() {
        var ledger = AttemptLedger()
        ledger.add(recorded: [Self.id: 1, Self.other: 2])
        ledger.end(Self.other, .interrupted(.lost), hasBegun: false)
        #expect(ledger.uploads == [1])
        _ = ledger.record(.resumable(Self.id, Data("more".utf8)))
        _ = ledger.record(.deliveredAll)
        _ = ledger.record(.ended(Self.id, Self.end))
        #expect(ledger.isEmpty && ledger.ended.map(\.hasBegun) == [false, true])
        #expect(ledger.ended.map(\.resumeData) == [nil, Data("more".utf8)])
    }

    @Test func `attempts that the database dropped are obsolete, in the order of their uploads`() {
        var ledger = AttemptLedger()
        ledger.add(recorded: [Self.id: 2, Self.other: 1])
        #expect(ledger.obsolete(comparing: [:]).map(\.upload) == [1, 2])
        #expect(ledger.obsolete(comparing: [Self.id: 2]).map(\.attempt) == [Self.other])
    }
}
