import Foundation
import NIOCore
import NIOHTTP1
import PostcardS3

/// The call of a receiver that a request to the store belongs to.
enum Call {
    @TaskLocal static var id = 0
}

/// Waited for once, and answered by whatever happens first.
final class Answer<Value: Sendable>: @unchecked Sendable {
    private var continuation: UnsafeContinuation<Value, any Error>?

    init(_ continuation: UnsafeContinuation<Value, any Error>) { self.continuation = continuation }

    var isWaitedFor: Bool { continuation != nil }

    @discardableResult
    func give(_ result: Result<Value, any Error>) -> Bool {
        guard let waiting = continuation else { return false }
        continuation = nil
        waiting.resume(with: result)
        return true
    }
}

/// How likely it is that a request to the store fails, and in which way.
struct Weather {
    /// It does not arrive.
    var lostRequests = 0.0
    /// It is carried out, and the answer does not arrive.
    var lostAnswers = 0.0
    /// It is carried out long after the receiver has given up.
    var late = 0.0
    /// It is carried out twice, and the second answer arrives.
    var repeated = 0.0
    var unavailable = 0.0
    /// It is carried out, and answered with a 500.
    var failedAnswers = 0.0
    /// A PUT with a condition is answered with a 409.
    var conflicts = 0.0
    /// The end of a multipart upload is answered with a 200 that has an error in it.
    var hiddenErrors = 0.0
    var slow = 0.0

    static let fair = Weather()

    static func random(_ random: inout SeededRandom) -> Weather {
        guard random.isTrue(0.9) else { return .fair }
        let strength = random.time(0.05...1)
        func share(_ maximum: Double) -> Double { random.isTrue(0.6) ? maximum * strength * random.fraction() : 0 }
        return Weather(
            lostRequests: share(0.1), lostAnswers: share(0.2), late: share(0.15), repeated: share(0.2),
            unavailable: share(0.2), failedAnswers: share(0.1), conflicts: share(0.2), hiddenErrors: share(0.5),
            slow: share(0.2))
    }
}

/// Makes requests of a process to the store.
typealias Exchange = @Sendable (S3Request, _ signed: Date, _ limit: Duration) async throws -> S3Response

/// Between the receivers and the store.
final class SimulatedNetwork: @unchecked Sendable {
    let scheduler: Scheduler
    let store: SimulatedStore
    let trace: Trace
    var weather: Weather
    /// How many requests were made.
    private(set) var steps = 0

    init(_ scheduler: Scheduler, _ store: SimulatedStore, _ weather: Weather, _ trace: Trace) {
        self.scheduler = scheduler
        self.store = store
        self.weather = weather
        self.trace = trace
    }

    private enum Fate: String, Error {
        case carriedOut, lostRequest, lostAnswer, late, repeated, unavailable, failedAnswer, conflict, hiddenError
    }

    private func fate(of request: S3Request) -> Fate {
        var roll = scheduler.random.fraction()
        func falls(_ probability: Double) -> Bool {
            roll -= probability
            return roll < 0
        }
        if falls(weather.lostRequests) { return .lostRequest }
        if falls(weather.lostAnswers) { return .lostAnswer }
        if falls(weather.late) { return .late }
        if falls(weather.repeated) { return .repeated }
        if falls(weather.unavailable) { return .unavailable }
        if falls(weather.failedAnswers) { return .failedAnswer }
        let hasCondition = request.headers.contains { $0.name == "if-none-match" }
        if hasCondition, falls(weather.conflicts) { return .conflict }
        let completes = request.method == .POST && request.query.contains { $0.name == "uploadId" }
        if completes, falls(weather.hiddenErrors) { return .hiddenError }
        return .carriedOut
    }

    private func delay() -> Double {
        scheduler.random.isTrue(weather.slow) ? scheduler.random.time(0.05...30) : scheduler.random.time(0.0005...0.05)
    }

