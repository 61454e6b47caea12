import PostcardTestSupport
import Testing

@testable import postcard

@Suite(.timeLimit(.minutes(10)))
struct TimeSpanTests {
    private static let times: [(text: String, seconds: Double)] = [
        ("1s", 1), ("90m", 5400), ("12h", 43200), ("30d", 2_592_000), ("2w", 1_209_600), ("0.5d", 43200),
        ("1.5h", 5400), ("36500d", 3_153_600_000),
    ]

    @Test(arguments: times) func `a time is a number and a unit`(text: String, seconds: Double) {
        #expect(TimeSpan(argument: text)?.duration == .seconds(seconds))
    }

    @Test(arguments: [
        "", "d", "30", "30 d", "-1d", "+1d", "1e9s", "1.2.3d", "0d", "0.5s", "36501d", "30D", "1h30m", "infd", "nand",
        "٣d",
        ".d",
    ])
    func `other texts are not times`(text: String) {
        #expect(TimeSpan(argument: text) == nil)
    }

    @Test(arguments: [["--keep-for", "1x"], ["--keep-at-most", "-1"]])
    func `serve does not start with a limit that it cannot read`(options: [String]) async throws {
        let ending = try await Program.run(["serve"] + options)
        #expect(ending.status == 64)
        #expect(ending.messages.contains(options[0]))
    }
}
