import Foundation
import PostcardTestSupport
import Testing

@Suite("Receivers in other servers")
struct FrameworkTests {
    @Test(arguments: ["FlyingFoxReceiver", "NIOReceiver", "HummingbirdReceiver"])
    func `each program connects its server with a receiver in ten lines`(of program: String) throws {
        let lines = try Document("Tests/Frameworks/Sources/\(program)/\(program).swift").text
            .components(separatedBy: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        let begin = try #require(lines.firstIndex(of: "// begin"))
        let end = try #require(lines.firstIndex(of: "// end"))
        #expect((5...10).contains(end - begin - 1), "\(end - begin - 1)")
    }
}
