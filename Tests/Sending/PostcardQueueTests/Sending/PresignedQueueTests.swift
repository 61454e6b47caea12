import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// Presigned forms in a queue. `postcard serve` takes the place of the object store: its records show each field.
@Suite(.timeLimit(.minutes(10))) struct PresignedQueueTests {
    /// A new client for each use: its connections close with it, and proxies wait for that.
    private static var client: UploadClient { UploadClient(transport: AsyncHTTPTransport()) }

    static func presigned(
        _ key: String, to url: URL, until expires: Date = .distantFuture, _ further: String...
    ) -> PresignedForm {
        let time = min(expires, Date(timeIntervalSince1970: 4_000_000_000)).formatted(.iso8601)
        let conditions = [#"{"key":"\#(key)"}"#, #"["starts-with","$Content-Type","image/"]"#] + further
        let policy = #"{"expiration":"\#(time)","conditions":[\#(conditions.joined(separator: ","))]}"#
        return PresignedForm(
            url: url,
            fields: [
                "key": key, "policy": Data(policy.utf8).base64EncodedString(), "x-amz-signature": "secret-\(key)",
            ])
    }

    static func form(_ file: URL, _ fields: (String, String)...) -> MultipartForm {
        var form = MultipartForm()
        form.append(fileAt: file, named: "photo")
        for (name, value) in fields { form.append(value, named: name) }
        return form
    }

    private struct Trouble: Error {}

    private struct Record: Decodable {
        struct Field: Decodable {
            let name: String
            let value: String
        }
        struct File: Decodable {
            let name: String
            let size: Int64
            let sha256: String
        }
        let fields: [Field]
        let files: [File]

        subscript(name: String) -> String? { fields.first { $0.name == name }?.value }
    }

    private static func record(_ upload: QueuedUpload?) throws -> Record {
        guard case .done(let response) = upload?.state else {
            Issue.record("\(String(describing: upload?.state))")
            throw CancellationError()
        }
        return try JSONDecoder().decode(Record.self, from: response.body)
    }

    @Test func `a form in the queue is sent with its fields before the file, and nothing of it is kept`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 300_000)
        let presigned = Self.presigned("photos/1", to: server.uploads, #"["starts-with","$x-amz-meta-pet",""]"#)
        let id = try await queue.enqueue(Self.form(file, ("x-amz-meta-pet", "초코")), with: presigned, tag: 7)
        try await queue.run(Self.client, options: .draining)
        let upload = try #require(try await queue.upload(id))
        let record = try Self.record(upload)
        #expect(record["key"] == "photos/1" && record["x-amz-meta-pet"] == "초코")
        #expect(record["Content-Type"] == "image/jpeg")
        #expect(record.files.first?.name == "file" && record.files.first?.size == 300_000)
        #expect(upload.bytesSent == upload.totalBytes)
        let row = try #require(try await queue.store.database.read { try $0.row(id) })
        #expect(row.signed == nil)
    }

    @Test func `a form that was signed is sent to no other address`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let id = try await queue.enqueue(
            Self.form(try folder.file("a.jpg", size: 3000)), with: Self.presigned("a", to: url))
        let error = await #expect(throws: UploadQueueError.self) {
            try await queue.retry(id, to: url.appending(path: "elsewhere"))
        }
        #expect(error?.code == .wrongState && error?.advice?.contains("QueueOptions.presignedForm") == true)
        #expect(try await queue.upload(id)?.url == url)
    }

    @Test func `a form that breaks its policy, or has expired, is not enqueued`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let file = try folder.file("a.jpg", size: 300_000)
        let small = Self.presigned("a", to: url, #"["content-length-range",0,299999]"#)
        for (presigned, code) in [
            (small, UploadError.Code.brokenPolicy),
            (Self.presigned("a", to: url, until: Date(timeIntervalSince1970: 0)), .formExpired),
        ] {
            let error = try await #require(throws: UploadError.self) {
                try await queue.enqueue(Self.form(file), with: presigned)
            }
            #expect(error.code == code)
        }
        #expect(try await queue.uploads().isEmpty)
    }

    @Test func `a form that expired while it waited is replaced, and its file is sent with the new one`() async throws {
        let folder = try TemporaryFolder()
        let clock = SteppedClock()
        let queue = UploadQueue(
            directory: folder.url.appending(path: "queue"), session: nil, service: nil, time: clock.time)
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 300_000)
        let sha256 = try await Program.run("sha256sum", [file.path]).text.prefix { $0 != " " }
        let pet = #"["starts-with","$x-amz-meta-pet",""]"#
        let old = Self.presigned(
            "photos/old", to: server.uploads, until: clock.date.addingTimeInterval(60), pet,
            #"["starts-with","$x-amz-meta-old",""]"#)
        let id = try await queue.enqueue(
            Self.form(file, ("x-amz-meta-pet", "초코"), ("x-amz-meta-old", "1")), with: old, tag: "초코")
        clock.advance(by: .seconds(61))
        // Without the closure it fails, and says what to do.
        try await queue.run(Self.client, options: .draining)
        guard case .failed(let failure) = try await queue.upload(id)?.state else {
            Issue.record("not failed")
            return
        }
        #expect(failure.code == .formExpired)
        try await queue.retry(id)
        let tags = Mutex<[String]>([])
        var options = QueueOptions.draining
        options.presignedForm = { upload in
            let tag = try upload.tag(as: String.self) ?? ""
            tags.withLock { $0.append(tag) }
            return Self.presigned("photos/new", to: server.uploads, pet)
        }
        try await queue.run(Self.client, options: options)
        let record = try Self.record(try await queue.upload(id))
        #expect(tags.withLock { $0 } == ["초코"])
        #expect(record["key"] == "photos/new" && record["x-amz-signature"] == "secret-photos/new")
        #expect(record["x-amz-meta-pet"] == "초코")
        #expect(record["x-amz-meta-old"] == nil)
        #expect(record.files.first?.sha256 == String(sha256))
    }

    @Test func `a store that calls a form expired gets a new one, and other failures wait`() async throws {
        let folder = try TemporaryFolder()
        let clock = SteppedClock()
        let queue = UploadQueue(
            directory: folder.url.appending(path: "queue"), session: nil, service: nil, time: clock.time)
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 3000)
        let requests = Mutex(0)
        let expired = "<Error><Code>AccessDenied</Code><Message>Policy expired.</Message></Error>"
        try await FaultProxy.run(before: server.url) { _ in
            let number = requests.withLock { count in
                count += 1
                return count
            }
            return number < 3 ? .response(Fault.Response(403, body: expired)) : .none
        } while: { proxy in
            let url = try #require(URL(string: "http://127.0.0.1:\(proxy.port)/uploads"))
            let id = try await queue.enqueue(Self.form(file), with: Self.presigned("photos/old", to: url))
            let calls = Mutex(0)
            let sent = Mutex<[Int64?]>([])
            var options = QueueOptions(pollInterval: nil)
            options.presignedForm = { _ in
                // What was sent of a form that was refused does not count.
                let bytes = try await queue.upload(id)?.bytesSent
                sent.withLock { $0.append(bytes) }
                // The app's own server may be unreachable.
                let number = calls.withLock { calls in
                    calls += 1
                    return calls
                }
                if number == 1 { throw Trouble() }
                return Self.presigned("photos/new", to: url)
            }
            let running = Task { [options] in try await queue.run(Self.client, options: options) }
            try await queue.wait { $0[id]?.isRetrying == true }
            guard case .retrying(_, let failure) = try await queue.upload(id)?.state else {
                throw ProgramFailure("It does not wait.")
            }
            // What the store said, and not that the form has expired in the future.
            #expect(failure.code == .refused && failure.response?.status == 403 && !failure.delivery.mayHaveArrived)
            #expect(
                failure.message.contains("403") && failure.message.contains("There is no new form yet: Trouble()"),
                "\(failure.message)")
            await clock.waitForSleeper()
            clock.advance(by: .seconds(61))
            try await queue.wait { $0[id]?.isDone == true }
            running.cancel()
            _ = try? await running.value
            let record = try Self.record(try await queue.upload(id))
            #expect(record["key"] == "photos/new")
            #expect(calls.withLock { $0 } == 2)
            #expect(sent.withLock { $0 } == [0, 0])
        }
    }

    @Test func `without a closure, an upload fails as soon as the store calls its form expired`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 3000)
        let expired = "<Error><Code>AccessDenied</Code><Message>Policy expired.</Message></Error>"
        try await FaultProxy.run(before: server.url) { _ in
            .response(Fault.Response(403, body: expired))
        } while: { proxy in
            let url = try #require(URL(string: "http://127.0.0.1:\(proxy.port)/uploads"))
            let id = try await queue.enqueue(Self.form(file), with: Self.presigned("photos/old", to: url))
            try await queue.run(Self.client, options: .draining)
            let upload = try #require(try await queue.upload(id))
            guard case .failed(let failure) = upload.state else { throw ProgramFailure("\(upload.state)") }
            #expect(failure.response?.status == 403 && upload.attempts == 1)
        }
    }

    /// The app's own server may be unreachable for longer than the policy allows, and nothing is sent meanwhile.
    @Test func `an upload waits as long as there is no new form, and cannot have arrived`() async throws {
        let folder = try TemporaryFolder()
        let clock = SteppedClock()
        let queue = UploadQueue(
            directory: folder.url.appending(path: "queue"), session: nil, service: nil, time: clock.time)
        let server = try await ReceivingServer()
        let old = Self.presigned("photos/old", to: server.uploads, until: clock.date.addingTimeInterval(60))
        let id = try await queue.enqueue(Self.form(try folder.file("a.jpg", size: 3000)), with: old)
        clock.advance(by: .seconds(61))
        let calls = Mutex(0)
        var options = QueueOptions(
            retryPolicy: RetryPolicy(maximumAttempts: 1), endsWhenEmpty: true, pollInterval: nil)
        options.presignedForm = { _ in
            let number = calls.withLock { calls in
                calls += 1
                return calls
            }
            if number <= 3 { throw Trouble() }
            return Self.presigned("photos/new", to: server.uploads)
        }
        let waiting = options
        async let run: Void = queue.run(Self.client, options: waiting)
        for attempt in 1...3 {
            var failure: QueuedUpload.Failure?
            for try await upload in queue.updates().compactMap({ $0.first }) where upload.attempts == attempt {
                #expect(!upload.state.isEnded)
                if case .retrying(_, let latest) = upload.state { failure = latest }
                if upload.state.isEnded || failure != nil { break }
            }
            #expect(failure?.code == .formExpired && failure?.delivery.mayHaveArrived == false)
            let message = failure?.message ?? ""
            #expect(message.contains("There is no new form yet: Trouble()"), "\(message)")
            await clock.waitForSleeper()
            clock.advance(by: .seconds(61))
        }
        try await run
        #expect(try Self.record(try await queue.upload(id))["key"] == "photos/new")
    }

    // MARK: - In a background session

    private static func queue(_ kept: KeptTransfers, in folder: TemporaryFolder, _ clock: SteppedClock) -> UploadQueue {
        UploadQueue(
            directory: folder.url.appending(path: "queue"),
            session: BackgroundSession(identifier: "org.example.\(UUID().uuidString)"), service: KeepingService(kept),
            time: clock.time)
    }

    @Test(arguments: [(50.0, true), (61, false)])
    func `a form is handed to the system only if it lasts until the upload may begin`(
        begin: Double, isHandedOver: Bool
    ) async throws {
        let folder = try TemporaryFolder()
        let (clock, kept) = (SteppedClock(), KeptTransfers())
        let queue = Self.queue(kept, in: folder, clock)
        let url = try #require(URL(string: "https://pets.example/"))
        let id = try await queue.enqueue(
            Self.form(try folder.file("a.jpg", size: 3000)),
            with: Self.presigned("a", to: url, until: clock.date.addingTimeInterval(60)),
            conditions: UploadConditions(notBefore: clock.date.addingTimeInterval(begin)))
        try await queue.handOver()
        #expect(kept.handedOver.count == (isHandedOver ? 1 : 0))
        #expect(kept.handedOver.allSatisfy { $0.headerFields[.idempotencyKey] == nil })
        if case .failed(let failure) = try #require(try await queue.upload(id)).state {
            #expect(!isHandedOver && failure.code == .formExpired && failure.message.contains("would begin at"))
            #expect(failure.advice?.contains("background session") == true)
        } else {
            #expect(isHandedOver)
        }
        await queue.disconnect()
    }

    @Test func `a form whose store redirects is not for a background session`() async throws {
        let folder = try TemporaryFolder()
        let (clock, kept) = (SteppedClock(), KeptTransfers())
        let url = try #require(URL(string: "https://pets.example/"))
        let file = try folder.file("a.jpg", size: 3000)
        let presigned = Self.presigned("a", to: url, #"{"Success_action_redirect":"https://pets.example/thanks"}"#)
        let queue = Self.queue(kept, in: folder, clock)
        let error = try await #require(throws: UploadError.self) {
            try await queue.enqueue(Self.form(file), with: presigned)
        }
        #expect(error.code == .brokenPolicy && error.message.contains("success_action_status"), "\(error)")
        await queue.disconnect()
        // This process follows no redirect of a store.
        try await UploadQueue(directory: folder.url.appending(path: "other")).enqueue(Self.form(file), with: presigned)
    }

    @Test func `a PUT is sent to the address that was signed, which is not shown`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let file = try folder.file("a.jpg", size: 3000)
        let lines = Mutex<[String]>([])
        let server = try await ReceivingServer()
        try await FaultProxy.run(before: server.url) { request in
            lines.withLock { $0.append("\(request.method) \(request.path) \(request["x-amz-acl"] ?? "")") }
            return .response(Fault.Response(200))
        } while: { proxy in
            let url = try #require(URL(string: "http://127.0.0.1:\(proxy.port)/pets/1?X-Amz-Signature=secret"))
            let presigned = PresignedForm(putting: url, headerFields: ["x-amz-acl": "private"])
            let id = try await queue.enqueue(Self.form(file), with: presigned)
            try await queue.run(Self.client, options: .draining)
            let upload = try #require(try await queue.upload(id))
            #expect(upload.state.isDone && upload.totalBytes == 3000)
            #expect(upload.url.absoluteString == "http://127.0.0.1:\(proxy.port)/pets/1")
            #expect(lines.withLock { $0 } == ["PUT /pets/1?X-Amz-Signature=secret private"])
        }
    }
}
