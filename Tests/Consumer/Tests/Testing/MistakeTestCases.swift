import Pets
import Synchronization
import XCTest

nonisolated final class MistakeTestCases: XCTestCase {
    /// The failures of the mistake that is tried; `nil` lets failures be the test's.
    private let messages = Mutex<[String]?>(nil)

    #if canImport(Darwin)
    override func record(_ issue: XCTIssue) { if !keep(issue.compactDescription) { super.record(issue) } }
    #else
    override func recordFailure(withDescription text: String, inFile file: String, atLine line: Int, expected: Bool) {
        if !keep(text) { super.recordFailure(withDescription: text, inFile: file, atLine: line, expected: expected) }
    }
    #endif

    private func keep(_ message: String) -> Bool {
        let prefix = "failed - "
        let text = String(message.dropFirst(message.hasPrefix(prefix) ? prefix.count : 0))
        return messages.withLock { messages in
            messages?.append(text)
            return messages != nil
        }
    }

    func testAMistakeFailsWithWhatToWrite() async throws {
        for mistake in PetAPI.Mistake.allCases {
            messages.withLock { $0 = [] }
            try? await PlantedMistakes.test(mistake)
            let found = messages.withLock { messages in
                defer { messages = nil }
                return messages
            }
            XCTAssertEqual(found, PlantedMistakes.messages[mistake])
        }
    }
}
