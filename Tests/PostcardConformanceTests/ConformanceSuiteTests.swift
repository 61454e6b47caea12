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
        #expect(report.count(of: .ok) > 150)
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
