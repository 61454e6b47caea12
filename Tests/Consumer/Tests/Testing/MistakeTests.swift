import Pets
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct MistakeTests {
    @Test(arguments: PetAPI.Mistake.allCases) func `a mistake fails with what to write`(mistake: PetAPI.Mistake)
        async throws
    {
        let messages = Mutex<[String]>([])
        try? await withKnownIssue(isIntermittent: true) {
            try await PlantedMistakes.test(mistake)
        } matching: { issue in
            if let comment = issue.comments.first { messages.withLock { $0.append(comment.rawValue) } }
            return true
        }
        #expect(messages.withLock { $0 } == PlantedMistakes.messages[mistake])
    }
}
