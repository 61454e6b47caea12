#if canImport(Testing)
import Testing
#endif
#if canImport(XCTest)
import XCTest
#endif

/// A line of a test, at which failures are reported.
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

/// Fails the running test, in Swift Testing or in XCTest.
///
/// In Swift Testing, a test's own task knows its test, but a detached task of the app does not. So the reporter is made
/// in the test, and stores the framework that runs the test.
package struct TestReporter: Sendable {
    private let isSwiftTesting: Bool

    package init() { isSwiftTesting = Self.isInSwiftTesting }

    /// Fails the test.
    ///
    /// - Parameters:
    ///   - message: The mistake, and how to fix it.
    ///   - location: The line at which to show the failure; `nil` if no line of the test is the cause.
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

/// The error of a request that got no response because the test has failed. The request is not retried.
struct TestFailure: Error, CustomStringConvertible {
    let description: String
}
