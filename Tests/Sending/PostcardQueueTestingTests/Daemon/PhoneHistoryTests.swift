import Foundation
import NIOPosix
import PostcardTestSupport
import PostcardTesting
import PostcardTransferDaemon
import Testing

/// A ``TestPhone`` and the model of the transfer daemon, which share no code: the same happens to the same uploads.
@Suite(.timeLimit(.minutes(10))) struct PhoneHistoryTests {
    /// Lets something happen to both, and compares them after each event.
    ///
    /// - Parameter next: The next event, or `nil` at the end. An event that cannot happen is left out.
    /// - Returns: Whether both are the same.
    @discardableResult private static func compare(
        _ name: String, on daemon: TransferDaemon, _ next: () -> PhoneEvent?
    ) async throws -> Bool {
        let server = HeldServer()
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        return try await withListener(on: loop, server.addHandlers) { port in
            let model = try await DaemonPhone(daemon, server)
            let url = try #require(URL(string: "http://127.0.0.1:\(port)/pets"))
            var phones = try TwoPhones(model, url: url)
            var trace: [PhoneEvent] = []
            while let event = next() {
                guard try await phones.happen(event) else { continue }
                trace.append(event)
                let (phone, daemon) = try await phones.look()
                if phone == daemon { continue }
                Issue.record("\(name) after \(trace):\n--- The phone:\n\(phone)\n--- The model:\n\(daemon)\n")
                return false
            }
            try await phones.finish()
            let (phone, daemon) = try await phones.look()
            #expect(phone == daemon, "\(name) at the end of \(trace)")
            let isDone = try await phones.isDone
            #expect(isDone, "\(name) after \(trace):\n\(phone)")
            _ = try await phones.happen(.kill)
            return phone == daemon && isDone
        }
    }

    // Eight histories at a time, because each mostly waits for the model's process.
    @Test(arguments: 0..<8) func `random histories are the same`(lane: Int) async throws {
        let daemon = try await DaemonPhone.daemon(seed: UInt64(lane))
        for seed in stride(from: lane, to: 200, by: 8) {
            // The numbers of seeds that follow one another overlap.
            var chance = SeededGenerator(seed: UInt64(seed) << 32)
            var rest = 20
            let isSame = try await Self.compare("Seed \(seed)", on: daemon) {
                rest -= 1
                if rest == 19 { return .launch }
                return rest < 0 ? nil : .random(using: &chance)
            }
            if !isSame { return }
        }
    }

    static let odd: [(String, [PhoneEvent])] = [
        (
            "An upload asks for credentials while the app is closed, and another is sent.",
            [
                .launch, .add, .add, .kill, .respond(with: .challenge, to: 0),
                .wakeUp, .respond(with: .created, to: 0), .wakeUp,
            ]
        ),
        (
            "An upload begins while the app is closed that was to begin later.",
            [
                .launch, .add, .respond(with: .status(503), to: 0), .kill, .advance(seconds: 60), .launch,
                .advance(seconds: 1), .respond(with: .created, to: 0),
            ]
        ),
        (
            "An upload has waited for its time and then for the network.",
            [
                .launch, .add, .respond(with: .status(503), to: 0), .network(.none), .advance(seconds: 60),
                .network(.wifi), .kill, .respond(with: .created, to: 0), .wakeUp,
            ]
        ),
        (
            "An upload that is handed over in the background waits for Wi-Fi.",
            [
                .launch, .add, .network(.cellular), .kill, .respond(with: .status(503), to: 0), .wakeUp,
                .advance(seconds: 60), .respondToAll(with: .created), .network(.wifi), .respondToAll(with: .created),
                .wakeUp,
            ]
        ),
        (
            "The same of an app that was suspended, and opened again.",
            [
                .launch, .add, .suspend, .respond(with: .status(503), to: 0), .network(.cellular), .wakeUp,
                .advance(seconds: 60), .respondToAll(with: .created), .resume, .add, .respondToAll(with: .created),
            ]
        ),
        (
            "A locked phone stores no response, whatever its status is.",
            [
                .launch, .add, .add, .locked(true), .respond(with: .created(["id": 7]), to: 0),
                .respond(with: .status(422, json: "{}"), to: 0),
            ]
        ),
        (
            "No server can be reached, and then one that nobody trusts.",
            [
                .launch, .network(.none), .add, .enqueue(needsWiFi: true), .fail(.connectionFails),
                .network(.none), .advance(seconds: 60), .fail(.untrusted),
            ]
        ),
        (
            "The user quits an app that is suspended, while an upload has ended and another has not.",
            [
                .launch, .add, .add, .suspend, .respond(with: .created, to: 0),
                .forceQuit, .advance(seconds: 60), .launch, .advance(seconds: 60),
            ]
        ),
    ]

    @Test(arguments: odd) func `odd histories are the same`(name: String, events: [PhoneEvent]) async throws {
        var rest = events[...]
        try await Self.compare(name, on: try await DaemonPhone.daemon()) { rest.popFirst() }
    }
}
