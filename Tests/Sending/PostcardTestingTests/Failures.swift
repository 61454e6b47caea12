import Synchronization
import Testing

/// The messages with which some code fails its test.
func failures(_ body: () async throws -> Void) async -> [String] {
    let messages = Mutex<[String]>([])
    try? await withKnownIssue(isIntermittent: true) {
        try await body()
    } matching: { issue in
        messages.withLock { $0.append(issue.comments.first?.rawValue ?? "\(issue)") }
        return true
    }
    return messages.withLock { $0 }
}
