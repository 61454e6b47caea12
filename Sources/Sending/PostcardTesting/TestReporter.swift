#if canImport(Testing)
import Testing
#endif
#if canImport(XCTest)
import XCTest
#endif

/// A line of a test.
package struct TestLocation: Sendable {
    let fileID: String
    let filePath: StaticString
    let line: UInt

    package init(fileID: String, filePath: StaticString, line: UInt) {
        self.fileID = fileID
        self.filePath = filePath
        self.line = line
    }
}

/// Fails the test that runs, in Swift Testing or in XCTest.
///
/// A test's own task knows its test in Swift Testing, and a detached task of the app does not. So the reporter is made
/// in the test, and remembers which framework runs it.
package struct TestReporter: Sendable {
    private let isSwiftTesting: Bool

    package init() { isSwiftTesting = Self.isInSwiftTesting }

    /// Fails the test.
    ///
    /// - Parameters:
    ///   - message: What is wrong, and what to do.
    ///   - location: The line that the failure is shown at; `nil` if no line of the test is to blame.
    package func fail(_ message: String, at location: TestLocation?) {
        #if canImport(Testing)
        if isSwiftTesting || Self.isInSwiftTesting {
            let line = location.map {
                SourceLocation(
                    fileID: $0.fileID, filePath: String(describing: $0.filePath), line: Int($0.line), column: 1)
            }
            Issue.record(Comment(rawValue: message), sourceLocation: line ?? #_sourceLocation)
            return
        }
        #endif
        #if canImport(XCTest)
        if let location {
            XCTFail(message, file: location.filePath, line: location.line)
        } else {
            XCTFail(message)
        }
        #endif
    }

    private static var isInSwiftTesting: Bool {
        #if canImport(Testing)
        Test.current != nil
        #else
        false
        #endif
    }
}

/// Why the app's request got no answer from the test. No retry follows it.
struct TestFailure: Error, CustomStringConvertible {
    let description: String
}
