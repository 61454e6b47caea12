import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// What an app gives an upload besides its form: a tag, an expiry, another address. And whether it waits for a network.
@Suite(.timeLimit(.minutes(10))) struct UploadDetailsTests {
    /// A value of an app's.
    private struct Tag: Codable, Equatable {
        var pet = "초코"
        var number = 7
    }

    private let folder: TemporaryFolder
    private let kept = KeptTransfers()

    init() throws {
        folder = try TemporaryFolder()
    }

    private static func address(_ host: String = "example.com") throws -> URL {
        try #require(URL(string: "https://\(host)/uploads"))
    }

    private func queue(
        at time: QueueTime = QueueTime(), on path: @escaping @Sendable () -> NetworkPath? = { NetworkPath() }
    ) -> UploadQueue {
        UploadQueue(
            directory: folder.url, session: BackgroundSession(identifier: UUID().uuidString),
            service: KeepingService(kept), time: time, networkPath: path)
    }

    private func response(_ status: Int, host: String = "example.com") throws -> AttemptEnd {
        .response(status: status, headerFields: HTTPFields(), url: try Self.address(host), method: .post)
    }

    // MARK: - Tags

    @Test func `an upload has the tag that the app has given it, also in another process`() async throws {
        let first = queue()
        let tagged = try await first.enqueue(QueuedForms.form(), to: Self.address(), tag: Tag())
        let other = try await first.enqueue(QueuedForms.form(), to: Self.address(), tag: "a text")
        let untagged = try await first.enqueue(QueuedForms.form(), to: Self.address())
        let second = queue()
        #expect(try await second.upload(tagged)?.tag(as: Tag.self) == Tag())
        #expect(try await second.upload(other)?.tag(as: String.self) == "a text")
        #expect(try await second.upload(untagged)?.tag(as: Tag.self) == nil)
        let upload = try #require(try await second.upload(other))
        #expect(throws: DecodingError.self) { try upload.tag(as: Tag.self) }
    }

    /// As JSON, a text has two quotation marks more.
    @Test(arguments: [(4094, true), (4095, false)])
    func `a tag has at most 4 KiB, and nothing is kept of an upload with a larger one`(
        count: Int, isKept: Bool
    ) async throws {
        let queue = queue()
        let tag = String(repeating: "x", count: count)
        if isKept {
            try await queue.enqueue(QueuedForms.form(), to: Self.address(), tag: tag)
        } else {
            let error = await #expect(throws: UploadQueueError.self) {
                try await queue.enqueue(QueuedForms.form(), to: Self.address(), tag: tag)
            }
            #expect(error?.code == .tagTooLarge)
        }
        #expect(try await queue.uploads().count == (isKept ? 1 : 0))
    }

    // MARK: - Expiry

    @Test func `an upload whose time is over fails wherever it is, and a retry has no end`() async throws {
        let now = Mutex(Date(timeIntervalSince1970: 2_000_000_000))
        let queue = queue(at: QueueTime(date: { now.withLock { $0 } }))
        let end = now.withLock { $0 + 60 }
        let carried = try await queue.withoutSession.enqueue(
            QueuedForms.form(), to: Self.address(), conditions: UploadConditions(expires: end))
        try await queue.handOver()
        let paused = try await queue.withoutSession.enqueue(
            QueuedForms.form(), to: Self.address(), conditions: UploadConditions(expires: end))
        try await queue.pause(paused)
        let lasting = try await queue.withoutSession.enqueue(QueuedForms.form(), to: Self.address())
        #expect(kept.handedOver.count == 1)
        now.withLock { $0 += 61 }
        try await queue.handOver()
        for id in [carried, paused] {
            guard case .failed(let failure) = try #require(try await queue.upload(id)).state else {
                throw ProgramFailure("It has not failed.")
            }
            #expect(failure.code == .expired)
        }
        #expect(kept.handedOver.count == 1 && kept.cancellations == 1)
        #expect(try await queue.upload(lasting)?.state == .sending)
        #expect(try await queue.bodyExists(carried))
        try await queue.retry(carried)
        try await queue.handOver()
        #expect(try await queue.upload(carried)?.state == .sending)
        await queue.disconnect()
    }

    @Test func `an upload whose time is over before it is handed over is not sent`() async throws {
        let now = Mutex(Date(timeIntervalSince1970: 2_000_000_000))
        let queue = queue(at: QueueTime(date: { now.withLock { $0 } }))
        // The next time, the queue knows already that the system has nothing.
        try await queue.handOver()
        for seconds in [60.0, 61] {
            let conditions = UploadConditions(expires: now.withLock { $0 + seconds })
            try await queue.enqueue(QueuedForms.form(), to: Self.address(), conditions: conditions)
        }
        now.withLock { $0 += 60 }
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        #expect(try await queue.uploads().map(\.state.name) == ["failed", "sending"])
        await queue.disconnect()
    }

    @Test func `an upload that failed before its time was over has no end after a later retry`() async throws {
        let now = Mutex(Date(timeIntervalSince1970: 2_000_000_000))
        let queue = queue(at: QueueTime(date: { now.withLock { $0 } }))
        let conditions = UploadConditions(expires: now.withLock { $0 + 60 })
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address(), conditions: conditions)
        try await queue.handOver()
        try kept.end(try response(400))
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state.failure != nil)
        now.withLock { $0 += 61 }
        try await queue.retry(id)
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state == .sending)
        await queue.disconnect()
    }

    /// The server had it in time.
    @Test func `an upload that arrived is done, although its time was over when that was reported`() async throws {
        let now = Mutex(Date(timeIntervalSince1970: 2_000_000_000))
        let queue = queue(at: QueueTime(date: { now.withLock { $0 } }))
        let conditions = UploadConditions(expires: now.withLock { $0 + 60 })
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address(), conditions: conditions)
        try await queue.handOver()
        now.withLock { $0 += 61 }
        try kept.end(try response(201))
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state.isDone == true)
        await queue.disconnect()
    }

    // MARK: - Another address

    /// What is done with the upload before its address changes.
    enum Before: CaseIterable {
        case nothing, handOver, fail, cancel, pause
    }

    @Test(arguments: Before.allCases)
    func `an upload is sent to another address, whatever became of it at the first one`(before: Before) async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        switch before {
        case .nothing: break
        case .handOver: try await queue.handOver()
        case .fail:
            try await queue.handOver()
            try kept.end(try response(404))
            try await queue.handOver()
            #expect(try await queue.upload(id)?.state.name == "failed")
        case .cancel: try await queue.cancel(id)
        case .pause: try await queue.pause(id)
        }
        try await queue.retry(id, to: Self.address("example.org"))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.url) == [try Self.address("example.org")])
        #expect(try await queue.upload(id)?.url == Self.address("example.org"))
        try kept.end(try response(201, host: "example.org"))
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state.isDone == true)
        // It is done now.
        let error = await #expect(throws: UploadQueueError.self) { try await queue.retry(id, to: Self.address()) }
        #expect(error?.code == .wrongState)
        await queue.disconnect()
    }

    @Test(arguments: ["ftp://example.org/", "file:///etc/hosts", "nowhere"])
    func `an address that no form can be sent to changes nothing`(address: String) async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        let url = try #require(URL(string: address))
        let error = await #expect(throws: UploadQueueError.self) { try await queue.retry(id, to: url) }
        #expect(error?.code == .invalidURL && error?.message.contains(address) == true)
        #expect(try await queue.upload(id)?.url == Self.address())
    }

    /// A conflict at the new server cannot be about a form that only the old one may have.
    @Test(arguments: [("example.com", true), ("example.org", false)])
    func `what the old server may have counts only at the same server`(host: String, counts: Bool) async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        try kept.end(.interrupted(.cancelled))
        try await queue.handOver()
        try await queue.retry(id, to: Self.address(host).appending(path: "new"))
        let row = try await queue.store.database.read { try $0.row(id) }
        #expect((row?.possibleDelivery != nil) == counts)
        await queue.disconnect()
    }

    // MARK: - Waiting for a network

    private static let paths: [(NetworkPath?, AllowedNetworks, isWaiting: Bool)] = [
        (nil, .all, false), (NetworkPath(), .all, false), (NetworkPath(isAvailable: false), .all, true),
        (NetworkPath(isExpensive: true), .unmetered, true), (NetworkPath(isExpensive: true), .all, false),
        (NetworkPath(isCellular: true), AllowedNetworks(cellular: false), true),
    ]

    @Test(arguments: paths)
    func `an upload says whether it waits for a network`(
        path: NetworkPath?, networks: AllowedNetworks, isWaiting: Bool
    ) async throws {
        let queue = queue(on: { path })
        let id = try await queue.withoutSession.enqueue(
            QueuedForms.form(), to: Self.address(), conditions: UploadConditions(networks: networks))
        let later = try await queue.withoutSession.enqueue(
            QueuedForms.form(), to: Self.address(),
            conditions: UploadConditions(notBefore: Date(timeIntervalSinceNow: 3600), networks: networks))
        #expect(try await queue.upload(id)?.state == (isWaiting ? .waitingForNetwork : .waiting))
        #expect(try await queue.upload(later)?.state == .waiting)
        try await queue.handOver()
        #expect(try await queue.uploads().first?.state == (isWaiting ? .waitingForNetwork : .sending))
        try await queue.pause(id)
        #expect(try await queue.upload(id)?.state == .paused)
        await queue.disconnect()
    }

    @Test func `a preview shows its state, and its parts have identities of their own`() throws {
        let upload = QueuedUpload.preview(.sending, fraction: 0.75, id: 7, filenames: ["a.jpg", "b.png"])
        #expect(upload.id == 7 && upload.fraction == 0.75)
        #expect(Set(upload.parts.map(\.id)).count == 2)
        #expect(upload.parts.map { upload.fraction(of: $0) } == [1, 0.5])
        #expect(upload.parts.map(\.contentType) == ["image/jpeg", "image/png"])
        let failure = QueuedUpload.Failure(.refused, "The server refused the form.", advice: "Make it smaller.")
        #expect(QueuedUpload.preview(.failed(because: failure)).state == .failed(because: failure))
        let done = QueuedUpload.preview(.done(.init(status: 201, body: Data(#"{"id":7}"#.utf8))))
        #expect(done.fraction == 1)
    }

    @Test func `the parts of a queued form have identities of their own, even if they are empty`() async throws {
        var form = MultipartForm()
        for name in ["a", "b", "b"] { form.append("", named: name) }
        let queue = queue()
        let id = try await queue.enqueue(form, to: Self.address())
        let parts = try #require(try await queue.upload(id)).parts
        #expect(Set(parts.map(\.id)).count == 3)
    }
}
