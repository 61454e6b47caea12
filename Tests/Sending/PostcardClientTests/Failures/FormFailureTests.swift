import Foundation
import HTTPTypes
import NIOCore
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct FormFailureTests {
    private struct Broken: Error {}

    @Test func `a file that is missing is named before anything is sent`() async throws {
        var form = MultipartForm()
        form.append(fileAt: URL(filePath: "/no/such/초코.jpg"), named: "image")
        let sent = form
        let error = try await #require(throws: UploadError.self) {
            try await UploadClient().upload(sent, to: try #require(URL(string: "http://127.0.0.1:9/")))
        }
        #expect(error.code == .form)
        #expect(error.formError?.code == .fileMissing)
        #expect(error.message == "No such file: /no/such/초코.jpg")
        #if os(Linux)
        #expect((error as any Error).localizedDescription == error.message)
        #endif
    }

    @Test func `a form that breaks the client's rules is not sent`() async throws {
        var form = MultipartForm()
        form.append("초코", named: "nickname")
        let sent = form
        var client = UploadClient()
        client.rules = try FormRules(fields: ["name": FormRules.Field()])
        let error = try await #require(throws: UploadError.self) {
            try await client.upload(sent, to: try #require(URL(string: "http://127.0.0.1:9/")))
        }
        #expect(error.code == .brokenRule)
        #expect((error.underlyingError as? FormProblem)?.code == .unexpectedField)
    }

    @Test(arguments: Carrier.allReaders)
    func `a file that changed since the form was laid out is not sent`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("a.bin", size: 1_000)
        var form = MultipartForm()
        form.append(fileAt: file, named: "file")
        let layout = try form.layout()
        try Data(repeating: 7, count: 2_000).write(to: file)
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created")
        } while: { server in
            let request = try UploadRequest(
                url: server.url, method: .post, headerFields: HTTPFields(), body: UploadBody(layout),
                maximumResponseBytes: 1_000)
            let error = try await #require(throws: FormError.self) {
                try await carrier.transport().send(request) { _ in }
            }
            #expect(error.code == .fileChanged)
            #expect(server.requests.whole.isEmpty)
        }
    }

    @Test(arguments: Carrier.allReaders)
    func `a file that shrinks while it is sent ends the upload, and no body looks whole`(
        carrier: Carrier
    ) async throws {
        let folder = try TemporaryFolder()
        let file = try folder.sparseFile("large.bin", size: 64 << 20)
        var form = MultipartForm()
        form.append(fileAt: file, named: "file")
        let sent = form
        let (finished, finish) = AsyncStream.makeStream(of: Void.self)
        try await RawServer.run { connection in
            defer { finish.finish() }
            guard let head = try await connection.readHead() else { return }
            let handle = try FileHandle(forWritingTo: file)
            try handle.truncate(atOffset: 1_000)
            try handle.close()
            let body = try? await connection.readBody(of: head)
            #expect(body == nil)
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(sent, to: server.url)
            }
            #expect(error.code == .form)
            #expect(error.formError?.code == .fileChanged)
            #expect(error.formError?.path == file.path)
            for await _ in finished {}
        }
    }

    @Test(arguments: Carrier.allReaders, [nil, 30_000] as [Int64?])
    func `a stream that fails ends the upload with its own error, and no body looks whole`(
        carrier: Carrier, length: Int64?
    ) async throws {
        var form = MultipartForm()
        let stream = FormStream(length: length) {
            AsyncThrowingStream<Data, any Error> { continuation in
                continuation.yield(Data(repeating: 1, count: 10_000))
                continuation.finish(throwing: Broken())
            }
        }
        form.append(stream, named: "log", filename: "log.txt")
        let sent = form
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
        } while: { server in
            await #expect(throws: Broken.self) {
                try await UploadClient(transport: carrier.transport()).upload(sent, to: server.url)
            }
            #expect(server.requests.whole.isEmpty)
        }
    }

    @Test(arguments: Carrier.allReaders)
    func `a stream's own error is thrown unchanged, even if a connection could throw it`(
        carrier: Carrier
    ) async throws {
        var form = MultipartForm()
        let stream = FormStream(length: nil) {
            AsyncThrowingStream<Data, any Error> { continuation in
                continuation.finish(throwing: IOError(errnoCode: ECONNREFUSED, reason: "read"))
            }
        }
        form.append(stream, named: "log", filename: "log.txt")
        let sent = form
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
        } while: { server in
            let error = try await #require(throws: IOError.self) {
                try await UploadClient(transport: carrier.transport()).upload(sent, to: server.url)
            }
            #expect(error.errnoCode == ECONNREFUSED)
            #expect(server.requests.whole.isEmpty)
        }
    }

    @Test(arguments: Carrier.allReaders)
    func `a stream that gives less than it promised ends the upload`(carrier: Carrier) async throws {
        var form = MultipartForm()
        form.append(SendingTests.stream(of: 2, length: 30_000), named: "log", filename: "log.txt")
        let sent = form
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(sent, to: server.url)
            }
            #expect(error.formError?.code == .streamLength)
            #expect(server.requests.whole.isEmpty)
        }
    }

    @Test(arguments: Carrier.allReaders)
    func `cancelling an upload that waits for its own stream ends the stream`(carrier: Carrier) async throws {
        let (chunks, _) = AsyncStream.makeStream(of: Data.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        var form = MultipartForm()
        let stream = FormStream(length: nil) {
            AsyncStream<Data> {
                begin.finish()
                for await chunk in chunks { return chunk }
                end.finish()
                return nil
            }
        }
        form.append(stream, named: "log", filename: "log.txt")
        let sent = form
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
        } while: { server in
            let upload = Task { try await UploadClient(transport: carrier.transport()).upload(sent, to: server.url) }
            for await _ in begun {}
            upload.cancel()
            await #expect(throws: CancellationError.self) { try await upload.value }
            for await _ in ended {}
            #expect(server.requests.whole.isEmpty)
        }
    }
}
