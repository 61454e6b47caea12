import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// Presigned forms that expire before a background session has sent them.
@Suite(.timeLimit(.minutes(10))) struct PresignedHandOverTests {
    private struct Trouble: Error {}

    private static let pet = #"["starts-with","$x-amz-meta-pet",""]"#

    private let folder: TemporaryFolder
    private let kept = KeptTransfers()
    private let clock = SteppedClock()
    private let identifier = UUID().uuidString
    private let url: URL

    init() throws {
        folder = try TemporaryFolder()
        url = try #require(URL(string: "https://bucket.example.com/"))
    }

    private func queue(
        _ presignedForm: (@Sendable (QueuedUpload) async throws -> PresignedForm)? = nil
    ) -> UploadQueue {
        var session = BackgroundSession(identifier: identifier)
        session.headerFields = { _ in [.authorization: "Bearer of the app"] }
        session.presignedForm = presignedForm
        return UploadQueue(
            directory: folder.url.appending(path: "queue"), session: session, service: KeepingService(kept),
            time: clock.time)
    }

    /// Enqueues a photo with a form that expires in a minute.
    private func enqueue(in queue: UploadQueue) async throws -> QueuedUpload.ID {
        let end = clock.date.addingTimeInterval(60)
        let old = PresignedQueueTests.presigned("photos/old", to: url, until: end, Self.pet)
        let form = PresignedQueueTests.form(try folder.file("a.jpg", size: 3000), ("x-amz-meta-pet", "초코"))
        return try await queue.withoutSession.enqueue(form, with: old, tag: "초코")
    }

    private func fresh() -> PresignedForm { PresignedQueueTests.presigned("photos/new", to: url, Self.pet) }

    private func bodies() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.url.appending(path: "queue/bodies").path)
    }

    /// What the only transfer sends.
    private func sent() throws -> String {
        let transfer = try #require(kept.handedOver.first)
        let body = try Data(contentsOf: transfer.body)
        #expect(kept.handedOver.count == 1 && transfer.length == Int64(body.count))
        #expect(transfer.headerFields[.authorization] == nil && transfer.headerFields[.idempotencyKey] == nil)
        let boundary = try #require(transfer.headerFields[.contentType]?.split(separator: "boundary=").last)
        let text = String(decoding: body, as: UTF8.self)
        #expect(text.hasPrefix("--\(boundary)\r\n"))
        return text
    }

    private func denial() -> AttemptEnd { .response(status: 403, headerFields: [:], url: url, method: .post) }

    private static let expired = Data("<Error><Code>AccessDenied</Code><Message>Policy expired.</Message></Error>".utf8)

    @Test func `a form that has expired is replaced when it is handed over, and counts as one attempt`() async throws {
        let tags = Mutex<[String]>([])
        let queue = queue { upload in
            let tag = try upload.tag(as: String.self) ?? ""
            tags.withLock { $0.append(tag) }
            return fresh()
        }
        let id = try await enqueue(in: queue)
        let old = try bodies()
        clock.advance(by: .seconds(61))
        try await queue.handOver()
        let text = try sent()
        #expect(text.contains("photos/new") && text.contains("secret-photos/new") && text.contains("초코"))
        #expect(!text.contains("photos/old"))
        #expect(try bodies().count == 1 && bodies() != old)
        #expect(tags.withLock { $0 } == ["초코"])
        let upload = try #require(try await queue.upload(id))
        #expect(upload.state == .sending && upload.attempts == 1 && upload.parts.last?.filename == "a.jpg")
        try kept.end(.response(status: 204, headerFields: [:], url: url, method: .post))
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state.isDone == true)
        #expect(try bodies() == [])
        await queue.disconnect()
    }

    @Test func `a form that a store calls expired is replaced once`() async throws {
        let calls = Mutex(0)
        let queue = queue { _ in
            calls.withLock { $0 += 1 }
            return fresh()
        }
        let id = try await enqueue(in: queue)
        try await queue.handOver()
        #expect(try sent().contains("photos/old"))
        try kept.end(denial(), body: Self.expired)
        try await queue.handOver()
        #expect(try sent().contains("secret-photos/new"))
        try kept.end(denial(), body: Self.expired)
        try await queue.handOver()
        guard case .failed(let failure) = try await queue.upload(id)?.state else {
            throw ProgramFailure("It has not failed.")
        }
        #expect(failure.response?.status == 403 && !failure.delivery.mayHaveArrived)
        #expect(calls.withLock { $0 } == 1)
        #expect(try bodies().count == 1)
        await queue.disconnect()
    }

    @Test(arguments: [false, true])
    func `an upload waits if there is no new form yet, or if that has expired, too`(isExpired: Bool) async throws {
        let isReady = Mutex(false)
        let end = clock.date.addingTimeInterval(1)
        let old = PresignedQueueTests.presigned("photos/late", to: url, until: end, Self.pet)
        let queue = queue { _ in
            if isReady.withLock({ $0 }) { return fresh() }
            if isExpired { return old }
            throw Trouble()
        }
        let id = try await enqueue(in: queue)
        clock.advance(by: .seconds(61))
        try await queue.handOver()
        guard case .retrying(_, let failure) = try await queue.upload(id)?.state else {
            throw ProgramFailure("It is not retrying.")
        }
        #expect(failure.message.contains(isExpired ? "has expired, too" : "Trouble"), "\(failure.message)")
        #expect(kept.handedOver.isEmpty)
        #expect(try bodies().count == 1)
        isReady.withLock { $0 = true }
        clock.advance(by: .seconds(61))
        try await queue.handOver()
        #expect(try sent().contains("secret-photos/new"))
        await queue.disconnect()
    }

    @Test func `without a closure, a form that has expired fails with advice`() async throws {
        let queue = queue()
        let id = try await enqueue(in: queue)
        clock.advance(by: .seconds(61))
        try await queue.handOver()
        guard case .failed(let failure) = try await queue.upload(id)?.state else {
            throw ProgramFailure("It has not failed.")
        }
        #expect(failure.code == .formExpired && failure.advice != nil)
        #expect(kept.handedOver.isEmpty)
        await queue.disconnect()
    }

    @Test func `an upload that is cancelled while its form is made again keeps its form`() async throws {
        let cancelled = Mutex<UploadQueue?>(nil)
        let queue = queue { upload in
            try await cancelled.withLock({ $0 })?.cancel(upload.id)
            return fresh()
        }
        cancelled.withLock { $0 = queue }
        defer { cancelled.withLock { $0 = nil } }
        let id = try await enqueue(in: queue)
        let old = try bodies()
        clock.advance(by: .seconds(61))
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state == .cancelled)
        #expect(kept.handedOver.isEmpty)
        #expect(try bodies() == old)
        await queue.disconnect()
    }
}
