import Foundation
import PostcardFoundation
import PostcardSendingSupport
import PostcardTesting
import Synchronization
import Testing

@testable import PostcardClient

/// An upload of an app that the user leaves.
@Suite(.timeLimit(.minutes(10))) struct BackgroundTests {
    /// A system that suspends the app when the test says so.
    private final class System: Sendable {
        struct State: Equatable {
            var begun = 0
            var ended = 0
        }

        private let state = Mutex(State())
        private let expire = Mutex<(@Sendable () -> Void)?>(nil)
        let grants: Bool

        init(grants: Bool = true) {
            self.grants = grants
        }

        var counts: State { state.withLock(\.self) }

        func suspend() { expire.withLock(\.self)?() }

        var activity: ExpiringActivity {
            ExpiringActivity(
                SystemActivity { [self] handler in
                    guard grants else { return nil }
                    state.withLock { $0.begun += 1 }
                    expire.withLock { $0 = handler }
                    return { [self] in state.withLock { $0.ended += 1 } }
                })
        }
    }

    private func upload(
        _ system: System, continues: Bool = true, refusals: Int = 0, received: @escaping @Sendable () -> Void
    ) async throws {
        var form = MultipartForm()
        form.append("초코", named: "name")
        let server = TestServer { upload in
            received()
            return upload.attempt <= refusals ? .status(503) : .created
        }
        var client = UploadClient(transport: server, retryPolicy: .withoutDelays(maximumAttempts: 2))
        client.network.continuesInBackground = continues
        client.network.activity = system.activity
        defer { #expect(!server.uploads.isEmpty) }
        try await client.upload(form, to: try #require(URL(string: "https://example.com/")))
    }

    @Test(arguments: [0, 1, 2])
    func `one activity lasts from before the first attempt to after the last`(refusals: Int) async throws {
        let system = System()
        let result = await Result {
            try await upload(system, refusals: refusals) { #expect(system.counts == .init(begun: 1, ended: 0)) }
        }
        #expect(((try? result.get()) != nil) == (refusals < 2))
        #expect(system.counts == .init(begun: 1, ended: 1))
    }

    @Test func `by default the system is asked for nothing`() async throws {
        let system = System()
        try await upload(system, continues: UploadClient().network.continuesInBackground) {}
        #expect(system.counts == .init(begun: 0, ended: 0))
    }

    @Test func `an activity that expires ends once, and the upload continues when the app runs again`() async throws {
        let system = System()
        try await upload(system) {
            system.suspend()
            #expect(system.counts == .init(begun: 1, ended: 1))
        }
        #expect(system.counts == .init(begun: 1, ended: 1))
    }

    @Test func `an upload begins although the system grants nothing`() async throws {
        let received = Mutex(0)
        try await upload(System(grants: false)) { received.withLock { $0 += 1 } }
        #expect(received.withLock(\.self) == 1)
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ work: () async throws -> Success) async {
        do { self = .success(try await work()) } catch { self = .failure(error) }
    }
}
