import Foundation
import GRDB
import HTTPTypes
import PostcardForm
import PostcardTestSupport
import Testing

@testable import DiaryKit
@testable import PostcardQueue

/// What an entry shows and offers, and when the Lock Screen shows it.
struct EntryTests {
    private static func upload(_ id: Int64, _ state: QueuedUpload.State, sent: Int64 = 0) -> QueuedUpload {
        QueuedUpload(
            id: id, url: URL(filePath: "/"), method: .post, state: state, parts: [], bytesSent: sent, totalBytes: 100,
            attempts: 1, conditions: UploadConditions(), enqueued: Date(timeIntervalSince1970: 0))
    }

    private static let done = QueuedUpload.State.done(.init(status: 201, headerFields: [:], body: Data()))
    private static let failure = QueuedUpload.Failure(.expired, "too late")
    private static let states: [QueuedUpload.State] = [
        .waiting, .waitingForNetwork, .sending, .retrying(at: Date(timeIntervalSince1970: 0), because: failure),
        .paused, done, .failed(because: failure), .cancelled,
    ]

    /// The queue decides what is possible, and the buttons must not offer anything else.
    @Test(arguments: states.indices) func `each button of an entry does something`(index: Int) async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let url = try #require(URL(string: "https://pets.de/uploads"))
        let state = Self.states[index]
        let upload = Self.upload(1, state)
        #expect(!upload.text.isEmpty && !upload.text.contains("%"))
        #expect(upload.actions.isEmpty == (state == Self.done))
        for action in upload.actions {
            let id = try await queue.enqueue(MultipartForm(), to: url)
            try await queue.opening.store().database.write { db in
                try db.execute(
                    sql: "UPDATE upload SET state = ? WHERE id = ?", arguments: [state.kind.rawValue, id])
            }
            switch action {
            case .tryNow, .sendAgain: try await queue.retry(id)
            case .pause: try await queue.pause(id)
            case .resume: try await queue.resume(id)
            case .sendElsewhere: try await queue.retry(id, to: url.appending(path: "other"))
            case .cancel: try await queue.cancel(id)
            }
        }
    }

    @Test func `a Live Activity begins, follows and ends with the entries`() {
        var plan = ActivityPlan()
        #expect(plan.step(for: [], isAllowed: true) == .none)
        #expect(plan.step(for: [Self.upload(1, Self.done), Self.upload(2, .paused)], isAllowed: true) == .none)
        #expect(plan.step(for: [Self.upload(3, .waiting)], isAllowed: false) == .none)

        let old = Self.upload(1, Self.done)
        let first = [old, Self.upload(2, .sending), Self.upload(3, .waiting)]
        #expect(plan.step(for: first, isAllowed: true) == .start(DiaryProgress(Array(first.dropFirst()))))
        // The same hundredth is not worth an update.
        #expect(plan.step(for: first, isAllowed: true) == .none)
        let half = [old, Self.upload(2, .sending, sent: 50), Self.upload(3, .waiting)]
        guard case .update(let progress) = plan.step(for: half, isAllowed: true) else {
            Issue.record("There was no update.")
            return
        }
        #expect(progress.percent == 25 && progress.sent == 0 && progress.count == 2)
        #expect(progress.text == "0 of 2 sent" && progress.fraction == 0.25)
        // Another entry joins.
        let more = [old, Self.upload(2, Self.done), Self.upload(3, .sending), Self.upload(4, .waiting)]
        guard case .update(let joined) = plan.step(for: more, isAllowed: true) else {
            Issue.record("There was no update.")
            return
        }
        #expect(joined.sent == 1 && joined.count == 3 && joined.percent == 33)
        // What failed is not sent, and ends the activity all the same.
        let failed = Self.upload(3, .failed(because: Self.failure))
        let ended = [old, Self.upload(2, Self.done), failed, Self.upload(4, .paused)]
        guard case .end(let last) = plan.step(for: ended, isAllowed: true) else {
            Issue.record("It did not end.")
            return
        }
        #expect(last.sent == 1 && last.count == 3)
        #expect(plan.step(for: ended, isAllowed: true) == .none)
    }

    @Test func `a Live Activity ends when the user forbids it, and one that did not begin may begin again`() {
        var plan = ActivityPlan()
        let uploads = [Self.upload(1, .sending)]
        #expect(plan.step(for: uploads, isAllowed: true) == .start(DiaryProgress(uploads)))
        plan.refuse()
        #expect(plan.step(for: uploads, isAllowed: true) == .start(DiaryProgress(uploads)))
        #expect(plan.step(for: uploads, isAllowed: false) == .end(DiaryProgress(uploads)))
        #expect(plan.step(for: uploads, isAllowed: false) == .none)
    }

    @Test func `each sender has a session of its own, and both have one folder`() {
        let (container, own) = (URL(filePath: "/group"), URL(filePath: "/own"))
        #expect(DiaryQueue.directory(in: container, or: own).path == "/group/Uploads")
        #expect(DiaryQueue.directory(in: nil, or: own).path == "/own/Uploads")
        let sessions = DiaryQueue.Sender.allCases.map { DiaryQueue.session($0, hasGroup: true) }
        #expect(Set(sessions.map(\.identifier)).count == 2)
        #expect(sessions.allSatisfy { $0.appGroup == DiaryQueue.appGroup })
        #expect(DiaryQueue.session(.app, hasGroup: false).appGroup == nil)
    }
}
