import PostcardReceiver
import PostcardServer
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct ReceiverTests {
    @Test("A port that is taken is an error that says so in the system's words")
    func takenPort() async throws {
        try await withReceiver { running in
            try await withTemporaryDirectory { directory in
                var receiver = Receiver(directory: directory)
                receiver.port = running.port
                let taken = receiver
                await #expect(throws: Errno.addressInUse) { () async throws -> Void in try await taken.run() }
            }
        }
    }
}
