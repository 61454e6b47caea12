import Foundation
import HTTPTypes
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardClient

@Suite(.timeLimit(.minutes(10))) struct BackgroundUploadsTests {
    private static func form(in folder: TemporaryFolder, size: Int = 300_000) throws -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: try folder.file("a.jpg", size: size), named: "petImage")
        return form
    }

    private static func uploads(
        in folder: TemporaryFolder, rules: FormRules? = nil, restartsLost: Bool = false,
        maximumResponseBytes: Int = 1 << 20
    ) async throws -> BackgroundUploads {
        try await BackgroundUploads(
            identifier: "test", directory: folder.url.appending(component: "uploads"), rules: rules,
            restartsLost: restartsLost, maximumResponseBytes: maximumResponseBytes)
    }

    private static func name(_ state: BackgroundUpload.State?) -> String {
        switch state {
        case nil: "none"
        case .waiting: "waiting"
        case .sending: "sending"
        case .done(let response): "done \(response.status.code)"
        case .failed(let error): "failed \(error.code)"
        case .lost(let mayHaveArrived): mayHaveArrived ? "lost under way" : "lost before it began"
        case .cancelled: "cancelled"
        }
    }

    private static func manifestFile(_ id: UUID, in folder: TemporaryFolder) -> URL {
        folder.url.appending(path: "uploads/\(id.uuidString)/manifest.json")
    }

    private static func bodyFile(_ id: UUID, in folder: TemporaryFolder) -> URL {
        folder.url.appending(path: "uploads/\(id.uuidString)/body")
    }

    @Test func `the form that was added arrives although its file is gone, and its body leaves the folder`()
        async throws
    {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let expected = try await form.layout().bytes()
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created", ["Location": "/uploads/7"], body: "taken")
        } while: { server in
            let uploads = try await Self.uploads(in: folder)
            let id = try await uploads.add(form, to: server.url, headerFields: [.userAgent: "Postcard"])
            try FileManager.default.removeItem(at: folder.url.appending(component: "a.jpg"))
            let response = try await uploads.response(of: id)
            #expect(response.status == .created)
            #expect(response.headerFields[.location] == "/uploads/7")
            #expect(response.text == "taken")
            let request = try #require(server.requests.whole.first)
            #expect(request.body == expected)
            #expect(request.head["Content-Type"] == form.contentType)
            #expect(request.head["Idempotency-Key"] == "\"\(id.uuidString)\"")
            #expect(request.head["User-Agent"] == "Postcard")
            #expect(request.head["Expect"] == nil)
            let upload = try #require(uploads[id])
            #expect(upload.fraction == 1)
            #expect(upload.filenames == ["a.jpg"])
            #expect(upload.totalBytes == Int64(expected.count))
            #expect(!FileManager.default.fileExists(atPath: Self.bodyFile(id, in: folder).path))
            #expect(uploads.problems.isEmpty)
            await uploads.close()
        }
    }

    @Test func `what is added a second time under one identity is sent once`() async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created")
        } while: { server in
            let uploads = try await Self.uploads(in: folder)
            let id = UUID()
            for _ in 0..<2 {
                try await uploads.add(form, as: id, to: server.url, method: .post, headerFields: HTTPFields())
                _ = try await uploads.response(of: id)
            }
            #expect(uploads.uploads.map(\.id) == [id])
            #expect(server.requests.heads.count == 1)
            await uploads.close()
        }
    }

    @Test func `a user name and password in the URL go along whenever the upload is begun`() async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                try await connection.respond("503 Service Unavailable")
            }
        } while: { server in
            let uploads = try await Self.uploads(in: folder)
            let address = server.url.absoluteString.replacing("http://", with: "http://choco:secret@")
            let id = try await uploads.add(form, to: try #require(URL(string: address)))
            _ = try? await uploads.response(of: id)
            try await uploads.restart(id)
            _ = try? await uploads.response(of: id)
            let expected = "Basic \(Data("choco:secret".utf8).base64EncodedString())"
            #expect(server.requests.heads.map { $0["Authorization"] } == [expected, expected])
        }
    }

    @Test func `a later object finds the answer, the refusal and what was cancelled`() async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await RawServer.run { connection in
            guard let request = try await connection.readRequest() else { return }
            if request.head.line.contains("refused") {
                try await connection.respond("413 Content Too Large", body: "at most 5 MB")
            } else {
                try await connection.respond("201 Created", body: "taken")
            }
        } while: { server in
            let first = try await Self.uploads(in: folder)
            let taken = try await first.add(form, to: server.url)
            let refused = try await first.add(form, to: server.url.appending(component: "refused"))
            _ = try await first.response(of: taken)
            await #expect(throws: UploadError.self) { try await first.response(of: refused) }
            await first.close()

            let second = try await Self.uploads(in: folder)
            #expect(second.uploads.map(\.id) == [taken, refused])
            #expect(Self.name(second[taken]?.state) == "done 201")
            #expect(try await second.response(of: taken).text == "taken")
            let error = await #expect(throws: UploadError.self) { try await second.response(of: refused) }
            #expect(error?.code == .refused)
            #expect(error?.response?.status.code == 413)
            #expect(error?.message.contains("at most 5 MB") == true)
            try second.remove(taken)
            #expect(second.uploads.map(\.id) == [refused])
            await second.close()

            let third = try await Self.uploads(in: folder)
            #expect(third.uploads.map(\.id) == [refused])
            await third.close()
        }
    }

    @Test func `cancelling closes the connection, and the upload can be begun anew`() async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder, size: 30_000_000)
        try await RawServer.runLeavingFirstUnanswered { server, firstArrived in
            let uploads = try await Self.uploads(in: folder)
            let id = try await uploads.add(form, to: server.url)
            for await list in uploads.updates {
                if case .sending(let bytesSent) = list.first?.state, bytesSent > 0 { break }
            }
            // URLSession on Linux reads from a body before its connection stands.
            await firstArrived.wait()
            try uploads.cancel(id)
            await #expect(throws: CancellationError.self) { try await uploads.response(of: id) }
            #expect(Self.name(uploads[id]?.state) == "cancelled")
            try await uploads.restart(id)
            #expect(try await uploads.response(of: id).status == .created)
            #expect(uploads[id]?.attempts == 2)
            let error = await #expect(throws: BackgroundUploadError.self) { try await uploads.restart(id) }
            #expect(error?.code == .notRestartable)
            await uploads.close()
        }
    }

    @Test func `an answer that is too large to keep is an error`() async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created", body: String(repeating: "x", count: 2_000))
        } while: { server in
            let uploads = try await Self.uploads(in: folder, maximumResponseBytes: 1_000)
            let id = try await uploads.add(form, to: server.url)
            let error = await #expect(throws: UploadError.self) { try await uploads.response(of: id) }
            #expect(error?.code == .responseTooLarge)
            await uploads.close()
        }
    }

    @Test func `an answer that asks for a password is a refusal`() async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("401 Unauthorized", ["WWW-Authenticate": "Basic realm=x"], body: "who?")
        } while: { server in
            let uploads = try await Self.uploads(in: folder)
            let id = try await uploads.add(form, to: server.url)
            let error = await #expect(throws: UploadError.self) { try await uploads.response(of: id) }
            #expect(error?.response?.status == .unauthorized)
            await uploads.close()
        }
    }

    @Test func `what cannot be sent leaves nothing behind`() async throws {
        let folder = try TemporaryFolder()
        let rules = try FormRules()
        let uploads = try await Self.uploads(in: folder, rules: rules)
        let form = try Self.form(in: folder)
        let url = try #require(URL(string: "http://127.0.0.1:9/"))
        let broken = await #expect(throws: UploadError.self) { try await uploads.add(form, to: url) }
        #expect(broken?.code == .brokenRule)
        await uploads.close()

        let others = try await Self.uploads(in: folder)
        let ftp = try #require(URL(string: "ftp://127.0.0.1/"))
        let invalid = await #expect(throws: UploadError.self) { try await others.add(form, to: ftp) }
        #expect(invalid?.code == .invalidURL)
        var missing = MultipartForm()
        missing.append(fileAt: folder.url.appending(component: "gone.jpg"), named: "file")
        let sent = missing
        let gone = await #expect(throws: UploadError.self) { try await others.add(sent, to: url) }
        #expect(gone?.formError?.code == .fileMissing)
        #expect(others.uploads.isEmpty)
        await others.close()
        let left = try FileManager.default.contentsOfDirectory(
            atPath: folder.url.appending(component: "uploads").path)
        #expect(left == ["lock"])
    }

    @MainActor @Test func `what the system hands over is called once the session has told everything`() {
        var calls: [String] = []
        let events = BackgroundEvents()
        events.add { calls.append("early") }
        #expect(calls == [])
        events.finish()
        #expect(calls == ["early"])
        events.finish()
        events.add { calls.append("late") }
        #expect(calls == ["early", "late"])
        events.add { calls.append("next") }
        #expect(calls == ["early", "late"])
    }
}
