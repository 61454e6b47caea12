import Foundation
import HTTPTypes
import NIOCore
import PostcardForm
import PostcardReceivingSupport
import PostcardReception
import PostcardTestSupport
import PostcardWire
import Synchronization
import SystemPackage
import Testing

private typealias Body = ServerBody<[UInt8]>

@Suite(.timeLimit(.minutes(10)))
struct FormReceiverTests {
    private static let form = LargeForm(bytes: 40_000)

    /// The head of a form.
    private static func head(
        _ method: HTTPRequest.Method = .post, _ path: String = "/uploads", length: Int? = nil,
        _ fields: HTTPFields = [:]
    ) -> HTTPRequest {
        var head = HTTPRequest(method: method, scheme: nil, authority: nil, path: path, headerFields: fields)
        if !fields.contains(.contentType) { head.headerFields[.contentType] = "multipart/form-data; boundary=b" }
        if let length {
            head.headerFields[.contentLength] = String(length)
        } else {
            head.headerFields[.transferEncoding] = "chunked"
        }
        return head
    }

    private func withStore(_ body: (LocalUploadStore, FilePath) async throws -> Void) async throws {
        try await withTemporaryDirectory { directory in
            try await body(try LocalUploadStore(directory: directory), directory)
        }
    }

    private func expectNothing(in store: LocalUploadStore, _ directory: FilePath) async throws {
        #expect(try await store.identifiers(limit: 10, after: nil) == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.string + "/.incoming") == [])
    }

    private static func problem(_ response: FormReceiver.Response) -> Problem? {
        try? JSONDecoder().decode(Problem.self, from: Data(response.body))
    }

    // MARK: - Chunks

    private func receive<Chunk: FormChunk>(_ chunks: Chunk.Type, by size: Int) async throws {
        try await withStore { store, _ in
            let bytes = Self.form.bytes
            let receiver = FormReceiver(store: store).patient
            for length in [bytes.count, nil] {
                let upload = try await receiver.receive(
                    Self.head(length: length), ServerBody<Chunk>(bytes, by: size), from: "192.0.2.1")
                let file = try #require(try await store.openFile(0, of: upload.record.id))
                let content = try await file.read(at: 0, count: Int(file.size))
                #expect(Array(content.readableBytesView) == Self.form.content)
            }
        }
    }

    @Test(arguments: [1, 7, 4099, .max])
    func `chunks of any type and size make the same record`(size: Int) async throws {
        let size = min(size, Self.form.bytes.count)
        try await receive([UInt8].self, by: size)
        try await receive(ArraySlice<UInt8>.self, by: size)
        try await receive(Data.self, by: size)
        try await receive(ByteBuffer.self, by: size)
    }

    @Test func `a body in one chunk is passed on in pieces`() async throws {
        try await withStore { store, _ in
            let form = LargeForm(bytes: 3_000_000)
            let body = Body(form.bytes, by: form.bytes.count)
            let upload = try await FormReceiver(store: store).patient.receive(Self.head(length: form.bytes.count), body)
            #expect(upload.record.files.map(\.size) == [3_000_000])
        }
    }

    // MARK: - Broken bodies

