import PostcardTestSupport
import Testing

@testable import PostcardReception
@testable import PostcardServer

struct ConnectionStateTests {
    @Test
    func `a complete request and its response leave the connection open`() {
        var state = ConnectionState()
        #expect(state.silence == .beforeRequests)
        #expect(state.headRead() == .pass)
        #expect(state.silence == .inBody)
        #expect(state.bodyRead(5) == .pass)
        #expect(state.endRead() == .pass)
        #expect(state.silence == .expected)
        #expect(state.responseBegins(isLast: false) == .write)
        #expect(state.responseEnds() == .write)
        #expect(state.silence == .betweenRequests)
    }

    @Test
    func `a response before the end of the body is the last, and the rest of the body is dropped`() {
        var state = ConnectionState()
        _ = state.headRead()
        #expect(state.responseBegins(isLast: false) == .writeAsLast)
        #expect(state.bodyRead(4) == .drop)
        #expect(state.responseEnds() == .writeAndLinger)
        #expect(state.isLingering && state.isDropping)
        #expect(state.bodyRead(5) == .drop)
        #expect(state.bodyRead(1) == .drop)
        #expect(state.inputClosed() == .close)
    }

    static let drains: [(hasLength: Bool, bytes: [Int], milliseconds: Int)] = [
        (true, [], 10_000), (true, [50_000_000], 10_500), (true, [100_000_000, 100_000_000], 12_000),
        (true, [5_000_000_000], 60_000), (true, [.max], 60_000), (false, [100_000_000], 10_000),
        (false, [.max], 10_000),
    ]

