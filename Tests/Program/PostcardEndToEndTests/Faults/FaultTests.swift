import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

/// Uploads to `postcard serve` through a proxy that causes faults.
@Suite(.timeLimit(.minutes(10))) struct FaultTests {
    /// The faults, request by request, and the expected result.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let faults: [Fault]
        var size = 300_000
        var retries = 0
        let outcome: Outcome
        /// A result that URLSession on Linux may also have: libcurl does not read the bytes received if it cannot write
        /// (RFC 9112 §9.6).
        var otherOutcome: Outcome?
        /// How many records the server has in the end.
        let records: Int
        /// How many requests the proxy saw.
        let requests: Int
    }

    enum Outcome: Sendable, Equatable {
        case stored(attempts: Int)
        case refused(Int)
        case failed(UploadError.Code)
    }

    /// In bytes: more than the buffers of a connection hold, so that the body is still going out when it happens.
    static let large = 8 << 20

    private static let busy = Fault.response(Fault.Response(503, ["Retry-After": "0"]))

    static let withoutRetries =
        [
            Case(
                testDescription: "nothing", faults: [], outcome: .stored(attempts: 1), records: 1, requests: 1),
            Case(
                testDescription: "a kilobyte a second", faults: [.slow(bytesPerSecond: 1_000)], size: 1_500,
                outcome: .stored(attempts: 1), records: 1, requests: 1),
            Case(
                testDescription: "a stall", faults: [.stall(atByte: 100_000)], size: large,
                outcome: .failed(.timedOut), records: 0, requests: 1),
            Case(
                testDescription: "a half-closed connection", faults: [.halfClose(atByte: 100_000)], size: large,
                outcome: .failed(.connectionLost), records: 0, requests: 1),
            Case(
                testDescription: "a lost response", faults: [.responseLost],
                outcome: .failed(.connectionLost), records: 1, requests: 1),
        ]
        + [0, 1, 100_000, 300_000].map { byte in
            Case(
                testDescription: "a reset at byte \(byte)", faults: [.reset(atByte: byte)],
                outcome: .failed(.connectionLost), records: 0, requests: 1)
        }
        + [413, 401, 422].map { status in
            Case(
                testDescription: "an early \(status)",
                faults: [.earlyResponse(Fault.Response(status, body: "no"), atByte: 100_000, .reading)], size: large,
                retries: 2, outcome: .refused(status), records: 0, requests: 1)
        }
        + [413, 401, 422].map { status in
            Case(
                testDescription: "an early \(status) on a connection that is then reset",
                faults: [.earlyResponse(Fault.Response(status, body: "no"), atByte: 100_000, .atOnce)], size: large,
                outcome: .refused(status), otherOutcome: .failed(.connectionLost), records: 0, requests: 1)
        }

    static let withRetries = [
        Case(
            testDescription: "a reset", faults: [.reset(atByte: 100_000)], retries: 1,
            outcome: .stored(attempts: 2), records: 1, requests: 2),
        Case(
            testDescription: "a stall", faults: [.stall(atByte: 100_000)], retries: 1,
            outcome: .stored(attempts: 2), records: 1, requests: 2),
        Case(
            testDescription: "a half-closed connection", faults: [.halfClose(atByte: 100_000)], size: large, retries: 1,
            outcome: .stored(attempts: 2), records: 1, requests: 2),
        Case(
            testDescription: "a busy server", faults: [busy], retries: 1,
            outcome: .stored(attempts: 2), records: 1, requests: 2),
        Case(
            testDescription: "a server that stays busy", faults: [busy, busy, busy], retries: 2,
            outcome: .refused(503), records: 0, requests: 3),
        Case(
            testDescription: "a lost response", faults: [.responseLost], retries: 1,
            outcome: .stored(attempts: 2), records: 1, requests: 2),
        Case(
            testDescription: "one thing after another",
            // URLSession on Linux restarts a request that is reset on a kept connection, though it gets no second body.
            // The last is the only one that keeps its connection.
            faults: [.reset(atByte: 0), .responseLost, .reset(atByte: 300_000), .responseLost, busy], retries: 5,
            outcome: .stored(attempts: 6), records: 1, requests: 6),
    ]

    @Test(arguments: Carrier.allCases, withoutRetries)
    func `a fault ends the upload as what it is, and nothing is left open`(carrier: Carrier, fault: Case) async throws {
        try await check(fault, carrier)
    }

    @Test(arguments: Carrier.allCases, withRetries)
    func `after any number of faults a form is stored once`(carrier: Carrier, fault: Case) async throws {
        try await check(fault, carrier)
    }

    private func check(_ fault: Case, _ carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder, size: fault.size)
        let receiver = try await ReceivingServer()
        let (proxy, gone) = try await FaultProxy.run(fault.faults, before: receiver.url) { proxy in
            let (outcome, gone) = try await Self.upload(form, through: proxy, carrier, fault)
            let isOther = carrier == .urlSession && outcome == fault.otherOutcome
            #expect(outcome == fault.outcome || isOther, "\(outcome)")
            return (proxy, gone)
        }
        // The proxy has seen every connection closed by now.
        #expect(proxy.seen.count == fault.requests)
        #expect(Set(proxy.seen.map { $0["Idempotency-Key"] }).count == 1)
        for await _ in gone {}
        try proxy.expectNothingOpen(in: folder)
        let remains = try await receiver.end()
        #expect(remains.exitStatus == 0)
        #expect(remains.records.count == fault.records)
        #expect(remains.unfinished.isEmpty)
    }

    static func form(in folder: TemporaryFolder, size: Int) throws -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: try folder.sparseFile("picture.jpg", size: UInt64(size)), named: "picture")
        return form
    }

    /// Uploads with a client that is gone when this returns.
    ///
    /// - Returns: The outcome, and a stream that ends when nothing holds the upload any more.
    private static func upload(
        _ form: MultipartForm, through proxy: FaultProxy, _ carrier: Carrier, _ fault: Case
    ) async throws -> (outcome: Outcome, gone: AsyncStream<Never>) {
        let stalls = fault.faults.contains { if case .stall = $0 { true } else { false } }
        var client = UploadClient(
            transport: carrier.transport(),
            retryPolicy: .withoutDelays(maximumAttempts: fault.retries + 1),
            timeouts: UploadTimeouts(idle: .seconds(stalls ? 30 : 60)))
        client.timeouts.connect = .seconds(100)
        let (witness, gone) = Witness.make()
        do {
            let response = try await client.upload(form, to: proxy.uploads) { _ in _ = witness }
            return (.stored(attempts: response.attempts), gone)
        } catch let error as UploadError {
            guard error.code == .refused else { return (.failed(error.code), gone) }
            return (.refused(error.response?.status.code ?? 0), gone)
        }
    }
}
