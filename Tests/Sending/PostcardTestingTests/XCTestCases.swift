import PostcardTesting
import Synchronization
import XCTest

/// The same expectations in XCTest.
final class XCTestCases: XCTestCase {
    /// The failures that a test has so far; `nil` lets failures be the test's own.
    private let messages = Mutex<[String]?>([])

    #if canImport(Darwin)
    override func record(_ issue: XCTIssue) { if !keep(issue.compactDescription) { super.record(issue) } }
    #else
    override func recordFailure(withDescription text: String, inFile file: String, atLine line: Int, expected: Bool) {
        if !keep("\(text) (line \(line))") {
            super.recordFailure(withDescription: text, inFile: file, atLine: line, expected: expected)
        }
    }
    #endif

    private func keep(_ message: String) -> Bool {
        messages.withLock { messages in
            messages?.append(message)
            return messages != nil
        }
    }

    /// What was kept. What fails from now on fails the test.
    private func recorded() -> [String] {
        messages.withLock { messages in
            defer { messages = nil }
            return messages ?? []
        }
    }

    func testAFormAsExpectedFailsNothing() async throws {
        let server = TestServer(.created(["id": "7"]))
        try await PetAPI(server).add("초코", photos: [PetAPI.photo])
        let sent = try server.upload()
        sent.expectText("name", "초코")
        sent.expectFile("petImage", type: .jpeg, bytes: 9...9, hasLocation: false)
        sent.expectNothingElse()
        XCTAssertEqual(recorded(), [])
    }

    func testFailuresQuoteThePart() async throws {
        var server: TestServer? = TestServer(.created(["id": "7"]), .status(503))
        let serverLine = #line - 1
        if let server { try await PetAPI(server).add("초코", photos: []) }
        try server?.upload().expectText("name", "보리")
        let line = #line - 1
        server = nil
        let found = recorded()
        let prefix = found.first?.hasPrefix("failed - ") ?? false ? "failed - " : ""
        let expected = [
            prefix + #"The field "name" is "초코", not "보리". Write: form.append("보리", named: "name")"#
                + " (line \(line))",
            prefix + "The test ended with 1 response left: 503. The app sent 1 request. (line \(serverLine))",
        ]
        XCTAssertEqual(found, expected)
    }

    func testARequestTooManyFails() async throws {
        _ = try? await PetAPI(.none).add("초코", photos: [])
        let found = recorded()
        XCTAssertEqual(found.count, 1)
        XCTAssertTrue(found.first?.contains("The app sent a request, and the test expects none") ?? false, "\(found)")
    }
}