    /// Carries out a request at some time.
    func carryOut(
        _ request: S3Request, signed: Date, after seconds: Double, _ done: @escaping (S3Response) -> Void = { _ in }
    ) {
        let call = Call.id
        scheduler.schedule(after: seconds) { [self] in
            let response = store.respond(to: request, signed: signed, call: call)
            trace.add(scheduler.now, "\(Self.text(request)) \(response.status)")
            done(response)
        }
    }

    private static func text(_ request: S3Request) -> String {
        let query = request.query.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        return "\(request.method.rawValue) \(request.key)?\(query)"
    }

    func exchange(
        _ request: S3Request, signed: Date, limit: Duration, of process: SimulatedProcess
    ) async throws -> S3Response {
        guard !process.isDead else { throw Killed() }
        steps += 1
        let response = try await withUnsafeThrowingContinuation {
            (continuation: UnsafeContinuation<S3Response, any Error>) in
            let answer = Answer(continuation)
            begin(request, signed, limit, fate(of: request), answer)
        }
        guard !process.isDead else { throw Killed() }
        try Task.checkCancellation()
        return response
    }

    private func begin(
        _ request: S3Request, _ signed: Date, _ limit: Duration, _ fate: Fate,
        _ waiting: Answer<S3Response>
    ) {
        let (there, back) = (delay(), delay())
        func done(_ response: S3Response) { waiting.give(.success(response)) }
        func giveUp() {
            if waiting.isWaitedFor { waiting.give(.failure(S3Error.unreachable("simulation", fate))) }
        }
        // A broken connection is noticed at once, or never.
        let notice = scheduler.random.isTrue(0.7) ? there + back : limit / .seconds(1)
        scheduler.schedule(after: min(limit / .seconds(1), 60)) { giveUp() }
        func answer(_ change: @escaping (S3Response) -> S3Response = { $0 }) -> (S3Response) -> Void {
            { [scheduler] response in scheduler.schedule(after: back) { done(change(response)) } }
        }
        func answerOnly(_ status: HTTPResponse.Status, _ code: String) {
            scheduler.schedule(after: there + back) { [store] in done(store.error(status, code, request)) }
        }
        switch fate {
        case .carriedOut: carryOut(request, signed: signed, after: there, answer())
        case .lostRequest: scheduler.schedule(after: notice) { giveUp() }
        case .lostAnswer:
            carryOut(request, signed: signed, after: there)
            scheduler.schedule(after: notice) { giveUp() }
        case .late:
            carryOut(request, signed: signed, after: there + scheduler.random.time(0.1...1200))
            scheduler.schedule(after: notice) { giveUp() }
        case .repeated:
            carryOut(request, signed: signed, after: there)
            carryOut(request, signed: signed, after: there + scheduler.random.time(0.0005...2), answer())
        case .unavailable: answerOnly(503, "SlowDown")
        case .conflict: answerOnly(409, "ConditionalRequestConflict")
        case .failedAnswer:
            carryOut(
                request, signed: signed, after: there,
                answer { [store] _ in store.error(500, "InternalError", request) })
        case .hiddenError:
            let hidden = store.error(500, "InternalError", request).body
            func hide(_ response: S3Response) -> S3Response {
                S3Response(status: 200, headers: response.headers, body: hidden)
            }
            if scheduler.random.isTrue(0.3) {
                carryOut(request, signed: signed, after: there, answer(hide))
            } else {
                scheduler.schedule(after: there + back) { [store] in
                    done(hide(store.error(500, "InternalError", request)))
                }
            }
        }
    }
}

/// What happened, as lines or as their hash.
final class Trace: @unchecked Sendable {
    struct Purpose: OptionSet {
        let rawValue: Int

        static let lines = Purpose(rawValue: 1)
        static let hash = Purpose(rawValue: 2)
    }

    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private let purpose: Purpose

    init(_ purpose: Purpose) { self.purpose = purpose }

    func add(_ time: Double, _ text: @autoclosure () -> String) {
        // The lines take a tenth of the time.
        guard !purpose.isEmpty else { return }
        let line = text()
        for byte in line.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        hash = (hash ^ time.bitPattern) &* 0x0000_0100_0000_01B3
        if purpose.contains(.lines) { print("\(time) \(line)") }
    }
}
