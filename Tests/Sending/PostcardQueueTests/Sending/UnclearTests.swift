import Foundation
import HTTPTypes
import PostcardTestSupport
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// Uploads that the user is asked about, instead of sending twice what the server may have.
@Suite struct UnclearTests {
    typealias Fate = QueueWorld.Fate

    private static let asking: RetryPolicy = {
        var policy = RetryPolicy.exact
        policy.repeatsUnclear = false
        return policy
    }()

    private static func world(_ session: String?, _ policy: RetryPolicy) -> QueueWorld {
        var world = QueueWorld(QueueMachine.Rules(session: session, retryPolicy: policy, maximumConcurrentUploads: 3))
        world.seconds = 10
        world.enqueue()
        return world
    }

    /// What becomes of an attempt, who sent it, and whether the server may have the form.
    @Test(
        arguments: [
            ([.lost], nil, true), ([.lost], "session", true), ([.interrupted(.forceQuit)], "session", true),
            ([.interrupted(.cancelled)], "session", true), ([.forgotten], "session", true),
            // The system repeats a request whose connection broke, and does not report it.
            ([.cut], "session", true), ([.refused(409)], "session", true),
            ([.cut], nil, false), ([.refused(503)], nil, false), ([.refused(503)], "session", false),
            ([.refusedToBegin], "session", false), ([.unreachable], nil, false),
            // It may have sent the form before, and not have reported that.
            ([.unreachable], "session", true),
            // What was lost before is not forgotten.
            ([.refused(503), .lost], nil, true), ([.cut, .cut, .lost], nil, true),
        ] as [([Fate], String?, Bool)])
    func `a form that the server may have is not sent again, and every other one is`(
        fates: [Fate], session: String?, asks: Bool
    ) throws {
        var world = Self.world(session, Self.asking)
        world.script = fates
        if case .forgotten = fates[0] {
            world.wake()
            world.advance(to: world.now + 10)
            world.kill()
        }
        world.rest()
        guard asks else {
            #expect(world.uploads[0].state.name == "done", "\(world.trace)")
            return
        }
        guard case .failed(let failure) = world.uploads[0].state else { Issue.record("\(world.trace)"); return }
        #expect(failure.code == .unclear && failure.delivery.mayHaveArrived && failure.advice != nil)
        #expect(world.begins.count == fates.count)
        // The user says that it has not arrived. That holds for what the server then refuses.
        world.script = [.refused(503)]
        world.change(0, to: "retry")
        world.rest()
        #expect(world.uploads[0].state.name == "done", "\(world.trace)")
        #expect(world.begins.count == fates.count + 2)
        // The default policy sends the form again without asking.
        var repeating = Self.world(session, .exact)
        repeating.script = fates
        if case .forgotten = fates[0] {
            repeating.wake()
            repeating.advance(to: repeating.now + 10)
            repeating.kill()
        }
        repeating.rest()
        #expect(repeating.uploads[0].state.name == "done", "\(repeating.trace)")
    }

    // MARK: - In the database

    private func sending(_ folder: TemporaryFolder) async throws -> (UploadQueue, QueuedUpload.ID) {
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let id = try await queue.enqueue(
            QueuedForms.form(), to: try #require(URL(string: "http://127.0.0.1:1/uploads")))
        try await queue.store.database.write { db in
            _ = try db.claimUpload(allowedBy: [0], excluding: [], at: Date())
            try db.noteAttempt(of: id)
        }
        return (queue, id)
    }

    @Test(arguments: [true, false])
    func `what a process was sending when it ended is asked about, or sent again`(asks: Bool) async throws {
        let (queue, id) = try await sending(TemporaryFolder())
        try await queue.store.database.write {
            try $0.recoverUploads(failingUnclear: asks ? Self.asking.unclearFailure : nil)
        }
        let state = try #require(try await queue.upload(id)?.state)
        guard asks else { return #expect(state == .waiting) }
        guard case .failed(let failure) = state else { Issue.record("\(state)"); return }
        #expect(failure.code == .unclear && failure.delivery.mayHaveArrived)
    }

    @Test func `the user says that the server has it`() async throws {
        let (queue, id) = try await sending(TemporaryFolder())
        let early = await #expect(throws: UploadQueueError.self) { try await queue.confirmArrival(of: id) }
        #expect(early?.code == .wrongState)
        try await queue.store.database.write { try $0.recoverUploads(failingUnclear: Self.asking.unclearFailure) }
        try await queue.confirmArrival(of: id)
        guard case .done(let response) = try await queue.upload(id)?.state else { Issue.record("not done"); return }
        #expect(response.status == 0)
        #expect(try await queue.doneCount == 1)
        let again = await #expect(throws: UploadQueueError.self) { try await queue.confirmArrival(of: id) }
        #expect(again?.code == .wrongState)
    }

    // MARK: - In this process

    @Test(arguments: [(UploadError.Delivery.responseLost, false), (.neverArrived, true), (.responseLost, true)])
    func `an upload of a client is not repeated either`(delivery: UploadError.Delivery, repeats: Bool) throws {
        var policy = RetryPolicy.exact
        policy.repeatsUnclear = delivery == .neverArrived ? false : repeats
        let url = try #require(URL(string: "http://127.0.0.1/"))
        var error = UploadError(.connectionLost, "It broke.")
        error.delivery = delivery
        let failure = RetrySchedule.Failure(error)
        var history = RetrySchedule.History()
        history.add(failure)
        var generator = SystemRandomNumberGenerator()
        let decision = RetrySchedule(policy, for: url).next(
            after: failure, history, elapsed: .zero, using: &generator)
        if case .retry = decision { #expect(repeats) } else { #expect(!repeats) }
    }
}