    struct Broken: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var length: Int?
        let bytes: ArraySlice<UInt8>
        var ending = ServerBody<[UInt8]>.Ending.end
        var delay = Duration.zero
        let status: Int
        let code: String
        var anyBody = false
    }

    private static let count = form.bytes.count
    private static let broken = [
        Broken(
            testDescription: "ends before its length", length: count, bytes: form.bytes.prefix(30_000), status: 400,
            code: "truncated"),
        Broken(
            testDescription: "ends before its end", bytes: form.bytes.prefix(30_000), status: 400, code: "truncated"),
        Broken(
            testDescription: "is longer than its length", length: count - 1, bytes: form.bytes[...], status: 400,
            code: "content-length-mismatch"),
        Broken(
            testDescription: "goes on after its length", length: count, bytes: ArraySlice(form.bytes + [0x6D, 0x6F]),
            status: 400, code: "content-length-mismatch"),
        Broken(
            testDescription: "throws", length: count, bytes: form.bytes.prefix(30_000), ending: .failure, status: 400,
            code: "truncated"),
        Broken(
            testDescription: "throws at once", length: count, bytes: [], ending: .failure, status: 400,
            code: "body-not-sent"),
        Broken(
            testDescription: "was read before", length: count, bytes: [], status: 500, code: "body-not-passed"),
        Broken(
            testDescription: "falls silent", length: count, bytes: form.bytes.prefix(30_000), ending: .silence,
            status: 408, code: "too-slow"),
        Broken(
            testDescription: "never begins", bytes: [], ending: .silence, status: 408, code: "too-slow"),
        Broken(
            testDescription: "is slow", bytes: form.bytes[...], delay: .milliseconds(40), status: 408,
            code: "below-minimum-rate"),
        Broken(
            testDescription: "is no form and throws", bytes: form.bytes.prefix(30_000), ending: .failure, status: 400,
            code: "truncated", anyBody: true),
        Broken(
            testDescription: "is no form and falls silent", bytes: form.bytes.prefix(30_000), ending: .silence,
            status: 408, code: "too-slow", anyBody: true),
    ]

    @Test(arguments: broken)
    func `a body that breaks off is a clear error, and nothing is stored`(row: Broken) async throws {
        try await withStore { store, directory in
            var options = UploadOptions()
            options.acceptsAnyBody = row.anyBody
            var receiver = FormReceiver(store: store, options: options).patient
            if row.code == "too-slow" { receiver.timeouts.idle = .milliseconds(200) }
            if row.code == "below-minimum-rate" {
                receiver.timeouts.minimumBytesPerSecond = 10_000_000
                receiver.timeouts.gracePeriod = .milliseconds(100)
            }
            let head = Self.head(
                length: row.length, row.anyBody ? [.contentType: "application/octet-stream"] : [:])
            let body = Body(row.bytes, by: 1000, ending: row.ending, delay: row.delay)
            let response = await receiver.respond(to: head, body)
            #expect(response.head.status.code == row.status)
            #expect(Self.problem(response)?.code == row.code, "\(String(decoding: response.body, as: UTF8.self))")
            try await expectNothing(in: store, directory)
            await #expect(throws: (any Error).self) { try await receiver.receive(head, body) }
            try await expectNothing(in: store, directory)
        }
    }

    @Test func `the error of a body is thrown`() async throws {
        try await withStore { store, _ in
            let body = Body(Self.form.bytes.prefix(30_000), by: 1000, ending: .failure)
            await #expect(throws: Body.Broken.self) {
                try await FormReceiver(store: store).patient.receive(Self.head(length: Self.count), body)
            }
        }
    }

    @Test(arguments: [false, true])
    func `a request that is cancelled ends, and stores nothing`(isAnyBody: Bool) async throws {
        try await withStore { store, directory in
            var options = UploadOptions()
            options.acceptsAnyBody = isAnyBody
            let receiver = FormReceiver(store: store, options: options).patient
            let body = Body(Self.form.bytes.prefix(30_000), by: 1000, ending: .silence)
            let head = Self.head(isAnyBody ? .put : .post, "/uploads/a", isAnyBody ? [.contentType: "a/b"] : [:])
            let task = Task { try await receiver.receive(head, body) }
            try await body.reads.reach(31)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await expectNothing(in: store, directory)
        }
    }

    // MARK: - What is left of a body

    @Test func `the rest of a refused body is left, unless it is to be discarded`() async throws {
        try await withStore { store, directory in
            var options = UploadOptions()
            options.limits.maximumFileBytes = 10_000
            var receiver = FormReceiver(store: store, options: options).patient
            for (limit, count) in [(0, 12), (Int64.max, 42), (100, 12)] as [(Int64, Int)] {
                receiver.maximumDiscardedBytes = limit
                let body = Body(Self.form.bytes, by: 1000)
                let response = await receiver.respond(to: Self.head(length: Self.count), body)
                #expect(response.head.status == .contentTooLarge)
                #expect(response.isRequestRead == (limit == .max))
                #expect(body.reads.all <= count && body.reads.all >= min(count, 10), "\(body.reads.all)")
            }
            let unread = Body(Self.form.bytes, by: 1000)
            let response = await receiver.respond(to: Self.head(length: 1 << 40), unread)
            #expect(response.head.status == .contentTooLarge && !response.isRequestRead)
            #expect(unread.reads.all == 0)
            try await expectNothing(in: store, directory)
        }
    }

    @Test func `a request without a body is read, though no one reads it`() async throws {
        try await withStore { store, _ in
            let body = Body([], by: 1, ending: .silence)
            let response = await FormReceiver(store: store).patient.respond(
                to: Self.head(.options, length: 0), body)
            #expect(response.head.status == .noContent && response.isRequestRead)
            // Some servers stop if a body is asked for that is not there.
            #expect(body.reads.all == 0 && body.reads.begun == 0)
        }
    }

    @Test(arguments: [HTTPRequest.Method.post, .patch])
    func `a body of no bytes is not asked for`(method: HTTPRequest.Method) async throws {
        try await withStore { store, _ in
            let body = Body([], by: 1, ending: .failure)
            let path = method == .post ? "/uploads" : "/uploads/resumable/x"
            let response = await FormReceiver(store: store).patient.respond(
                to: Self.head(method, path, length: 0), body)
            #expect(response.head.status.kind == .clientError && response.isRequestRead)
            #expect(body.reads.begun == 0)
        }
    }

    /// A record whose JSON is read from the store, and larger than a tenth of all that responses may hold.
    @Test func `a response counts for the limit of memory until it is released`() async throws {
        try await withStore { store, _ in
            var options = UploadOptions()
            options.maximumHeldResponseBytes = 64 << 10
            let receiver = FormReceiver(store: store, options: options).patient
            let text = String(repeating: "a", count: 20_000)
            let form = Array("--b\r\nContent-Disposition: form-data; name=\"t\"\r\n\r\n\(text)\r\n--b--\r\n".utf8)
            func post() async -> FormReceiver.Response {
                await receiver.respond(to: Self.head(length: form.count), Body(form, by: 4096), from: "192.0.2.1")
            }
            var held: [FormReceiver.Response] = []
            for _ in 0..<8 { held.append(await post()) }
            // Each form is stored and acknowledged. Those for which there is no room get the identifier alone.
            #expect(held.allSatisfy { $0.head.status == .created })
            #expect(held.first?.body.count ?? 0 > 20_000 && held.last?.body.count ?? .max < 100)
            let ids = try await store.identifiers(limit: 20, after: nil)
            #expect(ids.count == 8)
            #expect(held.last.map { String(decoding: $0.body, as: UTF8.self) } == #"{"id":"\#(ids[0].text)"}"#)
            held = []
            #expect(await post().body.count > 20_000)
        }
    }

    @Test func `a receiver with tokens refuses requests without one`() async throws {
        try await withStore { store, _ in
            var receiver = FormReceiver(store: store).patient
            receiver.tokens = BearerTokens(["sesame"])
            for (value, status) in [(nil, 401), ("Bearer other", 401), ("Bearer sesame", 201)] as [(String?, Int)] {
                var head = Self.head(length: Self.count)
                head.headerFields[.authorization] = value
                let response = await receiver.respond(to: head, Body(Self.form.bytes, by: 1000))
                #expect(response.head.status.code == status)
                #expect((response.head.headerFields[.wwwAuthenticate] != nil) == (status == 401))
            }
        }
    }

    // MARK: - Resumption

    private static func resumable(
        _ method: HTTPRequest.Method, _ path: String = "/uploads", length: Int = 0, from offset: Int? = nil,
        isComplete: Bool? = nil
    ) throws -> HTTPRequest {
        var head = head(method, path, length: length)
        let names = ["Upload-Draft-Interop-Version", "Upload-Offset", "Upload-Complete"]
        let values = ["8", offset.map(String.init), isComplete.map { $0 ? "?1" : "?0" }]
        for (name, value) in zip(names, values) { head.headerFields[try #require(HTTPField.Name(name))] = value }
        if method == .patch { head.headerFields[.contentType] = "application/partial-upload" }
        return head
    }

    private static func location(_ response: FormReceiver.Response) throws -> String {
        try #require(response.head.headerFields[.location])
    }

    private static func offset(_ response: FormReceiver.Response) throws -> String? {
        response.head.headerFields[try #require(HTTPField.Name("Upload-Offset"))]
    }

    @Test func `a form is resumed, and an open append gives way to the next`() async throws {
        try await withStore { store, _ in
            var options = UploadOptions()
            options.resumption?.announcementDelay = .zero
            let receiver = FormReceiver(store: store, options: options).patient
            let bytes = Self.form.bytes
            let interim = Mutex<[HTTPResponse]>([])
            let created = await receiver.respond(
                to: try Self.resumable(.post, length: 10_000, isComplete: false), Body(bytes.prefix(10_000), by: 999)
            ) { head in interim.withLock { $0.append(head) } }
            #expect(created.head.status == .created)
            let path = try Self.location(created)
            #expect(interim.withLock { $0.map(\.status.code) } == [104])
            #expect(interim.withLock { $0.first?.headerFields[.location] } == path)

            let open = Body(bytes[10_000..<20_000], by: 1000, ending: .silence)
            let rest = try Self.resumable(.patch, path, length: bytes.count - 10_000, from: 10_000, isComplete: true)
            async let first = receiver.respond(to: rest, open)
            try await open.reads.reach(11)
            let progress = await receiver.respond(to: try Self.resumable(.head, path), Body([], by: 1))
            #expect(try Self.offset(progress) == "20000")
            #expect(Self.problem(await first)?.status == 409)
            let last = await receiver.respond(
                to: try Self.resumable(
                    .patch, path, length: bytes.count - 20_000, from: 20_000, isComplete: true),
                Body(bytes[20_000...], by: 7))
            #expect(last.head.status == .created)
            let record = try UploadRecord(json: Data(last.body))
            let again = await receiver.respond(to: try Self.resumable(.get, path), Body([], by: 1))
            #expect(again.body == last.body)
            #expect(try await store.identifiers(limit: 10, after: nil) == [record.id])
        }
    }

    @Test(arguments: [Body.Ending.failure, .silence, .end])
    func `an append that breaks off keeps what has arrived`(ending: ServerBody<[UInt8]>.Ending) async throws {
        try await withStore { store, _ in
            var receiver = FormReceiver(store: store).patient
            if case .silence = ending { receiver.timeouts.idle = .seconds(5) }
            let bytes = Self.form.bytes
            let path = try Self.location(
                await receiver.respond(
                    to: try Self.resumable(.post, length: 10_000, isComplete: false),
                    Body(bytes.prefix(10_000), by: 999)))
            let broken = await receiver.respond(
                to: try Self.resumable(
                    .patch, path, length: bytes.count - 10_000, from: 10_000, isComplete: true),
                Body(bytes[10_000..<20_000], by: 1000, ending: ending))
            #expect(broken.head.status.kind == .clientError)
            let progress = await receiver.respond(to: try Self.resumable(.head, path), Body([], by: 1))
            #expect(try Self.offset(progress) == "20000")
            #expect(try await store.identifiers(limit: 10, after: nil) == [])
        }
    }

    @Test func `no interim response follows the last one`() async throws {
        try await withStore { store, _ in
            var options = UploadOptions()
            options.resumption?.announcementDelay = .milliseconds(1)
            let receiver = FormReceiver(store: store, options: options).patient
            let isDone = Atomic(false)
            for _ in 0..<50 {
                isDone.store(false, ordering: .relaxed)
                _ = await receiver.respond(
                    to: try Self.resumable(.post, length: Self.count, isComplete: true),
                    Body(Self.form.bytes, by: 4000)
                ) { _ in
                    try? await Task.sleep(for: .milliseconds(1))
                    let isLate = isDone.load(ordering: .relaxed)
                    #expect(!isLate)
                }
                isDone.store(true, ordering: .relaxed)
            }
        }
    }
}

extension FormReceiver {
    /// The receiver with time for a machine that is busy with other tests.
    fileprivate var patient: FormReceiver {
        var receiver = self
        receiver.timeouts.idle = .seconds(600)
        receiver.timeouts.gracePeriod = .seconds(600)
        return receiver
    }
}
