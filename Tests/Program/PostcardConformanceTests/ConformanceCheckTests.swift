import Foundation
import Testing

@testable import PostcardConformance

@Suite struct ConformanceCheckTests {
    private let checks = ConformanceSuite.checks

    @Test func `there are at least 120, and each number is one check's`() {
        #expect(checks.count >= 120)
        #expect(checks.map(\.number) == checks.map(\.number).sorted())
        #expect(Set(checks.map(\.number)).count == checks.count)
    }

    @Test func `each names a section and a sentence that has the word of its level`() {
        for check in checks {
            #expect(check.section.wholeMatch(of: /[0-9]+(\.[0-9]+)*|B/) != nil, "\(check.number)")
            #expect((10...260).contains(check.sentence.count), "\(check.number)")
            if check.level.isAbsolute { #expect(check.sentence.contains("MUST"), "\(check.number)") }
            // Other words of the same strength, and sentences without any, count as SHOULD.
            if check.sentence.contains("SHOULD NOT") { #expect(check.level == .shouldNot, "\(check.number)") }
            #expect(!check.sentence.contains("`") && !check.sentence.contains("{"), "\(check.number)")
        }
    }

    @Test func `a result in JSON has the keys that scripts rely on`() throws {
        let check = try #require(checks.first)
        let result = ConformanceResult(check: check, outcome: .notApplicable, seen: "nothing")
        let data = try JSONEncoder().encode([result])
        let array = try #require(try JSONSerialization.jsonObject(with: data) as? [[String: Any]])
        #expect(Set(array[0].keys) == ["id", "section", "sentence", "level", "outcome", "seen"])
        #expect(array[0]["id"] as? Int == check.number)
        #expect(array[0]["level"] as? String == check.level.rawValue)
        #expect(array[0]["outcome"] as? String == "not applicable")
    }

    @Test(arguments: [
        (RequirementLevel.must, CheckOutcome.violated, false), (.mustNot, .violated, false), (.should, .violated, true),
        (.must, .ok, true), (.must, .notApplicable, true), (.must, .unchecked, false),
    ])
    func `a server conforms unless a MUST is violated, or nothing was checked`(
        level: RequirementLevel, outcome: CheckOutcome, conforms: Bool
    ) throws {
        let check = ConformanceCheck(1, "4", level, "A sentence.") { _ in CheckFinding(.ok, "") }
        let report = ConformanceReport(results: [ConformanceResult(check: check, outcome: outcome, seen: "")])
        #expect(report.conforms == conforms)
    }
}
