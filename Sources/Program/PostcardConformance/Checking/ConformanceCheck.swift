package import HTTPTypes
package import PostcardWire

/// The strength of a requirement in the resumable upload draft (BCP 14).
///
/// A sentence without a keyword of BCP 14 counts as `should`.
package enum RequirementLevel: String, Sendable, Hashable, CaseIterable {
    case must = "MUST"
    case mustNot = "MUST NOT"
    case should = "SHOULD"
    case shouldNot = "SHOULD NOT"
    case may = "MAY"

    /// Whether a server that violates a sentence of this level does not conform.
    package var isAbsolute: Bool { self == .must || self == .mustNot }
}

package enum CheckOutcome: String, Sendable, Hashable, CaseIterable {
    case ok
    case violated
    /// The sentence does not apply to this server.
    case notApplicable = "not applicable"
    /// The server did not behave as the check needs, so nothing could be checked.
    case unchecked = "could not be checked"
}

/// A numbered check of a sentence in "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload, the editors'
/// copy of 15 July 2026, interop version 9).
package struct ConformanceCheck: Sendable {
    /// The number of the check, which stays the same when checks are added. The hundreds stand for the topic.
    package let number: Int
    /// The draft's section, such as 4.2.2, or B for the appendix on versions.
    package let section: String
    package let level: RequirementLevel
    /// The draft's words, without references. An ellipsis stands for omitted words.
    package let sentence: String
    let content: UploadContent.Kind
    let run: @Sendable (CheckSession) async throws -> CheckFinding

    /// Makes a check from requests. The responses of requests with expectations are judged.
    init(
        _ number: Int, _ section: String, _ level: RequirementLevel, _ sentence: String,
        content: UploadContent.Kind = .whole, _ steps: Step...
    ) {
        self.init(number, section, level, sentence, content: content) { session in try await session.judge(steps) }
    }

    init(
        _ number: Int, _ section: String, _ level: RequirementLevel, _ sentence: String,
        content: UploadContent.Kind = .whole, run: @escaping @Sendable (CheckSession) async throws -> CheckFinding
    ) {
        self.number = number
        self.section = section
        self.level = level
        self.sentence = sentence
        self.content = content
        self.run = run
    }

    /// Makes a check with simultaneous requests. After a violation, the check is repeated with longer waits, because a
    /// busy server may process requests in another order.
    static func concurrent(
        _ number: Int, _ section: String, _ level: RequirementLevel, _ sentence: String,
        run: @escaping @Sendable (CheckSession) async throws -> CheckFinding
    ) -> ConformanceCheck {
        ConformanceCheck(number, section, level, sentence) { session in try await session.repeating(run) }
    }

    /// Makes a check that a server ignores invalid values of a field: the effect must be the same as without the field.
    /// The check makes the request `step` without the field and with it, each time after the requests of `setUp`.
    static func ignoring(
        _ number: Int, _ section: String, _ sentence: String, _ name: String, _ values: [String],
        setUp: [Step] = [], step: Step
    ) -> ConformanceCheck {
        ConformanceCheck(number, section, .must, sentence) { session in
            var signatures: [String] = []
            let with = values.reduce(step.without(name)) { $0.adding(name, $1) }
            for step in [step.without(name), with] {
                session.forgetUpload()
                for step in setUp { try await session.succeed(step) }
                signatures.append(try await session.signature(of: step))
            }
            let value = values.map { session.shown($0) }.joined(separator: "; ")
            return CheckFinding(
                signatures[0] == signatures[1] ? .ok : .violated,
                "without \(name): \(signatures[0]); with '\(value)': \(signatures[1])")
        }
    }
}

/// The outcome of a check, with the observation behind it.
struct CheckFinding: Sendable {
    let outcome: CheckOutcome
    let seen: String

    init(_ outcome: CheckOutcome, _ seen: String) {
        self.outcome = outcome
        self.seen = seen
    }
}

/// The reason why a check ends without a finding.
enum CheckInterruption: Error {
    case notApplicable(String)
    case unchecked(String)
}

extension ConformanceCheck {
    /// The versions of the draft that have the check's requirement. In other versions, the check is not applicable.
    package var versions: ClosedRange<ResumptionVersion> {
        let last: ResumptionVersion = Self.isAboutNumbers(number) ? .latestNumbered : .newest
        return (Self.first.first { $0.numbers.contains(number) }?.version ?? .interop3)...last
    }

    /// Whether a check is about the interop version in messages. The final standard will have no such version.
    private static func isAboutNumbers(_ number: Int) -> Bool { (811...822).contains(number) }

    /// The first version with a requirement, for checks that do not apply to all versions of the draft.
    private static let first: [(numbers: ClosedRange<Int>, version: ResumptionVersion)] = [
        (106...106, .interop7), (211...219, .interop8), (231...240, .interop8), (251...257, .interop8),
        (261...268, .interop7), (301...304, .interop6), (313...316, .interop8), (321...326, .interop6),
        (327...327, .interop9), (331...339, .interop8), (340...340, .interop9), (406...406, .interop8),
        (411...414, .interop7), (441...443, .interop8), (521...525, .interop7), (531...532, .interop8),
        (561...565, .interop9), (603...608, .interop7), (621...628, .interop7),
        (679...679, .interop7), (680...680, .interop9), (692...693, .interop9), (701...706, .interop7),
        (707...708, .interop8), (709...709, .interop8), (711...714, .interop6), (804...804, .interop8),
        (807...808, .interop8), (822...822, .interop5), (831...833, .interop5), (911...914, .interop6),
        (916...918, .interop7), (921...932, .interop6), (951...951, .interop9),
    ]
}

package struct CheckSettings: Sendable {
    /// Additional header fields of every request, such as `Authorization`.
    package var headerFields = HTTPFields()
    /// The version of the resumable upload draft in the requests. The server must meet its requirements.
    package var version = ResumptionVersion.latestNumbered
    /// The maximum wait for a response. Defaults to 10 seconds.
    package var timeout = Duration.seconds(10)
    /// The minimum wait before concluding that the server sends no interim response. Defaults to a second.
    package var quietTime = Duration.seconds(1)
    /// The waits after a request that the server may still be receiving: the first for the first run of a check, the
    /// others for its repetitions after a violation. Defaults to 0.15, 1 and 3 seconds.
    package var settlingTimes: [Duration] = [.milliseconds(150), .seconds(1), .seconds(3)]

    package init() {}
}
