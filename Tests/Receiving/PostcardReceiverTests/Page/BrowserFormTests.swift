import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

/// What browsers really send. `Tests/Browser/forms.js` makes the forms and compares them.
@Suite(.timeLimit(.minutes(10)))
struct BrowserFormTests {
    private static let script = Repository.url("Tests/Browser/check.py").path(
        percentEncoded: false)

    @Test
    func `a thousand random forms that Chromium posts are read as they were meant`() async throws {
        try Chromium.require()
        try await withReceiver { receiver in
            let result = try await Program.run(Chromium.python, [Self.script, "forms", receiver.url])
            #expect(result.status == 0, "\(result.messages)")
        }
    }
}
