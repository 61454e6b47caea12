import HTTPTypes
import PostcardTestSupport
import PostcardTesting

/// Something that happens to a phone. Uploads are counted from 0 among those that it can happen to, and over again.
enum PhoneEvent: Sendable {
    // What the user and the system do to the app.
    case launch, kill, forceQuit, suspend, resume, wakeUp
    // What the app does.
    case enqueue(needsWiFi: Bool)
    case cancel(Int), pause(Int), unpause(Int)
    // What the servers do.
    case respond(with: TestResponse, to: Int), respondToAll(with: TestResponse)
    /// The network comes back, and no server can be reached or none is trusted.
    case fail(TestResponse)
    // What the system does otherwise.
    case network(Network), locked(Bool), advance(seconds: Int)

    enum Network: Sendable, CaseIterable { case none, wifi, cellular }
}

extension TestResponse {
    /// A response that asks for credentials, for which the system wakes the app.
    static let challenge = status(401, headerFields: [.wwwAuthenticate: "Basic realm=\"pets\""])
}

extension PhoneEvent {
    static let add = enqueue(needsWiFi: false)

    /// What a server responds.
    static let responses: [TestResponse] = [
        .created(["id": "7"]), .created, .created(["id": "8"]), .status(200, json: "{}"), .status(503),
        .status(503, headerFields: [.retryAfter: "100"]), .status(429, headerFields: [.retryAfter: "5"]), .status(409),
        .status(422), .problem(413, code: "body-too-large", limit: 10), .status(401), .challenge, .status(521),
        .responseLost, .responseLost, .breaks(after: 10),
    ]

    /// A random event.
    static func random(using chance: inout SeededGenerator) -> PhoneEvent {
        func number(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &chance) }
        func one<Value>(of values: [Value]) -> Value { values[number(values.count)] }
        return switch number(40) {
        case 0...2: .launch
        case 3, 4: .kill
        case 5: .forceQuit
        case 6, 7: .suspend
        case 8, 9: .resume
        case 10...13: .wakeUp
        case 14...18: .enqueue(needsWiFi: number(3) == 0)
        case 19: .cancel(number(4))
        case 20: .pause(number(4))
        case 21, 22: .unpause(number(4))
        case 23...28: .respond(with: one(of: responses), to: number(4))
        case 29, 30: .respondToAll(with: one(of: responses))
        case 31: .fail(number(2) == 0 ? .connectionFails : .untrusted)
        case 32...35: .network(one(of: [.wifi, .wifi] + Network.allCases))
        case 36: .locked(number(2) == 0)
        default: .advance(seconds: one(of: [1, 5, 10, 60, 100, 3600]))
        }
    }
}