    @Test(arguments: drains)
    func `a body of known length may take a second longer for each 100 MB, up to five timeouts`(
        hasLength: Bool, bytes: [Int], milliseconds: Int
    ) {
        var state = ConnectionState()
        _ = state.headRead(hasLength: hasLength)
        // What arrives before the response belongs to the request.
        _ = state.bodyRead(1_000_000_000)
        _ = state.responseBegins(isLast: false)
        _ = state.responseEnds()
        for count in bytes { #expect(state.bodyRead(count) == .drop) }
        guard case .afterLastResponse(let drain) = state.silence else {
            Issue.record("The response was not the last.")
            return
        }
        #expect(drain.time(.seconds(10)) == .milliseconds(milliseconds))
    }

    @Test
    func `the response to the first of two requests is not early, even if the second is still being received`() {
        var state = ConnectionState()
        _ = state.headRead()
        _ = state.endRead()
        _ = state.headRead()
        #expect(state.responseBegins(isLast: false) == .write)
        #expect(state.responseEnds() == .write)
        #expect(state.responseBegins(isLast: false) == .writeAsLast)
    }

    @Test
    func `a body that breaks off is an interruption, and its response closes the connection`() {
        var state = ConnectionState()
        _ = state.headRead()
        #expect(state.inputFailed() == .passAsInterruption)
        #expect(state.inputClosed() == .pass)
        #expect(state.responseBegins(isLast: false) == .writeAsLast)
        #expect(state.responseEnds() == .writeAndClose)
    }

    @Test
    func `input that is not HTTP is refused once, after the responses to earlier requests`() {
        var state = ConnectionState()
        _ = state.headRead()
        _ = state.endRead()
        #expect(state.inputFailed() == .pass)
        #expect(state.responseBegins(isLast: false) == .write)
        #expect(state.responseEnds() == .write)
        #expect(state.responseBegins(isLast: true) == .writeMalformedRequest)
        #expect(state.responseEnds() == .writeAndLinger)
        #expect(state.responseBegins(isLast: true) == .drop)
        #expect(state.responseEnds() == .drop)
    }

    @Test
    func `a client that closes after its last response ends the connection`() {
        var state = ConnectionState()
        #expect(state.outputCloses() == .linger)
        #expect(state.inputClosed() == .close)
        #expect(state.outputCloses() == .ignore)
        #expect(state.headRead() == .drop)
    }

    /// What each event leads to: a head, bytes of a body, the end of a request, the end of input, a failure of the
    /// input, the beginning and the end of a response, and the end of the output.
    static let phases: [(name: String, before: @Sendable (inout ConnectionState) -> Void, actions: [String])] = [
        ("between requests", { _ in }, ["pass", "pass", "drop", "pass", "pass", "writeAsLast", "drop", "linger"]),
        (
            "in a body", { _ = $0.headRead() },
            ["drop", "pass", "pass", "pass", "passAsInterruption", "writeAsLast", "write", "linger"]
        ),
        (
            "after a request",
            {
                _ = $0.headRead(); _ = $0.endRead()
            },
            ["pass", "pass", "drop", "pass", "pass", "write", "write", "linger"]
        ),
        (
            "after a body that broke off",
            {
                _ = $0.headRead(); _ = $0.inputFailed()
            },
            ["drop", "pass", "drop", "pass", "drop", "writeAsLast", "write", "linger"]
        ),
        (
            "after bytes that are no request", { _ = $0.inputFailed() },
            ["drop", "drop", "drop", "pass", "drop", "writeMalformedRequest", "drop", "linger"]
        ),
        (
            "in the last response",
            {
                _ = $0.headRead(); _ = $0.responseBegins(isLast: true)
            },
            ["drop", "drop", "drop", "pass", "drop", "drop", "writeAndLinger", "linger"]
        ),
        (
            "after the last response",
            {
                _ = $0.headRead(); _ = $0.responseBegins(isLast: true); _ = $0.responseEnds()
            },
            ["drop", "drop", "drop", "close", "drop", "drop", "drop", "ignore"]
        ),
        ("closed", { $0.closes() }, ["drop", "drop", "drop", "pass", "drop", "drop", "drop", "ignore"]),
    ]

    @Test(arguments: phases)
    func `each event leads to one action in each phase`(
        name: String, before: @Sendable (inout ConnectionState) -> Void, actions: [String]
    ) {
        var state = ConnectionState()
        before(&state)
        func result(_ event: (inout ConnectionState) -> Any) -> String {
            var next = state
            return "\(event(&next))"
        }
        let results = [
            result { $0.headRead() }, result { $0.bodyRead(1) }, result { $0.endRead() }, result { $0.inputClosed() },
            result { $0.inputFailed() }, result { $0.responseBegins(isLast: false) }, result { $0.responseEnds() },
            result { $0.outputCloses() },
        ]
        #expect(results == actions, "\(name)")
    }

    private static let events: [(name: String, play: @Sendable (inout ConnectionState) -> Void)] = [
        ("headRead", { _ = $0.headRead() }), ("headRead", { _ = $0.headRead(isFinal: true) }),
        ("bodyRead", { _ = $0.bodyRead(1) }), ("endRead", { _ = $0.endRead() }),
        ("inputClosed", { _ = $0.inputClosed() }), ("inputFailed", { _ = $0.inputFailed() }),
        ("responseBegins", { _ = $0.responseBegins(isLast: false) }),
        ("responseBegins", { _ = $0.responseBegins(isLast: true) }), ("responseEnds", { _ = $0.responseEnds() }),
        ("outputCloses", { _ = $0.outputCloses() }), ("closes", { $0.closes() }),
    ]

    /// The name of the phase, or of what is being read if the connection is served.
    private static func name(_ state: ConnectionState) -> Any {
        let mirror = Mirror(reflecting: state)
        return mirror.descendant("phase", "serving", "input") ?? mirror.descendant("phase") ?? state
    }

    @Test func `the table has all changes of the state, and no others`() throws {
        var random = SeededGenerator(seed: 1)
        var changes: Set<StateChange> = []
        for _ in 0..<2_000 {
            var state = ConnectionState()
            for _ in 0..<12 {
                guard let (event, play) = Self.events.randomElement(using: &random) else { break }
                let change = Self.name(state)
                play(&state)
                let next = StateChange(change, event, Self.name(state))
                if next != StateChange(change, event, change) { changes.insert(next) }
            }
        }
        var table = try StateChange.table(
            inDocumentationOf: "Sources/Receiving/PostcardServer/Connection/ConnectionState.swift")
        let beforeLingering = ["betweenRequests", "inBody", "interrupted", "malformed", "lastResponse"]
        for state in beforeLingering { table.insert(StateChange(state, "outputCloses", "lingering")) }
        for state in beforeLingering + ["lingering"] { table.insert(StateChange(state, "closes", "closed")) }
        #expect(changes.subtracting(table) == [], "The table lacks these.")
        #expect(table.subtracting(changes) == [], "These never happened.")
    }
}
