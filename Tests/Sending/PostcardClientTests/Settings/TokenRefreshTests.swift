import Synchronization
import Testing

@testable import PostcardClient

@Suite struct TokenRefreshTests {
    /// An upload that begins to wait just as the token arrives must not request another one.
    @Test(arguments: 0..<50)
    func `one token is got for all, whenever they come`(round: Int) async throws {
        let refused = Mutex<[String?]>([])
        let tokens = TokenRefresh("expired") { token in
            refused.withLock { $0.append(token) }
            return "fresh"
        }
        try await withThrowingTaskGroup { group in
            for _ in 0..<100 {
                group.addTask {
                    try await tokens.replace { $0 == "expired" }
                    #expect(try await tokens.token() == "fresh")
                }
            }
            try await group.waitForAll()
        }
        #expect(refused.withLock { $0 } == ["expired"])
    }
}
