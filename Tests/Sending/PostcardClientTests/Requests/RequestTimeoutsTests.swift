import Foundation
import HTTPTypes
import Testing

@testable import PostcardClient

@Suite struct RequestTimeoutsTests {
    private static let start = ContinuousClock.now
    private static let bodyLength: Int64 = 100

    /// Events and checks in order, each at a number of seconds after the start.
    enum Step: Sendable {
        case event(TransportEvent, at: Int)
        /// An event that changes nothing.
        case ignored(TransportEvent, at: Int)
        /// Time has not run out; when to check again.
        case check(at: Int, next: Int?)
        case expires(at: Int, UploadError.Code, UploadError.Phase)
    }

    struct Sequence: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var idle: Int?
        var connect: Int?
        var response: Int?
        var total: Int?
        var hasBody = true
        let steps: [Step]
    }

    static let sequences = [
        Sequence(testDescription: "no limits", steps: [.check(at: 1_000_000, next: nil)]),
        Sequence(
            testDescription: "idle before the connection is made", idle: 10,
            steps: [.check(at: 9, next: 10), .expires(at: 10, .connectTimedOut, .connecting)]),
        Sequence(
            testDescription: "the connect timeout replaces the idle timeout while connecting", idle: 10, connect: 30,
            steps: [
                .check(at: 20, next: 30), .event(.sent(bytes: 0), at: 25), .check(at: 30, next: 35),
                .expires(at: 35, .timedOut, .sending),
            ]),
        Sequence(
            testDescription: "once the connection is made, the idle timeout may be due before the connect timeout",
            idle: 10, connect: 100,
            steps: [
                .check(at: 0, next: 10), .event(.sent(bytes: 0), at: 1), .check(at: 10, next: 11),
                .expires(at: 11, .timedOut, .sending),
            ]),
        Sequence(
            testDescription: "once there is a network, the idle timeout may be due before the total timeout", idle: 10,
            total: 100,
            steps: [
                .event(.waitingForNetwork, at: 1), .check(at: 2, next: 12), .event(.sent(bytes: 0), at: 3),
                .check(at: 12, next: 13), .expires(at: 13, .timedOut, .sending),
            ]),
        Sequence(
            testDescription: "every byte restarts the idle timeout", idle: 10,
            steps: [
                .event(.sent(bytes: 0), at: 5), .event(.sent(bytes: 50), at: 14), .check(at: 20, next: 24),
                .event(.sent(bytes: 100), at: 23), .check(at: 30, next: 33), .event(.received(bytes: 0), at: 32),
                .check(at: 41, next: 42), .expires(at: 42, .timedOut, .receiving),
            ]),
        Sequence(
            testDescription: "interim responses do not restart the idle timeout", idle: 10,
            steps: [
                .event(.sent(bytes: 100), at: 1),
                .ignored(.informed(status: .init(code: 104), headerFields: [:]), at: 9), .check(at: 10, next: 11),
                .expires(at: 11, .timedOut, .waiting),
            ]),
        Sequence(
            testDescription: "idle after the whole body", idle: 10,
            steps: [.event(.sent(bytes: 100), at: 1), .expires(at: 11, .timedOut, .waiting)]),
        Sequence(
            testDescription: "the response timeout runs from the end of the body, however many bytes arrive", idle: 50,
            response: 60,
            steps: [
                .event(.sent(bytes: 1), at: 0), .check(at: 40, next: 50), .event(.sent(bytes: 100), at: 45),
                .event(.received(bytes: 0), at: 80), .event(.received(bytes: 5), at: 100),
                .check(at: 104, next: 105), .expires(at: 105, .timedOut, .receiving),
            ]),
        Sequence(
            testDescription: "the response timeout of an early response runs from the last move of the body",
            response: 60,
            steps: [
                .event(.sent(bytes: 1), at: 0), .event(.received(bytes: 0), at: 10), .event(.sent(bytes: 2), at: 20),
                .event(.received(bytes: 9), at: 70), .check(at: 79, next: 80), .expires(at: 80, .timedOut, .receiving),
            ]),
        Sequence(
            testDescription: "a request without a body waits for the response at once", response: 60, hasBody: false,
            steps: [.check(at: 59, next: 60), .expires(at: 60, .timedOut, .waiting)]),
        Sequence(
            testDescription: "the response timeout may be due before anything else, so a check is never later",
            idle: 100, response: 10, steps: [.event(.sent(bytes: 1), at: 0), .check(at: 5, next: 15)]),
        Sequence(
            testDescription: "without a network only the total timeout runs", idle: 10, connect: 10, response: 10,
            total: 80,
            steps: [
                .event(.waitingForNetwork, at: 1), .check(at: 70, next: 80),
                .expires(at: 80, .deadlinePassed, .connecting),
            ]),
        Sequence(
            testDescription: "without a network and a total timeout, the others are checked later", idle: 10,
            connect: 5,
            steps: [.event(.waitingForNetwork, at: 1), .check(at: 70, next: 75)]),
        Sequence(
            testDescription: "the total timeout is not extended by bytes", idle: 10, total: 20,
            steps: [
                .event(.sent(bytes: 10), at: 9), .event(.sent(bytes: 20), at: 18),
                .expires(at: 20, .deadlinePassed, .sending),
            ]),
    ]

    private static func time(_ seconds: Int) -> ContinuousClock.Instant { start.advanced(by: .seconds(seconds)) }

    @Test(arguments: sequences)
    func `time runs out, or is to be checked again`(sequence: Sequence) throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let limits = RequestTimeouts.Limits(
            idle: sequence.idle.map { .seconds($0) }, connect: sequence.connect.map { .seconds($0) },
            response: sequence.response.map { .seconds($0) },
            total: sequence.total.map { (.seconds($0), Self.time($0)) })
        var timeouts = RequestTimeouts(url, hasBody: sequence.hasBody, limits: limits, at: Self.start)
        for step in sequence.steps {
            switch step {
            case .event(let event, let seconds):
                let isNews = timeouts.note(event, bodyLength: Self.bodyLength, at: Self.time(seconds))
                #expect(isNews)
            case .ignored(let event, let seconds):
                let isNews = timeouts.note(event, bodyLength: Self.bodyLength, at: Self.time(seconds))
                #expect(!isNews)
            case .check(let seconds, let next):
                guard case .checkAgain(let time) = timeouts.check(at: Self.time(seconds)) else {
                    Issue.record("Time ran out after \(seconds) seconds.")
                    return
                }
                #expect(time == next.map(Self.time))
            case .expires(let seconds, let code, let phase):
                if case .checkAgain = timeouts.check(at: Self.time(seconds - 1)) {
                } else {
                    Issue.record("Time ran out before \(seconds) seconds.")
                }
                guard case .expired(let error) = timeouts.check(at: Self.time(seconds)) else {
                    Issue.record("Time did not run out after \(seconds) seconds.")
                    return
                }
                #expect(error.code == code && error.phase == phase)
            }
        }
    }

    @Test func `progress never falls, nothing is reported twice, and the end of an unknown length is noticed`() throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        var timeouts = RequestTimeouts(url, hasBody: true, limits: RequestTimeouts.Limits(), at: Self.start)
        let events: [(bytes: Int64, length: Int64?, isNews: Bool)] = [
            (0, nil, true), (0, nil, false), (7, nil, true), (5, nil, false), (7, nil, false), (7, 7, true),
            (7, 7, false),
        ]
        for (bytes, length, isExpectedNews) in events {
            let isNews = timeouts.note(.sent(bytes: bytes), bodyLength: length, at: Self.start)
            #expect(isNews == isExpectedNews)
        }
        #expect(timeouts.hasSentAll && timeouts.bytesSent == 7)
    }
}
