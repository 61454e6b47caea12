import Foundation
import PostcardQueueTesting
import Testing

@testable import DiaryKit

/// What an entry shows and offers, and when the Lock Screen shows it.
struct EntryTests {
    private static let done = QueuedUpload.State.done(.init(status: 201, headerFields: [:], body: Data()))
    private static let failure = QueuedUpload.Failure(.expired, "too late")
    private static let states: [QueuedUpload.State] = [
        .waiting, .waitingForNetwork, .sending, .retrying(at: Date(timeIntervalSince1970: 0), because: failure),
        .paused, done, .failed(because: failure), .cancelled,
    ]

    /// Brings an entry into a state, as it happens to the app.
    private static func entry(in state: QueuedUpload.State, of queue: UploadQueue, on phone: TestPhone) async throws
        -> QueuedUpload.ID
    {
        phone.network.isAvailable = state != .waitingForNetwork
        if state == .waiting { try await queue.pause() }
        let id = try await queue.enqueue(MultipartForm(), to: try #require(URL(string: "https://pets.de/uploads")))
        switch state {
        case .retrying: await phone.respond(with: .status(503), to: id)
        case .paused: try await queue.pause(id)
        case .done: await phone.respond(with: .created, to: id)
        case .failed: await phone.respond(with: .status(422), to: id)
        case .cancelled: try await queue.cancel(id)
        default: _ = await phone.handedOver
        }
        return id
    }

    /// The queue decides what is possible, and the buttons must not offer anything else.
    @Test(arguments: states.indices) func `each button of an entry does something`(index: Int) async throws {
        let state = Self.states[index]
        let phone = try TestPhone()
        let queue = await phone.launch {
            UploadQueue(
                directory: DiaryQueue.directory(in: nil, or: phone.directory),
                session: DiaryQueue.session(.app, hasGroup: false))
        }
        let entry = try #require(try await queue.upload(Self.entry(in: state, of: queue, on: phone)))
        #expect(entry.state.name == state.name)
        #expect(!entry.text.isEmpty && !entry.text.contains("%"))
        #expect(entry.actions.isEmpty == (state == Self.done))
        for action in entry.actions {
            let id = try await Self.entry(in: state, of: queue, on: phone)
            switch action {
            case .tryNow, .sendAgain: try await queue.retry(id)
            case .pause: try await queue.pause(id)
            case .resume: try await queue.resume(id)
            case .sendElsewhere: try await queue.retry(id, to: try #require(URL(string: "https://pets.de/other")))
            case .cancel: try await queue.cancel(id)
            }
        }
        _ = await phone.handedOver
    }

    @Test func `an entry that arrived while the app was closed is shown as sent`() async throws {
        let phone = try TestPhone()
        func queue() -> UploadQueue {
            UploadQueue(
                directory: DiaryQueue.directory(in: nil, or: phone.directory),
                session: DiaryQueue.session(.app, hasGroup: false))
        }
        let first = await phone.launch(queue)
        let id = try await Self.entry(in: .sending, of: first, on: phone)
        await phone.kill()
        await phone.respond(with: .created, to: id)
        try await phone.wakeUp { session in
            let queue = queue()
            await queue.handleEvents(forSession: session)
            let entry = try await queue.upload(id)
            #expect(entry?.text == DiaryText.done.localized())
        }
    }

    @Test func `a Live Activity begins, follows and ends with the entries`() {
        var plan = ActivityPlan()
        #expect(plan.step(for: [], isAllowed: true) == .none)
        #expect(plan.step(for: [.preview(Self.done, id: 1), .preview(.paused, id: 2)], isAllowed: true) == .none)
        #expect(plan.step(for: [.preview(.waiting, id: 3)], isAllowed: false) == .none)

        let old = QueuedUpload.preview(Self.done, id: 1)
        let first = [old, .preview(.sending, id: 2), .preview(.waiting, id: 3)]
        #expect(plan.step(for: first, isAllowed: true) == .start(DiaryProgress(Array(first.dropFirst()))))
        // The same hundredth is not worth an update.
        #expect(plan.step(for: first, isAllowed: true) == .none)
        let half = [old, .preview(.sending, fraction: 0.5, id: 2), .preview(.waiting, id: 3)]
        guard case .update(let progress) = plan.step(for: half, isAllowed: true) else {
            Issue.record("There was no update.")
            return
        }
        #expect(progress.percent == 25 && progress.sent == 0 && progress.count == 2)
        #expect(progress.text == "0 of 2 sent" && progress.fraction == 0.25)
        // Another entry joins.
        let more = [old, .preview(Self.done, id: 2), .preview(.sending, id: 3), .preview(.waiting, id: 4)]
        guard case .update(let joined) = plan.step(for: more, isAllowed: true) else {
            Issue.record("There was no update.")
            return
        }
        #expect(joined.sent == 1 && joined.count == 3 && joined.percent == 33)
        // What failed is not sent, and ends the activity all the same.
        let failed = QueuedUpload.preview(.failed(because: Self.failure), id: 3)
        let ended = [old, .preview(Self.done, id: 2), failed, .preview(.paused, id: 4)]
        guard case .end(let last) = plan.step(for: ended, isAllowed: true) else {
            Issue.record("It did not end.")
            return
        }
        #expect(last.sent == 1 && last.count == 3)
        #expect(plan.step(for: ended, isAllowed: true) == .none)
    }

    @Test func `a Live Activity ends when the user forbids it, and one that did not begin may begin again`() {
        var plan = ActivityPlan()
        let uploads = [QueuedUpload.preview(.sending, id: 1)]
        #expect(plan.step(for: uploads, isAllowed: true) == .start(DiaryProgress(uploads)))
        plan.refuse()
        #expect(plan.step(for: uploads, isAllowed: true) == .start(DiaryProgress(uploads)))
        #expect(plan.step(for: uploads, isAllowed: false) == .end(DiaryProgress(uploads)))
        #expect(plan.step(for: uploads, isAllowed: false) == .none)
    }

    @Test func `the app and each run of its extension have a session of their own, and all have one folder`() {
        let (container, own) = (URL(filePath: "/group"), URL(filePath: "/own"))
        #expect(DiaryQueue.directory(in: container, or: own).path == "/group/Uploads")
        #expect(DiaryQueue.directory(in: nil, or: own).path == "/own/Uploads")
        let sessions = DiaryQueue.Sender.allCases.map { DiaryQueue.session($0, hasGroup: true) }
        let nextRun = DiaryQueue.session(.shareExtension, hasGroup: true)
        #expect(Set((sessions + [nextRun]).map(\.identifier)).count == 3)
        #expect(sessions.allSatisfy { $0.identifier.hasPrefix(DiaryQueue.sessionPrefix) })
        #expect(DiaryQueue.session(.app, hasGroup: true).identifier == sessions[0].identifier)
        #expect(sessions.allSatisfy { $0.appGroup == DiaryQueue.appGroup })
        #expect(DiaryQueue.session(.app, hasGroup: false).appGroup == nil)
    }
}
