import NIOCore
import NIOPosix
import PostcardWire
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardConformance

/// The suite finds what a server does wrong, and nothing else.
@Suite(.timeLimit(.minutes(10))) struct ConformanceSuiteTests {
    private func report(
        on deviation: Deviation?, numbers: [Int]? = nil, content: ContentSource = .form
    ) async throws -> ConformanceReport {
        try await ModelServer.run(deviation) { address in
            var suite = ConformanceSuite(server: address)
            suite.content = content
            suite.settings.version = deviation?.version ?? .latestNumbered
            suite.settings.quietTime = .milliseconds(200)
            // A mistake may be that nothing happens. Without mistakes nothing is waited for.
            suite.settings.timeout = deviation == nil ? .seconds(60) : .seconds(3)
            if deviation != nil { suite.settings.settlingTimes = [.milliseconds(150)] }
            return try await suite.run(
                ConformanceSuite.checks.filter { numbers?.contains($0.number) ?? true })
        }
    }

    @Test(arguments: [
        ContentSource.form, .octets, .given(contentType: "text/plain", bytes: Array("some text of a file".utf8)),
    ])
    func `a server that keeps to the draft violates nothing`(content: ContentSource) async throws {
        let report = try await report(on: nil, content: content)
        for result in report.results where result.outcome == .violated || result.outcome == .unchecked {
            Issue.record("\(result.check.number) \(result.outcome.rawValue): \(result.seen)")
        }
        #expect(report.conforms)
        #expect(report.count(of: .ok) > 130)
    }

    @Test func `nothing is sent to an upload resource on another server`() async throws {
        let connections = Mutex(0)
        let report = try await withListener(on: MultiThreadedEventLoopGroup.singleton.next()) { _ in
            connections.withLock { $0 += 1 }
        } while: { port in
            try await ModelServer.run(uploadsAt: "http://127.0.0.1:\(port)") { address in
                var suite = ConformanceSuite(server: address)
                suite.settings.quietTime = .milliseconds(200)
                let report = try await suite.run()
                for result in report.results where result.outcome == .unchecked {
                    #expect(result.seen.contains("http://127.0.0.1:\(port)/uploads/"), "\(result.check.number)")
                }
                return report
            }
        }
        #expect(connections.withLock { $0 } == 0)
        // What is offered can be judged without it, and what is there cannot.
        let outcomes = Dictionary(uniqueKeysWithValues: report.results.map { ($0.check.number, $0.outcome) })
        #expect(outcomes[402] == .ok)
        for number in [501, 661, 723, 734, 1102] { #expect(outcomes[number] == .unchecked, "\(number)") }
    }

    @Test(arguments: Deviation.allCases)
    func `each mistake is found by the checks of the sentence that it violates`(deviation: Deviation) async throws {
        let report = try await report(on: deviation, numbers: deviation.checks)
        #expect(report.results.count == deviation.checks.count)
        for result in report.results where result.outcome != .violated {
            Issue.record("\(result.check.number) \(result.outcome.rawValue): \(result.seen)")
        }
    }
}
